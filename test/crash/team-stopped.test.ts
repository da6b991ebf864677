// A holder that stands still at any of its messages for longer than its lease, while another machine continues its work:
// it records and sends nothing more, no request for an access key is sent twice, and the work comes to its end once.
import { cpSync, existsSync, readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { KeysDesk } from "../e2e/keys-desk.ts";
import { Account, type MetRequest } from "../support/account.ts";
import { Crossing, type Passage } from "../support/crossing.ts";
import { askPsql, isWithoutPostgres, PostgresServer, role } from "../support/postgres.ts";
import { recordFigure } from "../support/figures.mjs";
import { ended, Home } from "../support/program.ts";
import { isFull } from "../support/sample.ts";
import { type Service, startService } from "../support/service.ts";
import { spread } from "../support/strace.ts";
import { keepJournalsIn } from "../support/team-journal.ts";

const lease = { INTEG_TIMEOUT: "2s", INTEG_LEASE: "3s" };
const pastLeaseMs = 3600;

interface Work {
  readonly name: string;
  arrange(): Promise<{ readonly at: Home; readonly words: readonly string[]; readonly old?: string }>;
  /** How many credentials stand for the work, and how many of them open with a secret that was delivered. */
  held(secrets: readonly string[], old: string | undefined): Promise<{ live: number; owned: number }>;
}

let server: PostgresServer;
let service: Service;
let account: Account;
let desk: KeysDesk;
let number = 0;
const crossing = new Crossing();

const clientsHeld: Work["held"] = async (secrets, old) => {
  const live = (await account.live()).filter(({ id }) => id !== old);
  const opens = async (clientId: string | null): Promise<boolean> => {
    for (const secret of secrets) if (clientId !== null && (await account.opens(clientId, secret))) return true;
    return false;
  };
  const owned = await Promise.all(live.map(({ client_id }) => opens(client_id)));
  return { live: live.length, owned: owned.filter(Boolean).length };
};

async function clientHome(): Promise<Home> {
  await account.clear();
  const base = await crossing.through(new URL(service.us.base_url).origin);
  return new Home({ ...service.env, INTEG_BASE_URL: base, INTEG_TOKEN_ENDPOINT: service.us.token_endpoint });
}

const works: readonly Work[] = [
  {
    name: "oauth-clients create",
    async arrange() {
      const request = ["--service-account", service.us.service_account_id, "--scope", "entity:read"];
      return { at: await clientHome(), words: ["oauth-clients", "create", ...request, "--secret-file", "secret"] };
    },
    held: clientsHeld,
  },
  {
    name: "oauth-clients rotate",
    async arrange() {
      const at = await clientHome();
      const { id } = await account.make(["entity:read"]);
      return { at, words: ["oauth-clients", "rotate", id, "--secret-file", "secret"], old: id };
    },
    held: clientsHeld,
  },
  {
    name: "keys create",
    async arrange() {
      await desk.service.calm();
      const name = `stopped-${(number += 1)}-`;
      return { at: desk.withToken(), words: ["keys", "create", "--name", name, "--secret-file", "secret"] };
    },
    async held(secrets) {
      const live = await desk.live(`stopped-${number}-`);
      const opened = await Promise.all(secrets.map((secret) => desk.opens(secret)));
      return { live: live.length, owned: opened.filter(Boolean).length };
    },
  },
];

/** Another machine of the same administrator: the same profiles and credentials, a state of its own. */
function otherMachine(at: Home): Home {
  const { HOME: _home, INTEG_CONFIG_DIR: config, INTEG_STATE_DIR: _state, ...env } = at.env;
  const other = new Home(env);
  if (config !== undefined && existsSync(config)) cpSync(config, other.path("config"), { recursive: true });
  return other;
}

interface Records {
  /** The newest epoch of each entry. */
  readonly epochs: ReadonlyMap<string, number>;
  /** `entry position epoch` of each record. */
  readonly lines: readonly string[];
}

function recordsOf({ env }: Home): Records {
  const ask = (text: string): string[] =>
    askPsql(env.INTEG_JOURNAL!, { password: role.password, text }).split("\n").filter(Boolean);
  const epochs = ask("SELECT id || ' ' || epoch FROM integ_entries").map((line) => line.split(" "));
  return {
    epochs: new Map(epochs.map(([id = "", epoch]) => [id, Number(epoch)])),
    lines: ask("SELECT entry || ' ' || position || ' ' || epoch FROM integ_records"),
  };
}

/** Records that were written since by a holder whose entry another had taken. */
function writtenLate(before: Records, after: Records): string[] {
  const known = new Set(before.lines);
  return after.lines.filter((line) => {
    const [id = "", , epoch] = line.split(" ");
    return !known.has(line) && Number(epoch) < (before.epochs.get(id) ?? 0);
  });
}

const isChange = ({ method, path }: MetRequest): boolean =>
  method !== "GET" && /^\/(?:v1\/oauth_clients|api\/v1\/access-keys)/.test(path);

interface Totals {
  rounds: number;
  taken: number;
}

/** @returns what is wrong */
async function stoppedAt(work: Work, { at: point, totals }: { at: number; totals: Totals }): Promise<string[]> {
  const { at, words, old } = await work.arrange();
  const other = otherMachine(at);
  const wrong: string[] = [];
  try {
    const { child, ending, stopped } = await startAt(at, words, point);
    if (!(await Promise.race([stopped, ending.then(() => false)]))) return [];
    await wait(pastLeaseMs);
    const first = await other.integ(["journal", "recover", "--yes", "--secret-file", "secret"], { env: lease });
    if (![0, 4, 7, 8, 9, 12].includes(first.code ?? -1)) wrong.push(`recover elsewhere: ${first.code} ${first.stderr}`);
    const before = recordsOf(at);
    const sent = (await account.requests()).filter(isChange).length;
    const isTaken = [...before.epochs.values()].some((epoch) => epoch > 1);
    totals.rounds += 1;
    totals.taken += isTaken ? 1 : 0;
    child.kill("SIGCONT");
    const last = await ending;
    wrong.push(...writtenLate(before, recordsOf(at)).map((line) => `recorded late: ${line}`));
    const after = (await account.requests()).filter(isChange);
    if (isTaken && after.length > sent) wrong.push(`sent late: ${JSON.stringify(after.slice(sent))}`);
    if (/a bug in integ/.test(last.stderr)) wrong.push(last.stderr);
    const bodies = after.filter(({ method, path }) => method === "POST" && path === "/api/v1/access-keys");
    if (new Set(bodies.map(({ body }) => body)).size !== bodies.length) wrong.push("a key was asked for twice");
    for (const home of [at, other, at]) await finish(home, home === at ? ["--replace-lost-secret"] : ["--yes"]);
    wrong.push(...(await unfinished(at)).map(({ id, state }) => `entry ${id} is still ${state}`));
    const files = [at, other].flatMap((home) => ["secret", "again", "claimed"].map((name) => home.path(name)));
    const secrets = files.filter((path) => existsSync(path)).map((path) => readFileSync(path, "utf8").trimEnd());
    const { live, owned } = await work.held(secrets.filter(Boolean), old);
    if (live !== 1 || owned !== 1)
      wrong.push(`${live} live, ${owned} of them with their secret: ${last.code} ${last.stderr}`);
    return wrong.map((words) => `stopped at message ${point}: ${words}`);
  } finally {
    at.remove();
    other.remove();
  }
}

async function unfinished(at: Home): Promise<{ readonly id: string; readonly state: string }[]> {
  const { stdout } = await at.integ(["journal", "list", "--json"]);
  return (JSON.parse(stdout) as { data: { id: string; state: string }[] }).data;
}

/** What a person types there: recover, and claim what is kept there. */
async function finish(at: Home, words: readonly string[]): Promise<void> {
  const options = { env: lease };
  const { code } = await at.integ(["journal", "recover", ...words, "--secret-file", "again", "--force"], options);
  if (code !== 12) return;
  for (const { id, state } of await unfinished(at))
    if (state === "undelivered")
      await at.integ(["journal", "claim", id, "--secret-file", "claimed", "--force"], options);
  await at.integ(["journal", "recover", ...words], options);
}

async function startAt(at: Home, words: readonly string[], point: number | undefined) {
  await at.integ(["journal", "init"]);
  const port = await crossing.portTo("journal", server.port);
  const journal = at.env.INTEG_JOURNAL!.replace(`:${server.port}/`, `:${port}/`);
  const env = { ...lease, INTEG_JOURNAL: journal };
  let tell: (isStopped: boolean) => void = () => {};
  const stopped = new Promise<boolean>((resolve) => (tell = resolve));
  const child = at.start(words, { env });
  const plan = point === undefined ? undefined : { at: point, act: () => stop(child, tell) };
  crossing.watch({ plan });
  return { child, ending: ended(child, { timeoutMs: 120_000 }), stopped };
}

function stop(child: ReturnType<Home["start"]>, tell: (isStopped: boolean) => void): "pass" {
  child.kill("SIGSTOP");
  tell(true);
  return "pass";
}

async function passagesOf(work: Work): Promise<Passage[]> {
  const { at, words } = await work.arrange();
  const { ending } = await startAt(at, words, undefined);
  const { code, stderr } = await ending;
  expect(code, stderr).toBe(0);
  at.remove();
  return crossing.passed();
}

describe.skipIf(isWithoutPostgres("holders that stand still"))("a holder that stands still past its lease", () => {
  beforeAll(async () => {
    [server, service] = await Promise.all([PostgresServer.start(), startService()]);
    account = new Account(service);
    desk = new KeysDesk(service);
    await desk.goThrough(crossing.through);
    keepJournalsIn({ address: server.address(), password: role.password });
  });
  afterAll(async () => {
    keepJournalsIn(undefined);
    await crossing.close();
    await service?.stop();
    await server?.remove();
  });

  it.each(works)("$name", { timeout: 7_200_000 }, async (work) => {
    const all = await passagesOf(work);
    const points = [...all.keys()];
    const first = all.findIndex(({ link }) => link === "service");
    const near = points.filter((point) => point >= first - 2);
    const totals = { rounds: 0, taken: 0 };
    const wrong: string[] = [];
    for (const at of isFull ? points : spread(near, 4).slice(1, -1))
      wrong.push(...(await stoppedAt(work, { at, totals })));
    const figures = { messages: points.length, hit: totals.rounds, taken: totals.taken, violations: wrong.length };
    recordFigure("team", figures, `${work.name}, stopped past its lease`);
    expect(wrong).toEqual([]);
  });
});
