// Puts defects that were found and fixed back into a copy of the sources, one at a time, and shows the first seed whose
// history breaks a promise: `node test/model/put-back.mjs`, or `node test/model/put-back.mjs <words of its name>`.
import { recordFigure } from "../support/figures.mjs";
import { sourceCopy } from "../support/source-copy.mjs";
import { defects } from "./defects.mjs";
import { liveHistories } from "./histories.mjs";

const [, , wanted] = process.argv;

const copy = sourceCopy("defects");

/** How many histories a defect has to be found in. */
const histories = Number(process.env.INTEG_TEST_HISTORIES ?? 60_000);

async function firstSeed() {
  const { found } = await liveHistories(copy.folder, { first: 1, count: histories });
  return found && { seed: found.seed, promise: found.broken[0] };
}

let found = 0;
let tried = 0;
try {
  for (const { name, changes } of defects) {
    if (wanted !== undefined && !name.includes(wanted)) continue;
    const undo = changes.map(copy.put);
    const first = await firstSeed();
    for (const back of undo.toReversed()) back();
    tried += 1;
    if (first) found += 1;
    console.log(first ? `found   ${name}\n        seed ${first.seed}: ${first.promise}` : `MISSED  ${name}`);
  }
} finally {
  copy.remove();
}
recordFigure("put back", { defects: tried, found, histories });
process.exitCode = found === tried ? 0 : 1;
