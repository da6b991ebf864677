import { identify } from "../../../../src/disk/lock-owner.ts";
import { loadKernelLock } from "../../../../src/disk/kernel-lock.ts";
import { fileJournal } from "../../../support/file-journal.ts";
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
        fileJournal(path, { now, actor, locks: { means, waitMs } }),
    };
  },
});
