// Runs statements one at a time on the server of a team's journal. After a lost connection, reconnects and repeats a statement
// that is safe to repeat or had no effect.
import { setTimeout as sleep } from "node:timers/promises";
import { Failure } from "../../errors.ts";
import { inTurn } from "../store.ts";
import type { Address } from "./address.ts";
import { connect, type Connected, type Server } from "./connect.ts";
import { endsConnection, LostConnection, serverErrorOf, withTimeout } from "./failures.ts";

export type Row = Readonly<Record<string, unknown>>;
export type Query = (text: string, values?: readonly unknown[]) => Promise<readonly Row[]>;

export interface SessionParts {
  readonly address: Address;
  readonly check: (query: Query, server: Server) => Promise<void>;
}

export interface Write {
  readonly text: string;
  readonly values: readonly unknown[];
  /**
   * Set for a write that is not safe to repeat. Called after a lost response: returns the response's rows, or undefined
   * if the statement had no effect and may be repeated.
   */
  readonly findOutcome?: (query: Query) => Promise<readonly Row[] | undefined>;
}

/** The limit of a statement outside a transaction, with its repeats and the queries for its outcome. */
const limitMs = 10_000;

/** Makes the commit wait for the disk and the synchronous standbys, whatever the server's default is. */
export const durably = "durably AS MATERIALIZED (SELECT set_config('synchronous_commit', 'on', true) AS set)";

export class Session {
  readonly #parts: SessionParts;
  #connected: Connected | undefined;
  readonly #inTurn = inTurn();
  #wasConnected = false;

  constructor(parts: SessionParts) {
    this.#parts = parts;
  }

  read(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return this.#inTurn(() => this.#repeated((query) => query(text, values)));
  }

  write({ text, values, findOutcome = async () => undefined }: Write): Promise<readonly Row[]> {
    let wasSent = false;
    return this.#inTurn(() =>
      this.#repeated(async (query) => {
        const isRepeat = wasSent;
        const outcome = isRepeat ? await findOutcome(query) : undefined;
        if (outcome !== undefined) return outcome;
        wasSent = true;
        try {
          const rows = await query(text, values);
          // An earlier attempt whose response was lost may have taken effect.
          return (rows.length === 0 && isRepeat ? await findOutcome(query) : undefined) ?? rows;
        } catch (error) {
          // A duplicate key can be the effect of an earlier attempt.
          const found = serverErrorOf(error)?.code === "23505" ? await findOutcome(query) : undefined;
          if (found !== undefined) return found;
          throw error;
        }
      }),
    );
  }

  /** The work is never repeated. After a lost connection, the server frees the locks within a minute. */
  transaction<T>(work: (query: Query) => Promise<T>): Promise<T> {
    return this.#inTurn(async () => {
      const connected = await this.#connection();
      const query = this.#queryOf(connected, 10 * 60_000);
      // Overrides other defaults: after waiting for a lock, the work must see committed changes.
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
    this.#connected?.disconnect();
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
    this.#wasConnected = true;
    return connected;
  }

  #drop(connected: Connected): void {
    connected.disconnect();
    if (this.#connected === connected) this.#connected = undefined;
  }

  /** Repeats the work after a lost connection or conflict, up to the time limit, unless the server was never reached. */
  async #repeated<T>(work: (query: Query) => Promise<T>): Promise<T> {
    const end = performance.now() + limitMs;
    for (let round = 0; ; round += 1) {
      try {
        const connected = await this.#connection();
        return await work(this.#queryOf(connected, end - performance.now(), limitMs));
      } catch (error) {
        const mayPass = isConnectionLost(error) || isConflict(error);
        if (!mayPass || !this.#wasConnected || performance.now() + 500 > end) throw error;
        await sleep(Math.min(1000, 50 * 2 ** round));
      }
    }
  }

  /** @param shownMs the limit that a failure shows, because a repeated statement has less time */
  #queryOf(connected: Connected, withinMs: number, shownMs = withinMs): Query {
    return async (text, values = []) => {
      try {
        return (await withTimeout(withinMs, connected.client.query<Row>(text, [...values]), shownMs)).rows;
      } catch (error) {
        if (!endsConnection(error)) throw error;
        this.#drop(connected);
        throw isConnectionLost(error) ? error : new LostConnection("the connection was lost", { cause: error });
      }
    };
  }
}

/** Explains PgBouncer's error with pool_mode = statement. */
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

/** A serialization failure or deadlock, which the server rolled back. */
function isConflict(error: unknown): boolean {
  return /^40(?:001|P01)$/.test(serverErrorOf(error)?.code ?? "");
}

function isConnectionLost(error: unknown): boolean {
  return error instanceof LostConnection || (serverErrorOf(error) !== undefined && endsConnection(error));
}
