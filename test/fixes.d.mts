/** Number of the defect, a test of it, and what has to be broken: the file, what it says, what it said before. */
export const fixes: readonly (readonly [
  number: string,
  test: string,
  ...changes: (readonly [file: string, now: string, before: string])[],
])[];
