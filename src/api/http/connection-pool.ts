// Owns: which connection carries which request: one at a time, one idle one kept for each origin.
// Must not know: how a connection is made.
import type { Reception } from "./reception.ts";
import type { Target } from "./wire-request.ts";

/** One request as a connection sends it. */
export interface Dispatch {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer | undefined;
  /** The connection is closed afterwards. */
  readonly last: boolean;
}

/** A way to one origin that carries one request at a time, and connects anew where the last connection is gone. */
export interface Connection {
  send(dispatch: Dispatch, reception: Reception): void;
  destroy(): void;
}

export interface Pool {
  /** @param fresh one that carried nothing before: no stale socket may make an outcome unknown */
  take(target: Target, fresh: boolean): Promise<Connection>;
  give(target: Target, back: { readonly connection: Connection; readonly reusable: boolean }): void;
  close(): void;
}

/** Whoever finds no idle connection opens another. */
export function createPool(open: (target: Target) => Promise<Connection>): Pool {
  const idle = new Map<string, Connection>();
  let closed = false;
  return {
    async take({ origin, ...target }, fresh) {
      const kept = fresh ? undefined : idle.get(origin);
      if (kept) idle.delete(origin);
      return kept ?? open({ origin, ...target });
    },
    give({ origin }, { connection, reusable }) {
      if (reusable && !closed && !idle.has(origin)) idle.set(origin, connection);
      else connection.destroy();
    },
    close() {
      closed = true;
      for (const connection of idle.values()) connection.destroy();
      idle.clear();
    },
  };
}
