import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Actor } from "../../src/journal/actor.ts";
import { StoredJournal } from "../../src/journal/journal.ts";
import type { EntryFilter } from "../../src/journal/lookup.ts";
import { initTeamJournal, openTeamStore } from "../../src/journal/postgres/postgres-store.ts";
import { tablesIn } from "../../src/journal/postgres/schema.ts";
import type { Signed } from "../../src/journal/record.ts";
import { selectionOf } from "../../src/journal/postgres/rows.ts";
import { testKeys } from "../support/file-journal.ts";
import { addressAt, Bouncer, PostgresServer, role } from "../support/postgres.ts";
import { journalConformance } from "../unit/journal/conformance.ts";
import { ada, clock, intent } from "../unit/journal/intent.ts";
import { isMissing } from "../support/tools.mjs";

const env = { PGPASSWORD: role.password };
let schemas = 0;

async function tamper(address: string, id: string, change: (records: Signed[]) => Signed[]): Promise<void> {
  const url = new URL(address);
  const schema = /search_path=(\w+)/.exec(decodeURIComponent(url.search))![1]!;
  const { name: user, password } = role;
  const at = { host: url.hostname, port: Number(url.port), user, database: user, password };
  const client = new Client(at);
  await client.connect();
  try {
    const text = `DELETE FROM ${schema}.integ_records WHERE entry = $1 RETURNING content, mac`;
    const numberOf = ({ content }: Signed): number => Number(/"n":(\d+)/.exec(content)![1]);
    const byNumber = (one: Signed, other: Signed): number => numberOf(one) - numberOf(other);
    const changed = change((await client.query<Signed>(text, [id])).rows.toSorted(byNumber));
    const numbers = changed.toSorted(byNumber).map(numberOf);
    for (const [index, { content, mac }] of changed.entries())
      await client.query(`INSERT INTO ${schema}.integ_records VALUES ($1, $2, 1, $3, $4)`, [
        id,
        numbers[index],
        content,
        mac,
      ]);
    await client.query(`UPDATE ${schema}.integ_entries SET content = $2 WHERE id = $1`, [id, changed.at(-1)!.content]);
  } finally {
    await client.end();
  }
}

function engineAt(name: string, hosts: () => string, { isSampled = false } = {}): void {
  journalConformance({
    name,
    isSampled,
    busy: "outcome_unknown",
    store: async () => {
      const address = addressAt(hosts(), `s${process.pid}_${(schemas += 1)}`);
      const parts = { address, env };
      await initTeamJournal({ ...parts, actor: ada });
      const shared = clock();
      return {
        open: ({ waitMs = 60, now = shared, actor = ada as Actor, keys = testKeys } = {}) => {
          const lasting = { requestMs: 30_000, leaseMs: 45_000 };
          const journal = new StoredJournal(openTeamStore({ ...parts, ...lasting, actor }), {
            now,
            actor,
            waitMs,
            keys,
          });
          onTestFinished(() => journal.close());
          return journal;
        },
        tamper: (id, change) => tamper(address, id, change),
      };
    },
  });
}

const isSkipped = isMissing("PostgreSQL");

