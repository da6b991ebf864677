export const defects: readonly {
  readonly name: string;
  readonly changes: readonly (readonly [file: string, now: string, before: string])[];
  readonly tests: readonly string[];
}[];
