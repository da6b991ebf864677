export interface HistoriesResult {
  readonly total: {
    readonly histories: number;
    readonly hostile: number;
    readonly processes: number;
    readonly turns: number;
    readonly kills: number;
    /** Items that `apply` left or failed in the last night, without and with hostile actors. */
    readonly refusals: number;
    readonly refusalsOfHostile: number;
  };
  readonly processorSeconds: number;
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
    /** The actors besides the commands of one machine; by default they differ between histories. */
    readonly kind?: "alone" | "benign" | "hostile" | "any";
  },
): Promise<HistoriesResult>;
