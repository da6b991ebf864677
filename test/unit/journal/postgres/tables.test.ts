// What is asked of a server before it keeps a journal, and what `journal verify` finds in one.
import { describe, expect, it } from "vitest";
import { Failure } from "../../../../src/errors.ts";
import { assertUsable, checkTables, makeTables, tablesIn } from "../../../../src/journal/postgres/schema.ts";
import { serverFindings } from "../../../../src/journal/postgres/verify.ts";
import { ASession, partsOf } from "./a-session.ts";

function failureOf(error: unknown): Failure {
  if (error instanceof Failure) return error;
  throw new Error(`no Failure: ${String(error)}`);
}

const sqlError = (code: string) => Object.assign(new Error("refused"), { code, severity: "ERROR" });
const tables = tablesIn('te"am');

describe("the tables", () => {
  it("have whole names, whatever the schema is called", () => {
    expect(tables).toEqual({
      schema: 'te"am',
      meta: '"te""am".integ_meta',
      entries: '"te""am".integ_entries',
      records: '"te""am".integ_records',
      escrow: '"te""am".integ_escrow',
    });
  });

  it("are made once, under a lock, with their version", async () => {
    const server = new ASession([[], [{ is_there: false }], [{ is_there: false }]]);
    expect(await makeTables(server.query, tables)).toEqual({ version: 2, made: true });
    const texts = server.asked.map(({ text }) => text);
    expect(texts[0]).toContain("pg_advisory_xact_lock");
    expect(server.asked[1]!.values).toEqual(['"te""am".integ_meta']);
    expect(server.asked[2]!.values).toEqual(['"te""am"']);
    expect(texts[3]).toBe('CREATE SCHEMA "te""am"');
    for (const name of ["meta", "entries", "records", "escrow"] as const)
      expect(texts.some((text) => text.startsWith(`CREATE TABLE ${tables[name]} `))).toBe(true);
    expect(texts.at(-1)).toBe(`INSERT INTO ${tables.meta} (key, value) VALUES ('version', '2')`);
  });

  it("that are there are left as they are", async () => {
    const server = new ASession([[], [{ is_there: true }], [{ value: "2" }]]);
    expect(await makeTables(server.query, tables)).toEqual({ version: 2, made: false });
    expect(server.asked).toHaveLength(4);
  });

  it("are made in a schema that is there by a role that can make no schema", async () => {
    const server = new ASession([[], [{ is_there: false }], [{ is_there: true }]]);
    expect(await makeTables(server.query, tables)).toEqual({ version: 2, made: true });
    expect(server.asked.map(({ text }) => text).join()).not.toContain("CREATE SCHEMA");
  });

  it.each([
    ["2", ['"te""am".integ_escrow'], "integ_escrow is missing"],
    ["2", ['"te""am".integ_records', '"te""am".integ_escrow'], "integ_records, integ_escrow are missing"],
    ["0", [], "integ_meta does not name the version 2"],
    [undefined, [], "integ_meta does not name the version 2"],
  ])("of version %s without %j are not completed", async (value, missing, says) => {
    const rows = missing.map((name) => ({ name }));
    const server = new ASession([[], [{ is_there: true }], value === undefined ? [] : [{ value }], rows]);
    const failure = failureOf(await makeTables(server.query, tables).catch((error: unknown) => error));
    expect(failure.kind).toBe("usage");
    expect(failure.message).toBe(`The tables of the journal in the schema te"am are not whole: ${says}.`);
    expect(failure.details.hint).toBe("Restore them from a backup, or use another schema.");
  });

  it("of a version that no row names are not used", async () => {
    const failure = failureOf(await checkTables(new ASession([[]]).query, tables).catch((error: unknown) => error));
    expect(failure.message).toContain("has tables of an unknown version; this integ");
  });

  it.each([
    ["3", { hint: "Upgrade integ, then run the command again." }],
    ["0", { nextCommand: "integ journal init" }],
  ])("of version %s are not used", async (version, step) => {
    const making = makeTables(new ASession([[], [{ is_there: true }], [{ value: version }]]).query, tables);
    const checking = checkTables(new ASession([[{ key: "version", value: version }]]).query, tables);
    making.catch(() => {});
    // What to do about older ones is what making them says.
    for (const work of version === "0" ? [checking] : [making, checking]) {
      const failure = failureOf(await work.catch((error: unknown) => error));
      expect(failure.kind).toBe("usage");
      expect(failure.message).toBe(`The team's journal has tables of version ${version}; this integ needs version 2.`);
      expect(failure.details).toMatchObject({ meaning: "Nothing was sent and nothing changed.", ...step });
    }
  });

  it.each(["42P01", "3F000"])("that are missing (%s) are to be made", async (code) => {
    const work = checkTables(new ASession([sqlError(code)]).query, tables);
    const failure = failureOf(await work.catch((error: unknown) => error));
    expect([failure.kind, failure.details.nextCommand]).toEqual(["usage", "integ journal init"]);
    expect(failure.message).toContain('The schema te"am of this database does not have a journal yet.');
  });

  it("that the role may not read are another matter", async () => {
    const refused = sqlError("42501");
    await expect(checkTables(new ASession([refused]).query, tables)).rejects.toBe(refused);
  });

  it("of this version are used", async () => {
    const rows = [
      { key: "other", value: "9" },
      { key: "version", value: "2" },
    ];
    await expect(checkTables(new ASession([rows]).query, tables)).resolves.toBeUndefined();
  });

  it("need a database in UTF8", () => {
    const server = { isReadOnly: false, isStandby: false };
    expect(() => assertUsable({ ...server, encoding: "UTF8" })).not.toThrow();
    expect(() => assertUsable({ ...server, encoding: "LATIN1" })).toThrow(
      "has the encoding LATIN1, and UTF8 is needed",
    );
  });
});

