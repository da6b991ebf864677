// Puts defects that were found and fixed back into a copy of the sources, one at a time, and shows the first seed whose
// history breaks a promise: `npm run test:defects`, or `npm run test:defects -- <number>`.
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { collectFigures, recordFigure } from "../support/figures.mjs";
import { defects } from "./defects.mjs";
import { liveHistories } from "./histories.mjs";

const root = resolve(import.meta.dirname, "../..");
const [, , wanted] = process.argv;

const copy = mkdtempSync(join(tmpdir(), "integ-defects-"));
for (const name of ["bin", "src", "test", "scripts", "package.json", "package-lock.json", "vitest.config.mts"])
  cpSync(join(root, name), join(copy, name), { recursive: true });
symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));

function put([file, now, before]) {
  const path = join(copy, "src", file);
  const text = readFileSync(path, "utf8");
  if (!text.includes(now)) throw new Error(`${file} no longer says: ${now}`);
  writeFileSync(
    path,
    text.replace(now, () => before),
  );
  return () => writeFileSync(path, text);
}

/** How many histories a defect has to be found in. */
const histories = Number(process.env.INTEG_TEST_HISTORIES ?? 40_000);

async function firstSeed() {
  const { found } = await liveHistories(copy, { first: 1, count: histories });
  return found && { seed: found.seed, promise: found.broken[0] };
}

let found = 0;
let tried = 0;
try {
  for (const { name, changes } of defects) {
    if (wanted !== undefined && !name.startsWith(`${wanted} `)) continue;
    const undo = changes.map(put);
    const first = await firstSeed();
    for (const back of undo.toReversed()) back();
    tried += 1;
    if (first) found += 1;
    console.log(first ? `found   ${name}\n        seed ${first.seed}: ${first.promise}` : `MISSED  ${name}`);
  }
} finally {
  rmSync(copy, { recursive: true, force: true });
}
const write = wanted === undefined ? collectFigures() : () => {};
recordFigure("put back", { defects: tried, found, histories });
write();
process.exitCode = found === tried ? 0 : 1;
