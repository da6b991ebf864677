export interface Lived {
  readonly total: {
    readonly histories: number;
    /** Those with hostile actors. */
    readonly hostile: number;
    readonly processes: number;
    readonly turns: number;
    readonly kills: number;
    /** What was left for a person in the last nights, without and with hostile actors. */
    readonly refusals: number;
    readonly refusalsOfHostile: number;
  };
  readonly processorSeconds: number;
  /** Of those that broke a promise the one with the lowest seed. */
  readonly found?: {
    readonly seed: number;
    readonly broken: readonly string[];
    readonly history: readonly string[];
  };
}

export function liveHistories(
  root: string,
  seeds: {
    readonly first: number;
    readonly count: number;
    readonly shown?: number;
    /** Which others take part; in each history another one by default. */
    readonly kind?: "alone" | "benign" | "hostile" | "any";
  },
): Promise<Lived>;
