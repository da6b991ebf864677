import { describe, expect, it } from "vitest";
import { Failure } from "../../../../src/errors.ts";
import { assertUsable, checkTables, makeTables, tablesIn } from "../../../../src/journal/postgres/schema.ts";
import { serverFindings } from "../../../../src/journal/postgres/verify.ts";
import { nothingSent } from "../../../../src/journal/store.ts";
import { ASession, partsOf } from "./a-session.ts";

function failureOf(error: unknown): Failure {
  if (error instanceof Failure) return error;
  throw new Error(`no Failure: ${String(error)}`);
}

const sqlError = (code: string) => Object.assign(new Error("refused"), { code, severity: "ERROR" });
const tables = tablesIn('te"am');

describe("the tables", () => {
  it("have full names, whatever the schema is called", () => {
    expect(tables).toEqual({
      schema: 'te"am',
      meta: '"te""am".integ_meta',
      entries: '"te""am".integ_entries',
      records: '"te""am".integ_records',
      escrow: '"te""am".integ_escrow',
    });
  });

  const none = Object.values(tables)
    .slice(1)
    .map((name) => ({ name }));

  it("are created once, under a lock, with their version", async () => {
    const server = new ASession([[], none, [{ is_there: false }]]);
    expect(await makeTables(server.query, tables)).toEqual({ version: 3, isNew: true });
    const texts = server.statements.map(({ text }) => text);
    expect(texts[0]).toContain("pg_advisory_xact_lock");
    expect(server.statements[2]!.values).toEqual(['"te""am"']);
    expect(texts[3]).toBe('CREATE SCHEMA "te""am"');
    for (const name of ["meta", "entries", "records", "escrow"] as const)
      expect(texts.some((text) => text.startsWith(`CREATE TABLE ${tables[name]} `))).toBe(true);
    expect(texts.at(-1)).toBe(`INSERT INTO ${tables.meta} (key, value) VALUES ('version', '3')`);
  });

  it("are left unchanged if they exist", async () => {
    const server = new ASession([[], [], [{ value: "3" }]]);
    expect(await makeTables(server.query, tables)).toEqual({ version: 3, isNew: false });
    expect(server.statements).toHaveLength(3);
  });

  it("can be created in an existing schema by a role that cannot create schemas", async () => {
    const server = new ASession([[], none, [{ is_there: true }]]);
    expect(await makeTables(server.query, tables)).toEqual({ version: 3, isNew: true });
    expect(server.statements.map(({ text }) => text).join()).not.toContain("CREATE SCHEMA");
  });

  it("are not completed if some are missing", async () => {
    const missing = ['"te""am".integ_records', '"te""am".integ_escrow'].map((name) => ({ name }));
    const server = new ASession([[], missing]);
    const failure = failureOf(await makeTables(server.query, tables).catch((error: unknown) => error));
    expect(failure.kind).toBe("usage");
    expect(failure.message).toBe('The tables of the journal in the schema te"am lack integ_records, integ_escrow.');
    expect(failure.details.hint).toBe("Restore them from a backup, or use another schema.");
  });

  it.each([
    ["4", "version 4", "Upgrade integ, then run the command again."],
    ["0", "version 0", "Restore them from a backup, or use another schema."],
    [undefined, "an unknown version", "Restore them from a backup, or use another schema."],
  ])("of version %s are not used", async (value, is, hint) => {
    const rows = value === undefined ? [] : [{ value }];
    const [making, checking] = [new ASession([[], [], rows]), new ASession([rows])];
    for (const work of [() => makeTables(making.query, tables), () => checkTables(checking.query, tables)]) {
      const failure = failureOf(await work().catch((error: unknown) => error));
      expect(failure.kind).toBe("usage");
      expect(failure.message).toBe(`The team's journal has tables of ${is}; this integ needs version 3.`);
      expect(failure.details).toEqual({ meaning: nothingSent, hint });
    }
  });

  it.each(["42P01", "3F000"])("that are missing (%s) must be created", async (code) => {
    const work = checkTables(new ASession([sqlError(code)]).query, tables);
    const failure = failureOf(await work.catch((error: unknown) => error));
    expect([failure.kind, failure.details.nextCommand]).toEqual(["usage", "integ journal init"]);
    expect(failure.message).toContain('The schema te"am of this database does not have a journal yet.');
  });

  it("that the role may not read are a different error", async () => {
    const refused = sqlError("42501");
    await expect(checkTables(new ASession([refused]).query, tables)).rejects.toBe(refused);
  });

  it("of this version are used", async () => {
    await expect(checkTables(new ASession([[{ value: "3" }]]).query, tables)).resolves.toBeUndefined();
  });

  it("need a database in UTF8", () => {
    const server = { isReadOnly: false };
    expect(() => assertUsable({ ...server, encoding: "UTF8" })).not.toThrow();
    expect(() => assertUsable({ ...server, encoding: "LATIN1" })).toThrow(
      "has the encoding LATIN1, and UTF8 is needed",
    );
  });
});

const safe = { fsync: "on", commits: "on", standbys: "", pages: "on", replicas: 0 };

describe("a server", () => {
  it.each<[string, object, object, string[]]>([
    ["that loses nothing", {}, {}, []],
    ["with every commit on its standbys", { commits: "remote_apply", standbys: "a", replicas: 1 }, {}, []],
    ["without fsync", { fsync: "off" }, {}, ["problem: fsync is off"]],
    ["without whole pages", { pages: "off" }, {}, ["warning: full_page_writes is off"]],
    ["that is a standby", {}, { standby: true, read_only: true }, ["problem: the server is a standby"]],
    ["that is read-only", {}, { read_only: true }, ["problem: the server is read-only"]],
    ["that commits before the disk", { commits: "off" }, {}, ["warning: synchronous_commit is off"]],
    ["that commits to its own disk", { commits: "local" }, {}, ["warning: synchronous_commit is local"]],
    [
      "without a table",
      { is_escrow_missing: true, may_keep: null },
      {},
      ["problem: the table integ_escrow is missing"],
    ],
    [
      "whose role may not write records",
      { may_record: false, role: "r" },
      {},
      ["warning: the role r may not record changes"],
    ],
    [
      "whose role may not keep secrets",
      { may_keep: false, role: "r" },
      {},
      ["warning: the role r may not keep encrypted"],
    ],
    ["with replicas that lag", { replicas: 2 }, {}, ["warning: its replicas are asynchronous"]],
    ["with synchronous replicas", { replicas: 2, standbys: "a" }, {}, []],
    ["whose standbys are named and absent", { standbys: "a" }, {}, []],
    [
      "with everything wrong",
      { fsync: "off", pages: "off", commits: "off", replicas: 1 },
      { read_only: true },
      [
        "problem: fsync is off",
        "warning: full_page_writes is off",
        "problem: the server is read-only",
        "warning: synchronous_commit is off",
        "warning: its replicas are asynchronous",
      ],
    ],
  ])("%s", async (_what, row, server, expected) => {
    const found = await serverFindings(partsOf(new ASession([[{ ...safe, ...row, ...server }]])));
    const texts = found.map(({ severity, message }) => `${severity}: ${message}`);
    expect(texts).toEqual(expected.map((start) => expect.stringMatching(new RegExp(`^${start}`))));
    expect(new Set(found.map(({ where }) => where)).size).toBeLessThanOrEqual(1);
    if (found[0]) expect(found[0].where).toBe("postgresql://h/d");
  });
});
