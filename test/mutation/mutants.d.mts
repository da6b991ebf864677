export interface Mutant {
  readonly number: number;
  readonly file: string;
  readonly kind: string;
  readonly line: number;
  readonly column: number;
  readonly original: string;
  readonly instead: string;
}

export function mutantsOf(
  file: string,
  text: string,
  firstNumber: number,
): { readonly text: string; readonly mutants: readonly Mutant[]; readonly left: number };
