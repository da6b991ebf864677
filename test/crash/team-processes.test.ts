// Machines with their own host names use one journal at the same time, in many rounds.
import { readFileSync } from "node:fs";
import { type ChildProcess, spawn } from "node:child_process";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { bundleDriver } from "../support/bundle-driver.ts";
import type { Run, RunEnd } from "../support/main-here.ts";
import { askPsql, PostgresServer, role, teamAccess } from "../support/postgres.ts";
import { Home, root } from "../support/program.ts";
import { isFull } from "../support/sample.ts";
import { type Service, startService } from "../support/service.ts";
import { recordFigure } from "../support/figures.mjs";
import { isMissing } from "../support/tools.mjs";

/** One process runs all commands of a machine, because starting a process for each would be slow. */
class Machine {
  readonly #home: Home;
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor(driver: string, { number, journal }: { number: number; journal: string }) {
    this.#home = new Home({ ...teamAccess, INTEG_JOURNAL: journal });
    const words = ["--uts", "sh", "-c", `hostname machine-${number}; exec "$@"`, "sh", process.execPath, driver];
    this.#child = spawn("unshare", words, { stdio: ["pipe", "pipe", "inherit"] });
    this.#lines = createInterface({ input: this.#child.stdout! })[Symbol.asyncIterator]();
  }

