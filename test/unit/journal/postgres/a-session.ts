// A session without a server: the test provides the responses and reads the statements.
import type { PostgresParts } from "../../../../src/journal/postgres/schema.ts";
import { tablesIn } from "../../../../src/journal/postgres/schema.ts";
import type { Query, Row, Session, Write } from "../../../../src/journal/postgres/session.ts";
import { ada } from "../intent.ts";

export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** Each statement gets the next rows or error. Statements after the last response get no rows. */
export type Responses = (readonly Row[] | Error)[];

const maxStatements = 200;

export class ASession {
  readonly statements: Statement[] = [];
  /** The queries that the writes would send after a lost response. */
  readonly outcomeQueries: Write["findOutcome"][] = [];
  readonly transactions = { begun: 0, done: 0 };
  readonly #responses: Responses;

  constructor(responses: Responses = []) {
    this.#responses = responses;
  }

  readonly query: Query = async (text, values = []) => {
    if (this.statements.push({ text, values }) > maxStatements) throw new Error("this sends statements without end");
    const response = this.#responses.shift() ?? [];
    if (response instanceof Error) throw response;
    return response;
  };

  get session(): Session {
    const session: Pick<Session, "read" | "write" | "transaction"> = {
      read: (text, values) => this.query(text, values),
      write: ({ text, values, findOutcome }) => {
        this.outcomeQueries.push(findOutcome);
        return this.query(text, values);
      },
      transaction: async (work) => {
        this.transactions.begun += 1;
        const done = await work(this.query);
        this.transactions.done += 1;
        return done;
      },
    };
    return session as Session;
  }
}

export function partsOf({ session }: ASession, changes: Partial<PostgresParts> = {}): PostgresParts {
  return {
    session,
    tables: tablesIn("team"),
    actor: ada,
    shown: "postgresql://h/d",
    leaseMs: 45_000,
    requestMs: 30_000,
    ...changes,
  };
}
