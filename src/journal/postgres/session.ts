// Statements to the server of a team's journal, one after the other, each within its time. A connection that broke is made
// again; what became of the statement under way is found out by reading, never guessed.
import { setTimeout as sleep } from "node:timers/promises";
import { Failure } from "../../errors.ts";
import { inTurn } from "../store.ts";
import type { Address } from "./address.ts";
import { connect, type Connected, type Server } from "./connect.ts";
import { endsConnection, LostConnection, serverErrorOf, within } from "./failures.ts";

export type Row = Readonly<Record<string, unknown>>;
export type Query = (text: string, values?: readonly unknown[]) => Promise<readonly Row[]>;

export interface SessionParts {
  readonly address: Address;
  /** Checked immediately for each connection, before anything else is asked. */
  readonly check: (query: Query, server: Server) => Promise<void>;
}

export interface Write {
  readonly text: string;
  readonly values: readonly unknown[];
  /**
   * Asked over a new connection if the response was lost: the rows that it would have had, or undefined if it took no
   * effect, so that it may be asked for again. A write without it is harmless to repeat.
   */
  readonly settle?: (query: Query) => Promise<readonly Row[] | undefined>;
}

/** No statement is waited for longer, with all that it takes to find out what became of it. */
const limitMs = 10_000;

/** Makes a lone statement's own transaction reach the disk, and the synchronous standbys, whatever the server's settings are. */
export const durably = "durably AS MATERIALIZED (SELECT set_config('synchronous_commit', 'on', true) AS set)";

export class Session {
  readonly #parts: SessionParts;
  #connected: Connected | undefined;
  readonly #inTurn = inTurn();
  #hasMet = false;

  constructor(parts: SessionParts) {
    this.#parts = parts;
  }

  read(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return this.#inTurn(() => this.#repeated((query) => query(text, values)));
  }

  write({ text, values, settle = async () => undefined }: Write): Promise<readonly Row[]> {
    let wasSent = false;
    return this.#inTurn(() =>
      this.#repeated(async (query) => {
        const isRepeat = wasSent;
        const settled = isRepeat ? await settle(query) : undefined;
        if (settled !== undefined) return settled;
        wasSent = true;
        try {
          const rows = await query(text, values);
          // Nothing was left to do for it: the first try, whose answer was lost, may have done it meanwhile.
          return (rows.length === 0 && isRepeat ? await settle(query) : undefined) ?? rows;
        } catch (error) {
          // A second try that meets what the first one left: it had taken effect after all.
          const found = serverErrorOf(error)?.code === "23505" ? await settle(query) : undefined;
          if (found !== undefined) return found;
          throw error;
        }
      }),
    );
  }

  /** Several statements as one; never repeated. A server that hears nothing more of it gives its locks back. */
  transaction<T>(work: (query: Query) => Promise<T>): Promise<T> {
    return this.#inTurn(async () => {
      const connected = await this.#connection();
      const query = this.#queryOf(connected, 10 * 60_000);
      // Whatever the default of the role or the database is: what waited for a lock sees what was committed meanwhile.
      await query("BEGIN ISOLATION LEVEL READ COMMITTED").catch(nameStatementMode);
      try {
        await query("SET LOCAL synchronous_commit = on");
        await query("SET LOCAL idle_in_transaction_session_timeout = 60000");
        const done = await work(query);
        await query("COMMIT");
        return done;
      } catch (error) {
        if (this.#connected === connected) await query("ROLLBACK").catch(() => this.#drop(connected));
        throw error;
      }
    });
  }

  close(): void {
    this.#connected?.hangUp();
    this.#connected = undefined;
  }

  async #connection(): Promise<Connected> {
    if (this.#connected !== undefined) return this.#connected;
    const { address, check } = this.#parts;
    const connected = await connect(address);
    this.#connected = connected;
    connected.client.once("end", () => this.#drop(connected));
    try {
      await check(this.#queryOf(connected, limitMs), connected.server);
    } catch (error) {
      this.#drop(connected);
      throw error;
    }
    this.#hasMet = true;
    return connected;
  }

  #drop(connected: Connected): void {
    connected.hangUp();
    if (this.#connected === connected) this.#connected = undefined;
  }

  /**
   * Does the work again if its connection broke or another transaction was in its way, until the time is over. A server that
   * was never reached is not waited for: one search for it is enough.
   */
  async #repeated<T>(work: (query: Query) => Promise<T>): Promise<T> {
    const end = performance.now() + limitMs;
    for (let round = 0; ; round += 1) {
      try {
        const connected = await this.#connection();
        return await work(this.#queryOf(connected, end - performance.now(), limitMs));
      } catch (error) {
        const mayPass = isLoss(error) || isConflict(error);
        if (!mayPass || !this.#hasMet || performance.now() + 500 > end) throw error;
        await sleep(Math.min(1000, 50 * 2 ** round));
      }
    }
  }

  /** @param saidMs of how much time a failure speaks: a statement that is repeated has what is left of it */
  #queryOf(connected: Connected, withinMs: number, saidMs = withinMs): Query {
    return async (text, values = []) => {
      try {
        return (await within(withinMs, connected.client.query<Row>(text, [...values]), saidMs)).rows;
      } catch (error) {
        if (!endsConnection(error)) throw error;
        this.#drop(connected);
        throw isLoss(error) ? error : new LostConnection("the connection was lost", { cause: error });
      }
    };
  }
}

/** What PgBouncer says to every BEGIN if each statement may get another connection; a server never refuses one so. */
function nameStatementMode(error: unknown): never {
  if (serverErrorOf(error)?.code !== "08P01") throw error;
  throw new Failure(
    "usage",
    "The pooler before the server of the journal allows no transactions (pool_mode = statement).",
    {
      meaning: "Nothing was sent and nothing changed.",
      hint: "Use PgBouncer with pool_mode = transaction or session, or connect to the server itself.",
      cause: error,
    },
  );
}

/** Undone, because a concurrent one was first: by a stricter isolation than the server's own default, or a deadlock. */
function isConflict(error: unknown): boolean {
  return /^40(?:001|P01)$/.test(serverErrorOf(error)?.code ?? "");
}

/** Whether another connection may do better. */
function isLoss(error: unknown): boolean {
  return error instanceof LostConnection || (serverErrorOf(error) !== undefined && endsConnection(error));
}
