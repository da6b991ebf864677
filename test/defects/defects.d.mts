export const defects: readonly {
  readonly name: string;
  readonly file: string;
  readonly now: string;
  readonly before: string;
  readonly tests: readonly string[];
}[];