describe.skipIf(isSkipped)("with PostgreSQL", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await PostgresServer.start();
  });
  afterAll(() => server.remove());
  engineAt("the journal in PostgreSQL", () => `127.0.0.1:${server.port}`);

  describe("with many entries", () => {
    const schema = `many_${process.pid}`;
    const ask = async (text: string): Promise<string> => JSON.stringify(await server.sql(text, role.name));

    beforeAll(async () => {
      const address = addressAt(`127.0.0.1:${server.port}`, schema);
      await initTeamJournal({ address, env, actor: ada });
      await ask(`INSERT INTO ${schema}.integ_entries (id, about, actors, is_settled, updated_at, content, n)
           SELECT lpad(n::text, 10, '0'), ARRAY['state done', 'profile p', 'parent ' || n, 'replaces ' || n, 'resource r' || n],
             ARRAY['ada'], n % 1000 > 0, lpad(n::text, 24, '0'), repeat('c', 500), 1 FROM generate_series(1, 20000) AS n;
           ANALYZE ${schema}.integ_entries`);
    });

    test.each<[EntryFilter, string]>([
      [{}, "integ_entries_unsettled"],
      [{ actor: "ada" }, "integ_entries_unsettled"],
      [{ profile: "p", states: ["unknown", "pending"] }, "integ_entries_unsettled"],
      [{ all: true, limit: 1 }, "integ_entries_pkey"],
      [{ all: true, since: "000000000000000000019900" }, "integ_entries_updated"],
      [{ all: true, ids: ["0000000001"] }, "integ_entries_pkey"],
      [{ all: true, parent: "1" }, "integ_entries_about"],
      [{ all: true, replaces: "1" }, "integ_entries_about"],
      [{ all: true, resource: "oac_1" }, "integ_entries_about"],
      [{ all: true, item: "reporting" }, "integ_entries_about"],
    ])("entries of %j are found by the index %s", async (filter, index) => {
      const { text, values } = selectionOf(filter, tablesIn(schema), { limit: filter.limit ?? 1000 });
      const typed = values.map((value) =>
        Array.isArray(value) ? `ARRAY['${value.join("','")}']` : `'${String(value)}'`,
      );
      const statement = text.replaceAll(/\$(\d+)/g, (_, number: string) => typed[Number(number) - 1] ?? "");
      expect(await ask(`EXPLAIN ${statement}`)).toContain(index);
    });
  });

  const storeIn = async (schema: string) => {
    const parts = { address: addressAt(`127.0.0.1:${server.port}`, schema), env, actor: ada };
    await initTeamJournal(parts);
    return (leaseMs = 45_000) => {
      const store = openTeamStore({ ...parts, requestMs: 200, leaseMs });
      const journal = new StoredJournal(store, { now: clock(), actor: ada, waitMs: 2000, keys: testKeys });
      onTestFinished(() => journal.close());
      return journal;
    };
  };

  const ownClient = async (): Promise<Client> => {
    const { name: user, password } = role;
    const at = { host: "127.0.0.1", port: server.port, user, database: user, password: async () => password };
    const rest = { ssl: false, sslnegotiation: "postgres", application_name: "test", keepAlive: false } as const;
    const client = new Client({ ...at, ...rest });
    await client.connect();
    return client;
  };

  test("an edited row is detected, in every column", async () => {
    const schema = `edited_${process.pid}`;
    const open = await storeIn(schema);
    const other = await open().admit(intent({ fingerprint: "other" }));
    await other.lease.release();
    const { id } = other.lease.entry;
    const { lease } = await open().admit(intent({ replaces: id, parent: id }));
    await lease.record({ state: "unknown" });
    await lease.release();
    expect(await open().verify()).toEqual([]);
    const edits: Readonly<Record<string, string>> = {
      integ_entries: `about = '{x}'; actors = '{x}'; is_settled = true; key = NULL; updated_at = '2020'; n = 1;
        content = replace(content, 'unknown', 'refused')`,
      integ_records: "n = n + 5",
    };
    const client = await ownClient();
    try {
      for (const [table, all] of Object.entries(edits))
        for (const edit of all.split(";")) {
          await client.query(`CREATE TABLE kept AS TABLE ${schema}.${table}`);
          await client.query(
            `UPDATE ${schema}.${table} SET ${edit} WHERE ${table === "integ_entries" ? "id" : "entry"} = '${lease.entry.id}'`,
          );
          const findings = await open().verify();
          expect(findings, `${table}: ${edit}`).toContainEqual(expect.objectContaining({ severity: "problem" }));
          await client.query(`DELETE FROM ${schema}.${table}`);
          await client.query(`INSERT INTO ${schema}.${table} TABLE kept`);
          await client.query("DROP TABLE kept");
        }
    } finally {
      await client.end();
    }
    expect(await open().verify()).toEqual([]);
  });

  test("an edited row permits nothing and is not signed, until a person trusts its records again", async () => {
    const schema = `forged_${process.pid}`;
    const open = await storeIn(schema);
    const { lease } = await open().admit(intent());
    await lease.release();
    const { id, request_text, idempotency_key } = lease.entry;
    const client = await ownClient();
    const edit = "content = replace(content, 'sa_1', 'sa_2'), key = NULL, actors = actors || '{eve}'::text[]";
    await client.query(`UPDATE ${schema}.integ_entries SET ${edit}`);
    await client.end();
    expect((await open().find(id)).request_text).not.toBe(request_text);
    expect([...(await open().untrusted([id]))]).toEqual([id]);
    const edited = await open().lease(id);
    expect(await edited.isTrusted()).toBe(false);
    await expect(edited.record({ state: "done" })).rejects.toThrow("is not as this process left it");
    await edited.release();
    await open().trust(await open().recordsOf([id]));
    const trusted = await open().lease(id);
    expect([await trusted.isTrusted(), trusted.entry.request_text]).toEqual([true, request_text]);
    await trusted.record({ state: "done" });
    await trusted.release();
    expect(await open().verify()).toEqual([]);
    const again = await open().admit(intent(), { key: idempotency_key! });
    expect([again.kind, await open().select({ all: true, actor: "eve" })]).toEqual(["same_key", []]);
    await again.lease.release();
  });

  test.each(["DELETE FROM", "UPDATE"])("a holder reports that another program changed its entry: %s", async (verb) => {
    const schema = `restored_${process.pid}_${verb.length}`;
    const { lease } = await (await storeIn(schema))().admit(intent());
    const client = await ownClient();
    await client.query(`${verb} ${schema}.integ_entries ${verb === "UPDATE" ? "SET n = 7" : ""}`);
    await client.end();
    await expect(lease.record({ state: "done" })).rejects.toThrow("is not as this process left it");
  });

  test("no operation starts while the journal is moved, and a paused holder records nothing more", async () => {
    const schema = `moved_${process.pid}`;
    const open = await storeIn(schema);
    const { lease: paused } = await open(300).admit(intent());
    const { lease: released } = await open().admit(intent({ fingerprint: "2" }));
    await released.release();
    await new Promise((done) => setTimeout(done, 400));
    const client = await ownClient();
    const waiting = async (count: number): Promise<void> => {
      const text = "SELECT count(*)::int AS count FROM pg_locks WHERE NOT granted";
      for (let row; row?.count !== count; ) [row] = (await client.query(text)).rows;
    };
    try {
      // The steps of `markMoved`. Other operations start between its lock and its mark.
      await client.query("BEGIN");
      await client.query(`LOCK TABLE ${schema}.integ_entries IN SHARE ROW EXCLUSIVE MODE`);
      const started = [open().admit(intent({ fingerprint: "3" })), open().lease(released.entry.id)];
      const ends = Promise.allSettled(started);
      await waiting(started.length);
      await client.query(`INSERT INTO ${schema}.integ_meta VALUES ('moved_to', '/there')`);
      await client.query("COMMIT");
      for (const end of await ends)
        expect(end).toMatchObject({
          status: "rejected",
          reason: { kind: "usage", message: expect.stringContaining("were moved to /there") },
        });
    } finally {
      await client.end();
    }
    const marking = open();
    await marking.markMoved({ to: "/there", isUnfinished: false });
    await expect(paused.record({ state: "done" })).rejects.toThrow("was taken over");
    expect(await marking.count()).toBe(2);
  });

  describe.skipIf(isMissing("PostgreSQL", "PgBouncer"))("behind PgBouncer", () => {
    let bouncer: Bouncer;
    beforeAll(async () => {
      bouncer = await Bouncer.start(server);
    });
    afterAll(() => bouncer.remove());
    engineAt("the journal in PostgreSQL through PgBouncer in transaction mode", () => `127.0.0.1:${bouncer.port}`, {
      isSampled: true,
    });
  });
});
