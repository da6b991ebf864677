// Many processes with host names of their own on one journal. `npm test` plays a few rounds; a full run as many of 500 as it can
// in ten minutes, and says how many.
import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { Account } from "../support/account.ts";
import { isWithoutPostgres, PostgresServer, role } from "../support/postgres.ts";
import { ended, Home } from "../support/program.ts";
import { isFull } from "../support/sample.ts";
import { type Service, startService } from "../support/service.ts";
import { recordFigure } from "../support/figures.mjs";

let server: PostgresServer;
let service: Service;
let account: Account;
let schemas = 0;

interface Row {
  readonly id: string;
  readonly state: string;
  readonly key: string | null;
  readonly records: number;
}

async function team(): Promise<string> {
  const schema = `fault_${(schemas += 1)}`;
  const home = machine(schema);
  expect((await home.integ(["journal", "init"])).code).toBe(0);
  return schema;
}

function machine(schema: string): Home {
  const home = new Home({ ...service.env, PGPASSWORD: role.password, INTEG_JOURNAL: server.address(schema) });
  onTestFinished(() => home.remove());
  return home;
}

/** The journal as the server itself holds it. */
async function rowsOf(schema: string): Promise<Row[]> {
  const text = `SELECT id, state, idempotency_key AS key, position AS records FROM ${schema}.integ_entries ORDER BY id`;
  return (await server.sql(text, role.name)) as unknown as Row[];
}

const create = (...more: string[]): string[] => [
  "oauth-clients",
  "create",
  "--service-account",
  service.us.service_account_id,
  "--scope",
  "entity:read",
  ...more,
];

/** Requests that the service met without an entry whose record was committed before. */
async function unrecorded(schema: string): Promise<string[]> {
  const keys = new Set((await rowsOf(schema)).map(({ key }) => key));
  const sent = (await account.creations()).map((request) => request.idempotency_key);
  return sent.filter((key) => key !== null && !keys.has(key)) as string[];
}

describe.skipIf(isWithoutPostgres("a team's journal under faults"))("a team's journal under faults", () => {
  beforeAll(async () => {
    [server, service] = await Promise.all([PostgresServer.start(), startService()]);
    account = new Account(service);
  });
  afterAll(async () => {
    await service.stop();
    await server.remove();
  });

  const hasHosts = spawnSync("unshare", ["--uts", "true"]).status === 0;
  if (!hasHosts) console.warn("skipped: no host names of their own here (unshare --uts)");

  it.skipIf(!hasHosts)(
    "processes of many machines, same and different requests: none lost, none doubled",
    { timeout: 3_600_000 },
    async () => {
      const [processes, rounds] = isFull ? [16, 500] : [6, 2];
      const schema = await team();
      let made = 0;
      const end = performance.now() + 600_000;
      let played = 0;
      for (; played < rounds && performance.now() < end; played += 1) {
        await account.clear();
        const homes = Array.from({ length: processes }, () => machine(schema));
        const all = await Promise.all(
          homes.map((home, index) => {
            // Half of them ask for the same; a lost answer leaves something to resume.
            const scope = index % 2 ? ["--scope", "organization:read"] : [];
            const under = ["unshare", "--uts", "sh", "-c", `hostname machine-${index}; exec "$@"`, "sh"];
            return ended(home.start(create("--secret-file", "s", ...scope), { under }));
          }),
        );
        const bad = all.filter(({ code }) => code !== 0);
        expect(bad.map(({ code, stderr }) => [code, stderr])).toEqual([]);
        made += processes;
        const live = await account.live();
        expect(live).toHaveLength(processes);
        expect(new Set(live.map((client) => client.idempotency_key)).size).toBe(processes);
        expect(await unrecorded(schema)).toEqual([]);
        for (const home of homes) home.remove();
      }
      const rows = await rowsOf(schema);
      expect(rows).toHaveLength(made);
      expect(rows.filter(({ state }) => state !== "done")).toEqual([]);
      const epochs = `SELECT entry FROM ${schema}.integ_records GROUP BY entry HAVING count(DISTINCT epoch) > 1`;
      expect(await server.sql(epochs, role.name)).toEqual([]);
      recordFigure("team", { processes, rounds: played, creations: made, violations: 0 }, "processes on one journal");
    },
  );
});
