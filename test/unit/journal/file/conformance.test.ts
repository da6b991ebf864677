import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { identify } from "../../../../src/disk/lock-owner.ts";
import { loadKernelLock } from "../../../../src/disk/kernel-lock.ts";
import { fileJournal } from "../../../support/file-journal.ts";
import { recordLine, type Signed, sumIn } from "../../../../src/journal/record.ts";
import { journalConformance } from "../conformance.ts";
import { ada, clock, journalPath } from "../intent.ts";

function tamper(path: string, id: string, change: (records: Signed[]) => Signed[]): void {
  const file = [path, path.replace("journal.ndjson", "archive.ndjson")].find(
    (one) => existsSync(one) && readFileSync(one, "utf8").includes(`"id":"${id}"`),
  )!;
  const [head = "", ...lines] = readFileSync(file, "utf8").trimEnd().split("\n");
  const all = lines.map((line): Signed => {
    const [, mac = "", content = ""] = /"mac":"([^"]*)",(.*)\}$/s.exec(line) ?? [];
    return { content, mac };
  });
  const isOfEntry = ({ content }: Signed): boolean => content.startsWith(`"id":"${id}"`);
  let after = sumIn(head);
  const written = [...all.filter((one) => !isOfEntry(one)), ...change(all.filter(isOfEntry))].map((record) => {
    const made = recordLine(record, after);
    after = sumIn(made);
    return made;
  });
  writeFileSync(file, [`${head}\n`, ...written].join(""));
}

const means = () => ({ self: identify(process.pid), kernel: loadKernelLock() });

journalConformance({
  name: "the journal in a file",
  busy: "failed",
  hasArchive: true,
  store: async () => {
    const path = journalPath();
    const shared = clock();
    return {
      open: ({ waitMs = 60, now = shared, actor = ada, keys, archives = false } = {}) =>
        fileJournal(path, { now, actor, locks: { means, waitMs }, keys, ...(archives && { archiveBytes: 1 }) }),
      tamper: async (id, change) => tamper(path, id, change),
    };
  },
});
