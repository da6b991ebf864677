import { afterAll, beforeAll, describe, onTestFinished } from "vitest";
import type { Actor } from "../../../../src/journal/actor.ts";
import { initTeamJournal, openTeamJournal } from "../../../../src/journal/postgres/open.ts";
import {
  addressAt,
  Bouncer,
  isWithoutBouncer,
  isWithoutPostgres,
  PostgresServer,
  role,
} from "../../../support/postgres.ts";
import { journalConformance } from "../conformance.ts";
import { ada, clock } from "../intent.ts";

const env = { PGPASSWORD: role.password };
let schemas = 0;

function engineAt(name: string, hosts: () => string): void {
  journalConformance({
    name,
    busy: "outcome_unknown",
    store: async () => {
      const address = addressAt(hosts(), `s${process.pid}_${(schemas += 1)}`);
      const parts = { address, env, home: "/nonexistent" };
      await initTeamJournal({ ...parts, actor: ada });
      const shared = clock();
      return {
        open: ({ waitMs = 60, now = shared, actor = ada as Actor } = {}) => {
          const lasting = { requestMs: 30_000, leaseMs: 45_000 };
          const journal = openTeamJournal({ ...parts, ...lasting, now, actor, waitMs });
          onTestFinished(() => journal.close());
          return journal;
        },
      };
    },
  });
}

const isSkipped = isWithoutPostgres("the conformance of the journal in PostgreSQL");

describe.skipIf(isSkipped)("with PostgreSQL", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await PostgresServer.start();
  });
  afterAll(() => server.remove());
  engineAt("the journal in PostgreSQL", () => `127.0.0.1:${server.port}`);

  describe.skipIf(isWithoutBouncer("the conformance through PgBouncer"))("behind PgBouncer", () => {
    let bouncer: Bouncer;
    beforeAll(async () => {
      bouncer = await Bouncer.start(server);
    });
    afterAll(() => bouncer.remove());
    engineAt("the journal in PostgreSQL through PgBouncer in transaction mode", () => `127.0.0.1:${bouncer.port}`);
  });
});
