import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { Failure } from "../../src/errors.ts";
import { readAddress } from "../../src/journal/postgres/address.ts";
import { connect, type Server } from "../../src/journal/postgres/connect.ts";
import { Session } from "../../src/journal/postgres/session.ts";
import { PostgresServer, role } from "../support/postgres.ts";
import { folder } from "../unit/journal/intent.ts";
import { isMissing } from "../support/tools.mjs";

const isSkipped = isMissing("PostgreSQL");
const login = { PGPASSWORD: role.password };

describe.skipIf(isSkipped)("a server", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await PostgresServer.start();
  });
  afterAll(() => server.remove());

  const at = (hosts: string, query = "", user: string = role.name): string =>
    `postgresql://${user}@${hosts}/${role.name}?${query}`;
  const here = (query = ""): string => at(`127.0.0.1:${server.port}`, query);

  interface Around {
    readonly env?: Readonly<Record<string, string>>;
    readonly user?: string;
  }

  async function serverAt(text: string, { env = login, user = "nobody" }: Around = {}) {
    const { client, server: found, disconnect } = await connect(readAddress(text, { env, user }));
    const { rows } = await client.query(
      "SELECT current_user AS name, current_database() AS base, current_setting('application_name') AS app",
    );
    disconnect();
    return { ...found, ...rows[0] };
  }

  async function refusalOf(text: string, around: Around = {}): Promise<Error> {
    const error: unknown = await serverAt(text, around).catch((thrown: unknown) => thrown);
    if (error instanceof Error) return error;
    throw new Error(`connected: ${JSON.stringify(error)}`);
  }

  describe("a session connects", () => {
    it("after a short wait if all connections are in use", async () => {
      await server.sql("CREATE ROLE lone LOGIN PASSWORD 'of-a-test' CONNECTION LIMIT 1");
      const text = at(`127.0.0.1:${server.port}`, "", "lone");
      const { disconnect } = await connect(readAddress(text, { env: login }));
      const waiting = serverAt(text);
      await new Promise((done) => setTimeout(done, 300));
      disconnect();
      expect(await waiting).toMatchObject({ name: "lone" });
    });

    it("by the folder of a Unix socket", async () => {
      const socket = encodeURIComponent(server.folder);
      const text = `postgresql://postgres@${socket}:${server.port}/postgres`;
      expect(await serverAt(text, { env: {} })).toMatchObject({ name: "postgres", base: "postgres" });
    });
  });

  describe("a session does not connect", () => {
    it.each(["require", "verify-ca", "verify-full"])("without TLS if sslmode is %s", async (mode) => {
      expect((await refusalOf(here(`sslmode=${mode}`))).message).toBe("the server offers no TLS (ssl = off)");
    });
  });

  describe("a session reads the password from the PGPASSFILE file", () => {
    const fileWith = (text: string, mode = 0o600): string => {
      const path = join(folder(), "passwords");
      writeFileSync(path, text);
      chmodSync(path, mode);
      vi.stubEnv("PGPASSFILE", path);
      onTestFinished(() => void vi.unstubAllEnvs());
      return path;
    };

    it("in the first matching line, unless others can read the file", async () => {
      const { port } = server;
      const line = `127.0.0.1:${port}:${role.name}:${role.name}:${role.password}`;
      fileWith(`# ${line}\nother:*:*:*:x\n${line}\n`);
      expect(await serverAt(here(), { env: {} })).toMatchObject({ name: role.name });
      const path = fileWith(line, 0o640);
      const failure = await refusalOf(here(), { env: {} });
      expect((failure as Failure).details.meaning).toContain(`"${path}" has group or world access`);
    });
  });

  describe("an open session", () => {
    let checks: Server[];
    const session = (check: () => void = () => {}): Session => {
      checks = [];
      const created = new Session({
        address: readAddress(here(), { env: login }),
        check: async (query, found) => {
          checks.push(found);
          expect(await query("SELECT 1 AS one")).toEqual([{ one: 1 }]);
          check();
        },
      });
      onTestFinished(() => created.close());
      return created;
    };
    const mine = `FROM pg_stat_activity WHERE usename = '${role.name}'`;
    const endAll = (): Promise<unknown> => server.sql(`SELECT pg_terminate_backend(pid) ${mine}`);
    /** A statement whose first call waits until the test ends the connection. */
    const slow = "SELECT pg_sleep(CASE WHEN nextval('calls') = 1 THEN 30 ELSE 0 END)::text AS slept";
    const endSlow = async (): Promise<void> => {
      for (;;) {
        const [row] = await server.sql(`SELECT count(*)::int AS sleeping ${mine} AND wait_event = 'PgSleep'`);
        if (row?.sleeping === 1) break;
        await new Promise((done) => setTimeout(done, 20));
      }
      await endAll();
    };
    const firstCall = async (open: Session): Promise<void> => {
      await open.read("DROP SEQUENCE IF EXISTS calls");
      await open.read("CREATE SEQUENCE calls");
    };

    it("checks whether a write with a lost response took effect, and repeats it only if it did not", async () => {
      const open = session();
      const cut = async (found: readonly object[] | undefined) => {
        let settleCalls = 0;
        const findOutcome = async () => {
          settleCalls += 1;
          return found as readonly Record<string, unknown>[] | undefined;
        };
        await firstCall(open);
        const writing = open.write({ text: slow, values: [], findOutcome });
        await endSlow();
        return { rows: await writing, settleCalls };
      };
      expect(await cut([{ id: "1" }])).toEqual({ rows: [{ id: "1" }], settleCalls: 1 });
      expect(await cut(undefined)).toEqual({ rows: [{ slept: "" }], settleCalls: 1 });
      // As if the first attempt completed after the check: the second attempt changes no row.
      const late = [undefined, [{ id: "1" }]];
      await firstCall(open);
      const nothing = `WITH done AS MATERIALIZED (${slow}) SELECT slept FROM done WHERE slept <> ''`;
      const writing = open.write({ text: nothing, values: [], findOutcome: async () => late.shift() });
      await endSlow();
      expect(await writing).toEqual([{ id: "1" }]);
      const calm = await open.write({ text: "SELECT 7 AS seven", values: [], findOutcome: async () => [{ never: 1 }] });
      expect(calm).toEqual([{ seven: 7 }]);
    });

    it("commits a transaction completely or not at all, durably, and never twice", async () => {
      await server.sql(`ALTER ROLE ${role.name} SET default_transaction_isolation = serializable`);
      onTestFinished(async () => {
        await server.sql(`ALTER ROLE ${role.name} RESET default_transaction_isolation`);
      });
      const open = session();
      const settings = await open.transaction(async (query) => {
        await query("CREATE TABLE kept (n int)");
        await query("INSERT INTO kept VALUES (1)");
        return query(
          `SELECT current_setting('synchronous_commit') AS sync, current_setting('idle_in_transaction_session_timeout') AS idle,
             current_setting('transaction_isolation') AS isolation`,
        );
      });
      expect(settings).toEqual([{ sync: "on", idle: "1min", isolation: "read committed" }]);
      const failing = open.transaction(async (query) => {
        await query("INSERT INTO kept VALUES (2)");
        throw new Error("changed its mind");
      });
      await expect(failing).rejects.toThrow("changed its mind");
      expect(await open.read("SELECT n FROM kept")).toEqual([{ n: 1 }]);
      let runs = 0;
      const cut = open.transaction(async (query) => {
        runs += 1;
        await query("INSERT INTO kept VALUES (3)");
        await endAll();
        await query("SELECT 1");
      });
      await expect(cut).rejects.toBeInstanceOf(Error);
      expect(runs).toBe(1);
      expect(await open.read("SELECT n FROM kept")).toEqual([{ n: 1 }]);
      expect(await open.read("SELECT current_setting('idle_in_transaction_session_timeout') AS idle")).toEqual([
        { idle: "0" },
      ]);
    });
  });
});
