export interface HistoriesResult {
  readonly total: {
    readonly histories: number;
    /** Histories with hostile actors. */
    readonly hostile: number;
    readonly processes: number;
    readonly turns: number;
    readonly kills: number;
    /** Entries left for a person in the last nights, without and with hostile actors. */
    readonly refusals: number;
    readonly refusalsOfHostile: number;
  };
  readonly processorSeconds: number;
  /** The history with the lowest seed that broke a promise. */
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
    /** The other participants; by default it differs between histories. */
    readonly kind?: "alone" | "benign" | "hostile" | "any";
  },
): Promise<HistoriesResult>;
