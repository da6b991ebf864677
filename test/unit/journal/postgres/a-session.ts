// A server in memory: what it responds to each statement is handed in, and what it was asked is kept.
import { newEntry } from "../../../../src/journal/admission.ts";
import type { Entry } from "../../../../src/journal/entry.ts";
import { type LeaseParts, moment, PostgresLease, type Taken } from "../../../../src/journal/postgres/lease.ts";
import type { Server } from "../../../../src/journal/postgres/connect.ts";
import { tablesIn } from "../../../../src/journal/postgres/schema.ts";
import type { Query, Row, Session, Write } from "../../../../src/journal/postgres/session.ts";
import { recordContent, recordHash } from "../../../../src/journal/record.ts";
import { ada, intent } from "../intent.ts";

export interface Asked {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** Rows, or an error that is thrown, for the statements in their order; no rows once they are used up. */
export type Responses = (readonly Row[] | Error)[];

/** No test asks so much. */
const mostAsked = 200;

export class ASession {
  readonly asked: Asked[] = [];
  /** What a write asks where the answer was lost. */
  readonly settled: Write["settle"][] = [];
  /** How many transactions were begun, and how many of them came to their end. */
  readonly transactions = { begun: 0, done: 0 };
  readonly #responses: Responses;
  readonly #server: Partial<Server>;

  constructor(responses: Responses = [], server: Partial<Server> = {}) {
    this.#responses = responses;
    this.#server = server;
  }

  readonly query: Query = async (text, values = []) => {
    if (this.asked.push({ text, values }) > mostAsked) throw new Error("this asks without end");
    const response = this.#responses.shift() ?? [];
    if (response instanceof Error) throw response;
    return response;
  };

  get session(): Session {
    const session: Pick<Session, "read" | "write" | "server" | "transaction"> = {
      read: (text, values) => this.query(text, values),
      write: ({ text, values, settle }) => {
        this.settled.push(settle);
        return this.query(text, values);
      },
      transaction: async (work) => {
        this.transactions.begun += 1;
        const done = await work(this.query);
        this.transactions.done += 1;
        return done;
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

/** An entry as the server keeps it. */
export function entryRow(entry: Entry, more: Row = {}): Row {
  const content = recordContent(entry, { by: ada });
  return { id: entry.id, content, hash: recordHash(content), position: 1, epoch: "1", holder: null, ...more };
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
