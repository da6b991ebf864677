import { identify } from "../../../../src/disk/lock-owner.ts";
import { loadKernelLock } from "../../../../src/disk/kernel-lock.ts";
import { FileJournal } from "../../../../src/journal/file/file-journal.ts";
import { journalConformance } from "../conformance.ts";
import { ada, clock, journalPath } from "../intent.ts";

const means = () => ({ self: identify(process.pid), kernel: loadKernelLock() });

journalConformance({
  name: "the journal in a file",
  busy: "failed",
  store: async () => {
    const path = journalPath();
    const shared = clock();
    return {
      open: ({ waitMs = 60, now = shared, actor = ada } = {}) =>
        new FileJournal(path, { now, actor, locks: { means, waitMs } }),
    };
  },
});
