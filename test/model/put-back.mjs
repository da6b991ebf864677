// Puts defects that were found and fixed back into a copy of the sources, one at a time, and shows the first seed whose
// history breaks a promise: `npm run test:defects`, or `npm run test:defects -- <number>`. What stands here is what the
// sources said before, as near as they still can say it.
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { collectFigures, recordFigure } from "../support/figures.mjs";
import { liveHistories } from "./histories.mjs";

const root = resolve(import.meta.dirname, "../..");
const [, , wanted] = process.argv;

const defects = [
  {
    name: "1 a stored request is sent under another service version",
    changes: [["commands/running/change.ts", "{ serviceVersion: entry?.service_version }", "{}"]],
  },
  {
    name: "3 a client that was made before, with the same key, is taken for lost",
    changes: [["changes/delivery-recovery.ts", "if (detail.own_key === true) return false;", "return false;"]],
  },
  {
    name: "5 after 429 the same creation gets another key",
    changes: [["changes/sending.ts", 'return kind === "rate_limited" && details.unsent !== true;', "return false;"]],
  },
  {
    name: "48 one destination takes two secrets",
    changes: [
      [
        "commands/journal/taken-places.ts",
        "const refuse = (): void => {",
        "const refuse = (): void => {\n      return;",
      ],
    ],
  },
  {
    name: "50 without a token endpoint a rotation needs no proof",
    changes: [
      [
        "changes/overlap.ts",
        "if (await options.mayRevokeUnproven(lease.entry))",
        "if (bench.account.proof === null || (await options.mayRevokeUnproven(lease.entry)))",
      ],
    ],
  },
  {
    name: "51 a rotation typed with other flags goes on with the old ones",
    changes: [["changes/overlap.ts", "if (others.length === 0) return;", "return;"]],
  },
  {
    name: "52 the clock of the first command decides what was made",
    changes: [
      [
        "changes/access-key/recover.ts",
        "return clock_offset_ms !== null && Math.abs(clock_offset_ms) <= clockSkewMs;",
        "return true;",
      ],
      ["changes/workbench.ts", "Date.parse(created_at) + (clock_offset_ms ?? 0)", "Date.parse(created_at)"],
    ],
  },
  {
    name: "53 a secret that is kept elsewhere is taken for lost",
    changes: [
      [
        "changes/delivery-recovery.ts",
        "const { kept_at } = entry.detail;",
        "const { kept_at } = entry.detail;\n  return;",
      ],
      ["changes/workbench.ts", "(detail.attempted_at ?? []).filter((place) => place !== here)", "[]"],
    ],
  },
  {
    name: "58 with another organization the same request is another one",
    changes: [["journal/admission.ts", "if (other === undefined) return;", "return;"]],
  },
  {
    name: "59 an answer with the old id: the only one is revoked",
    changes: [
      ["changes/overlap.ts", 'if (newId !== "" && newId !== oldId) return;', "return;"],
      [
        "changes/oauth-client/create.ts",
        "return clientDifferences(client, request, { id: resource_id, notId: this.#notId });",
        "return undefined;",
      ],
    ],
  },
  {
    name: "60 a receipt that is not what was asked for is done",
    changes: [
      [
        "changes/oauth-client/create.ts",
        "return clientDifferences(client, request, { id: resource_id, notId: this.#notId });",
        "return undefined;",
      ],
    ],
  },
  {
    name: "61 a 404 settles a revocation of unknown outcome",
    changes: [
      [
        "changes/revocation.ts",
        "const isSettled = !mayHaveArrived;",
        'const isSettled = error.kind !== "outcome_unknown";',
      ],
    ],
  },
  {
    name: "a rotation's own key is taken for another entry's (found by this simulation)",
    changes: [["changes/access-key/recover.ts", "(other !== parent || detail.old_key === key.id)", "true"]],
  },
];

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
