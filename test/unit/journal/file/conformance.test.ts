import { readFileSync, writeFileSync } from "node:fs";
import { identify } from "../../../../src/disk/lock-owner.ts";
import { loadKernelLock } from "../../../../src/disk/kernel-lock.ts";
import { fileJournal } from "../../../support/file-journal.ts";
import { recordHash, recordLine, sumIn } from "../../../../src/journal/record.ts";
import { journalConformance } from "../conformance.ts";
import { ada, clock, journalPath } from "../intent.ts";

/** The file with a record of the entry changed, and its checksums and hashes made to fit. */
function edited(path: string, id: string, change: (content: string) => string): void {
  const [head = "", ...lines] = readFileSync(path, "utf8").trimEnd().split("\n");
  let after = sumIn(head);
  let prev = "";
  const written = lines.map((line) => {
    const [, mac = "", content = ""] = /"mac":"([^"]*)",(.*)\}$/s.exec(line) ?? [];
    const isIts = content.startsWith(`"id":"${id}"`);
    const next = isIts ? change(content.replace(/"prev":"[0-9a-f]*"/, `"prev":"${prev}"`)) : content;
    if (isIts) prev = recordHash(next);
    const made = recordLine({ content: next, mac }, after);
    after = sumIn(made);
    return made;
  });
  writeFileSync(path, [`${head}\n`, ...written].join(""));
}

const means = () => ({ self: identify(process.pid), kernel: loadKernelLock() });

journalConformance({
  name: "the journal in a file",
  busy: "failed",
  store: async () => {
    const path = journalPath();
    const shared = clock();
    return {
      open: ({ waitMs = 60, now = shared, actor = ada, keys } = {}) =>
        fileJournal(path, { now, actor, locks: { means, waitMs }, ...(keys && { keys }) }),
      edit: async (id, change) => edited(path, id, change),
    };
  },
});
