// A server in memory: what it responds to each statement is handed in, and what it was asked is kept.
import { newEntry } from "../../../../src/journal/admission.ts";
import type { Entry } from "../../../../src/journal/entry.ts";
import { type LeaseParts, moment, PostgresLease, type Taken } from "../../../../src/journal/postgres/lease.ts";
import type { Server } from "../../../../src/journal/postgres/connect.ts";
import { tablesIn } from "../../../../src/journal/postgres/schema.ts";
import type { Query, Row, Session, Write } from "../../../../src/journal/postgres/session.ts";
import { ada, intent } from "../intent.ts";

export interface Asked {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** Rows, or an error that is thrown, for the statements in their order; no rows once they are used up. */
export type Responses = (readonly Row[] | Error)[];

export class ASession {
  readonly asked: Asked[] = [];
  /** What a write asks where the answer was lost. */
  readonly settled: Write["settle"][] = [];
  readonly #responses: Responses;
  readonly #server: Partial<Server>;

  constructor(responses: Responses = [], server: Partial<Server> = {}) {
    this.#responses = responses;
    this.#server = server;
  }

  readonly query: Query = async (text, values = []) => {
    this.asked.push({ text, values });
    const response = this.#responses.shift() ?? [];
    if (response instanceof Error) throw response;
    return response;
  };

  get session(): Session {
    const session: Pick<Session, "read" | "write" | "server"> = {
      read: (text, values) => this.query(text, values),
      write: ({ text, values, settle }) => {
        this.settled.push(settle);
        return this.query(text, values);
      },
      server: async () => ({ isReadOnly: false, isStandby: false, encoding: "UTF8", ...this.#server }),
    };
    return session as Session;
  }
}

export function partsOf({ session }: ASession, changes: Partial<LeaseParts> = {}): LeaseParts {
  return {
    session,
    tables: tablesIn("team"),
    actor: ada,
    shown: "postgresql://h/d",
    now: () => Date.parse("2026-11-21T02:00:00.000Z"),
    leaseMs: 45_000,
    requestMs: 30_000,
    held: new Set(),
    ...changes,
  };
}

export function anEntry(changes: Partial<Entry> = {}): Entry {
  return { ...newEntry(intent(), { id: "1rs6y1ys1e", key: "k1", at: "2026-11-21T01:00:00.000Z" }), ...changes };
}

export function aLease(parts: LeaseParts, taken: Partial<Taken> = {}): PostgresLease {
  return new PostgresLease(parts, {
    entry: anEntry(),
    epoch: "7",
    position: 3,
    hash: "h3",
    askedAt: moment(),
    ...taken,
  });
}

/** A row whose lease another process has. */
export function heldRow(changes: Partial<Record<string, unknown>> = {}): Row {
  return {
    holder: JSON.stringify({ user: "bob", host: "farm", process: { pid: 4711 } }),
    epoch: "8",
    since: "2026-11-21T01:59:00.000Z",
    until: "2026-11-21T02:01:00.000Z",
    is_held: true,
    ...changes,
  };
}
