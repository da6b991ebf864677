import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { Team } from "../support/administrators.ts";
import { addressAt, Bouncer, type PoolMode, PostgresServer } from "../support/postgres.ts";
import type { Home } from "../support/program.ts";
import { creationWords, type Service, startService } from "../support/service.ts";
import { isMissing } from "../support/tools.mjs";

let server: PostgresServer;
let standby: PostgresServer;
let service: Service;

const create = (...more: string[]): string[] => creationWords(service, "--new", ...more);

async function journalRow(at: Home): Promise<{ status: string; message: string } | undefined> {
  const { data } = JSON.parse((await at.integ(["doctor", "--json"])).stdout) as {
    data: { check: string; status: string; message: string }[];
  };
  return data.find(({ check }) => check === "journal");
}

async function requests(): Promise<number> {
  return ((await service.control("GET")) as { requests: unknown[] }).requests.length;
}

async function untilReplicated(): Promise<void> {
  const text = "SELECT FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()";
  for (let look = 0; look < 400 && (await server.sql(text)).length === 0; look += 1)
    await new Promise((resolve) => setTimeout(resolve, 25));
}

describe.skipIf(isMissing("PostgreSQL"))("a team's journal", () => {
  beforeAll(async () => {
    [server, service] = await Promise.all([PostgresServer.start(), startService()]);
    standby = await PostgresServer.start({ standbyOf: server });
  });
  afterAll(async () => {
    await service?.stop();
    await standby?.remove();
    await server?.remove();
  });

  it("doctor and journal verify warn of an asynchronous replica, but not of a synchronous one", async () => {
    const ada = await (await Team.of(server, service)).administrator();
    const asynchronous = "its replicas are asynchronous: a failover can lose the newest records";
    expect(await journalRow(ada)).toMatchObject({ status: "warning", message: expect.stringContaining(asynchronous) });
    const verified = await ada.integ(["journal", "verify"]);
    expect([verified.code, verified.stdout + verified.stderr]).toEqual([0, expect.stringContaining(asynchronous)]);
    await server.sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
    await server.sql("SELECT pg_reload_conf()");
    onTestFinished(async () => {
      await server.sql("ALTER SYSTEM RESET synchronous_standby_names");
      await server.sql("SELECT pg_reload_conf()");
    });
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(await journalRow(ada)).toMatchObject({ status: "ok" });
  });

  it("a standby is read and never changed; among several hosts the primary is found", async () => {
    const team = await Team.of(server, service);
    const ada = await team.administrator();
    expect((await ada.integ(create("--secret-file", "a"))).code).toBe(0);
    await untilReplicated();
    const primary = `127.0.0.1:${server.port}`;
    const second = `127.0.0.1:${standby.port}`;
    const alone = { env: { INTEG_JOURNAL: addressAt(second, team.schema) } };
    const before = await requests();
    const refused = await ada.integ(create("--secret-file", "b"), alone);
    expect([refused.code, refused.stderr]).toEqual([11, expect.stringContaining("is read-only")]);
    expect(await requests()).toBe(before);
    const list = await ada.integ(["journal", "list", "--all", "--json"], alone);
    expect((JSON.parse(list.stdout) as { data: unknown[] }).data).toHaveLength(1);
    const verified = await ada.integ(["journal", "verify", "--json"], alone);
    expect([verified.code, verified.stdout]).toEqual([10, expect.stringContaining("the server is a standby")]);
    const both = { env: { INTEG_JOURNAL: addressAt(`${second},${primary}`, team.schema) } };
    const created = await ada.integ(create("--secret-file", "c"), both);
    expect(created.code, created.stderr).toBe(0);
  });

  describe.skipIf(isMissing("PostgreSQL", "PgBouncer"))("behind PgBouncer", () => {
    it.each<PoolMode>(["session", "transaction", "statement"])("in %s mode", async (mode) => {
      const team = await Team.of(server, service);
      const ada = await team.administrator();
      const bouncer = await Bouncer.start(server, mode);
      onTestFinished(() => bouncer.remove());
      const viaPooler = { env: { INTEG_JOURNAL: addressAt(`127.0.0.1:${bouncer.port}`, team.schema) } };
      const created = await ada.integ(create("--secret-file", mode), viaPooler);
      expect(created.code, created.stderr).toBe(0);
      const exported = await ada.integ(["journal", "export"], viaPooler);
      expect(exported.code, exported.stderr).toBe(0);
      // `journal init` runs several statements in one transaction, which PgBouncer refuses in statement mode.
      const other = {
        ...viaPooler.env,
        INTEG_JOURNAL: viaPooler.env.INTEG_JOURNAL.replace(team.schema, `${team.schema}_2`),
      };
      const init = await ada.integ(["journal", "init"], { env: other });
      if (mode !== "statement") expect(init.code, init.stderr).toBe(0);
      else expect([init.code, init.stderr]).toEqual([2, expect.stringContaining("pool_mode")]);
    });
  });
});