  async run(words: readonly string[], env: Readonly<Record<string, string>>): Promise<RunEnd> {
    const cwd = this.#home.folder;
    const run: Run = { dist: resolve(root, "dist"), words, env: { ...this.#home.env, ...env }, cwd };
    this.#child.stdin!.write(`${JSON.stringify(run)}\n`);
    const { value } = await this.#lines.next();
    return JSON.parse(String(value)) as RunEnd;
  }

  secret(): string {
    return readFileSync(this.#home.path("s"), "utf8");
  }

  async end(): Promise<void> {
    const closed = new Promise((done) => this.#child.once("close", done));
    this.#child.stdin!.end();
    await closed;
    this.#home.remove();
  }
}

/** Replaces the service after this many rounds, so that its state stays small. */
const roundsOfService = 25;

const [processes, rounds] = isFull ? [16, 500] : [8, 5];

describe.skipIf(isMissing("PostgreSQL"))("a team's journal", () => {
  let server: PostgresServer;
  let service: Service;
  let account: Account;
  let driver: Awaited<ReturnType<typeof bundleDriver>>;
  let machines: Machine[] = [];

  beforeAll(async () => {
    [server, driver] = await Promise.all([
      PostgresServer.start(),
      bundleDriver(join(import.meta.dirname, "team-machine-driver.ts")),
    ]);
    await serve();
  });
  afterAll(async () => {
    await Promise.all(machines.map((machine) => machine.end()));
    driver.remove();
    await service.stop();
    await server.remove();
  });

  async function serve(): Promise<void> {
    await service?.stop();
    service = await startService();
    account = new Account(service);
  }

  const ask = (text: string): string[] =>
    askPsql(server.address(), { password: role.password, text }).split("\n").filter(Boolean);

  const all = (words: (index: number) => readonly string[]): Promise<RunEnd[]> =>
    Promise.all(machines.map((machine, index) => machine.run(words(index), service.env)));

  const creation = (index: number): string[] => {
    const scopes = ["--scope", "entity:read", ...(index % 2 ? ["--scope", "organization:read"] : [])];
    const words = ["oauth-clients", "create", "--service-account", service.us.service_account_id, ...scopes];
    return [...words, "--secret-file", "s", "--force", "--retry-for", "0"];
  };

  const endedWith = (ends: readonly RunEnd[], codes: readonly number[]): string[] =>
    ends.filter(({ code }) => !codes.includes(code)).map(({ code, stderr }) => `${code}: ${stderr}`);

  const entries = (): number => Number(ask("SELECT count(*) FROM integ_entries")[0]);
  const unsettled = "SELECT id FROM integ_entries WHERE NOT about && ARRAY['state done', 'state refused']";

  async function create(lost: number): Promise<string[]> {
    await account.clear();
    const [begun, old] = [ask(unsettled).length, entries()];
    if (lost > 0) await service.fault(`POST /v1/oauth_clients drop=before times=${lost}`);
    const ends = await all(creation);
    const wrong = endedWith(ends, lost > 0 ? [0, 7] : [0]);
    const live = await account.live();
    const delivered = machines.filter((_, index) => ends[index]?.code === 0).map((machine) => machine.secret());
    if (new Set(delivered).size !== live.length || delivered.length !== live.length)
      wrong.push(`${live.length} live clients, ${delivered.length} delivered: ${JSON.stringify(ends)}`);
    if (new Set(live.map(({ idempotency_key: key }) => key)).size !== live.length) wrong.push("two of one key");
    const keys = new Set(ask("SELECT key::json ->> 1 FROM integ_entries"));
    for (const { idempotency_key: key } of await account.creations())
      if (key !== null && !keys.has(key)) wrong.push(`sent without a record: ${key}`);
    // A late machine may finish a request that another machine has just lost. Then fewer entries are new or unfinished.
    const [left, made] = [ask(unsettled).length, entries() - old];
    if (left > lost || begun + made !== delivered.length + left)
      wrong.push(`${left} of ${made} new and ${begun} old entries are unfinished, ${delivered.length} delivered`);
    return wrong;
  }

  async function recover(): Promise<string[]> {
    await account.clear();
    const lost = ask(unsettled).length;
    const ends = await all(() => ["journal", "recover", "--secret-file", "s", "--force"]);
    const wrong = endedWith(ends, [0, 7]);
    const live = await account.live();
    if (live.length !== lost) wrong.push(`${live.length} live clients of ${lost} recovered`);
    if (ask(unsettled).length > 0) wrong.push("entries are unfinished after a recovery");
    return wrong;
  }

  it.skipIf(isMissing("the right to a host name of its own"))(
    "of many simultaneous machines loses no credential and creates none twice, with one holder at a time",
    { timeout: 7_200_000 },
    async () => {
      machines = Array.from(
        { length: processes },
        (_, number) => new Machine(driver.path, { number, journal: server.address() }),
      );
      const [first] = machines;
      expect(await first!.run(["journal", "init"], service.env)).toMatchObject({ code: 0 });
      const wrong: string[] = [];
      let recoveries = 0;
      for (let round = 0; round < rounds && wrong.length === 0; round += 1) {
        // The service is replaced after a recovery, because unfinished work cannot be finished at another service.
        if (round > 0 && round % roundsOfService === 0) await serve();
        // After a round with lost requests, either the same commands resume these requests, or all machines recover them.
        const isLost = round % 5 === 1 || round % 5 === 3;
        const found = round % 5 === 4 ? await recover() : await create(isLost ? 2 : 0);
        recoveries += round % 5 === 4 ? 1 : 0;
        wrong.push(...found.map((words) => `round ${round}: ${words}`));
      }
      const taken = ask("SELECT entry FROM integ_records GROUP BY entry HAVING count(DISTINCT epoch) > 1").length;
      const double = ask(
        "SELECT entry FROM (SELECT entry, epoch < lag(epoch) OVER (PARTITION BY entry ORDER BY n) AS back FROM integ_records) AS r WHERE back",
      );
      const verified = await first!.run(["journal", "verify"], service.env);
      if (verified.code !== 0) wrong.push(verified.stderr);
      const figures = {
        processes,
        rounds,
        recoveries,
        entries: entries(),
        taken,
        "double holders": double.length,
      };
      recordFigure("team", { ...figures, violations: wrong.length }, "processes on one journal");
      expect([...wrong, ...double]).toEqual([]);
    },
  );
});
