export interface HistoriesResult {
  readonly total: {
    readonly histories: number;
    readonly hostile: number;
    readonly processes: number;
    readonly turns: number;
    readonly kills: number;
    /** How often `apply` failed or left an item in the last night, without and with hostile actors. */
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
    /** `alone` plays one-seed.ts, the other kinds nights.ts. By default, the seed determines the kind. */
    readonly kind?: "alone" | "benign" | "hostile" | "any";
  },
): Promise<HistoriesResult>;
