import type { Mutant } from "./mutants.mjs";

export function readPlan(): {
  readonly files: readonly { readonly path: string; readonly first: number; readonly hash: string }[];
  readonly mutants: readonly Mutant[];
  readonly left: number;
};
