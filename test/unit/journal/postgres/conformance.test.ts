import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Actor } from "../../../../src/journal/actor.ts";
import type { EntryFilter } from "../../../../src/journal/lookup.ts";
import { initTeamJournal, openTeamJournal } from "../../../../src/journal/postgres/open.ts";
import { tablesIn } from "../../../../src/journal/postgres/schema.ts";
import { selectionOf } from "../../../../src/journal/postgres/selection.ts";
import {
  addressAt,
  askPsql,
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

  describe("with many entries", () => {
    const schema = `many_${process.pid}`;
    const ask = (text: string): string =>
      askPsql(addressAt(`127.0.0.1:${server.port}`), { password: role.password, text });

    beforeAll(async () => {
      const address = addressAt(`127.0.0.1:${server.port}`, schema);
      await initTeamJournal({ address, env, home: "/nonexistent", actor: ada });
      ask(`INSERT INTO ${schema}.integ_entries (id, operation, state, is_settled, profile, base_url, fingerprint, parent,
             replaces, resources, updated_at, content, hash, position)
           SELECT lpad(n::text, 10, '0'), 'o', 'done', n % 1000 > 0, 'p', 'b', n, n, n, ARRAY['r' || n],
             lpad(n::text, 24, '0'), repeat('c', 500), 'h', 1 FROM generate_series(1, 20000) AS n;
           ANALYZE ${schema}.integ_entries`);
    });

    test.each<[EntryFilter, string]>([
      [{}, "integ_entries_unsettled"],
      [{ actor: "ada" }, "integ_entries_unsettled"],
      [{ profile: "p", states: ["unknown", "pending"] }, "integ_entries_unsettled"],
      [{ all: true, limit: 1 }, "integ_entries_pkey"],
      [{ all: true, since: "000000000000000000019900" }, "integ_entries_updated"],
      [{ all: true, ids: ["0000000001"] }, "integ_entries_pkey"],
      [{ all: true, parent: "1" }, "integ_entries_parent"],
      [{ all: true, replaces: "1" }, "integ_entries_replaces"],
      [{ all: true, resource: "oac_1" }, "integ_entries_resources"],
      [{ all: true, item: "reporting" }, "integ_entries_resources"],
    ])("those of %j are found by the index %s", (filter, index) => {
      const { text, values } = selectionOf(filter, tablesIn(schema));
      const typed = values.map((value) =>
        Array.isArray(value) ? `ARRAY['${value.join("','")}']` : `'${String(value)}'`,
      );
      const question = text.replaceAll(/\$(\d+)/g, (_, number: string) => typed[Number(number) - 1] ?? "");
      expect(ask(`EXPLAIN ${question}`)).toContain(index);
    });
  });

  describe.skipIf(isWithoutBouncer("the conformance through PgBouncer"))("behind PgBouncer", () => {
    let bouncer: Bouncer;
    beforeAll(async () => {
      bouncer = await Bouncer.start(server);
    });
    afterAll(() => bouncer.remove());
    engineAt("the journal in PostgreSQL through PgBouncer in transaction mode", () => `127.0.0.1:${bouncer.port}`);
  });
});