const safe = { fsync: "on", commits: "on", standbys: "", pages: "on", replicas: 0 };

describe("a server", () => {
  it.each<[string, object, object, string[]]>([
    ["that forgets nothing", {}, {}, []],
    ["with every commit on its standbys", { commits: "remote_apply", standbys: "a", replicas: 1 }, {}, []],
    ["without fsync", { fsync: "off" }, {}, ["problem: fsync is off"]],
    ["without whole pages", { pages: "off" }, {}, ["warning: full_page_writes is off"]],
    ["that is a standby", {}, { isStandby: true, isReadOnly: true }, ["problem: the server is a standby"]],
    ["that is read-only", {}, { isReadOnly: true }, ["problem: the server is read-only"]],
    ["that commits before the disk", { commits: "off" }, {}, ["warning: synchronous_commit is off"]],
    ["that commits to its own disk", { commits: "local" }, {}, ["warning: synchronous_commit is local"]],
    [
      "without a table",
      { is_escrow_missing: true, may_keep: null },
      {},
      ["problem: the table integ_escrow is missing"],
    ],
    ["whose role may not record", { may_record: false, role: "r" }, {}, ["warning: the role r may not record changes"]],
    ["whose role may not keep", { may_keep: false, role: "r" }, {}, ["warning: the role r may not keep encrypted"]],
    ["with replicas that lag", { replicas: 2 }, {}, ["warning: its replicas are asynchronous"]],
    ["with replicas that are waited for", { replicas: 2, standbys: "a" }, {}, []],
    ["whose standbys are named and absent", { standbys: "a" }, {}, []],
    [
      "with everything wrong",
      { fsync: "off", pages: "off", commits: "off", replicas: 1 },
      { isReadOnly: true },
      [
        "problem: fsync is off",
        "warning: full_page_writes is off",
        "problem: the server is read-only",
        "warning: synchronous_commit is off",
        "warning: its replicas are asynchronous",
      ],
    ],
  ])("%s", async (_what, row, server, expected) => {
    const found = await serverFindings(partsOf(new ASession([[{ ...safe, ...row }]], server)));
    const said = found.map(({ severity, message }) => `${severity}: ${message}`);
    expect(said).toEqual(expected.map((start) => expect.stringMatching(new RegExp(`^${start}`))));
    expect(new Set(found.map(({ where }) => where)).size).toBeLessThanOrEqual(1);
    if (found[0]) expect(found[0].where).toBe("postgresql://h/d");
  });
});
