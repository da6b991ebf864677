export interface Lived {
  readonly total: {
    readonly histories: number;
    readonly processes: number;
    readonly turns: number;
    readonly kills: number;
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
  seeds: { readonly first: number; readonly count: number; readonly shown?: number },
): Promise<Lived>;
