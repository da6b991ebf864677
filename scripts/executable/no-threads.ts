// For src/journal/file/summary-program.ts: an executable is one file, so one thread reads a journal.
export const summaryProgram: typeof import("../../src/journal/file/summary-program.ts").summaryProgram = () =>
  undefined;
