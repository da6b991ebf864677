// A holder that stands still at any of its messages for longer than its lease, while another machine continues its work:
// it records and sends nothing more, no request for an access key is sent twice, and the work comes to its end once. Every
// operation of the table of recoveries, claims, recoveries and policies too.
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Operation, operations, Table } from "../e2e/recovery-table-operations.ts";
import { Crossing } from "../support/crossing.ts";
import { recordFigure } from "../support/figures.mjs";
import type { Met } from "../support/gate.ts";
import { journalOf, unsettledIn } from "../support/journal-file.ts";
import { askPsql, PostgresServer, role } from "../support/postgres.ts";
import { ended, Home, stayInThisProcess } from "../support/program.ts";
import { isFull } from "../support/sample.ts";
import { spread } from "../support/strace.ts";
import { keepJournalsIn } from "../support/team-journal.ts";
import { policyText, widerScopes } from "./policy-scenes.ts";
import { isMissing } from "../support/tools.mjs";

const lease = { INTEG_TIMEOUT: "3s", INTEG_LEASE: "4s" };
const pastLeaseMs = 4600;

interface Work extends Operation {
  /** What was recovered elsewhere is not all of it: the rest goes on. */
  readonly goesOn?: boolean;
  /** It revokes the credential that the other machine's profile has. */
  readonly endsOther?: boolean;
}

async function afterFailing(at: Home, words: readonly string[], code: number): Promise<void> {
  let failed = await at.integ(words, { env: lease });
  // 11: a machine under load may not have got a token in time, and has sent nothing.
  for (let tries = 0; failed.code === 11 && tries < 3; tries += 1) failed = await at.integ(words, { env: lease });
  if (failed.code !== code) throw new Error(`${words.join(" ")} ended with ${failed.code}: ${failed.stderr}`);
}

const creation = async (table: Table, at: Home): Promise<string[]> => {
  const [noun = "", verb = "", ...rest] = await operations.create!.words(table, at);
  return [noun, verb, ...rest.slice(0, -2), "-p", "p"];
};

const works: Readonly<Record<string, Work>> = {
  ...operations,
  "keys rotate the profile's own by replacement": {
    ...operations["keys rotate the profile's own by replacement"]!,
    endsOther: true,
    // With the rights to revoke the one before it: a run that is not disturbed comes to its end.
    async words(table, at) {
      const words = await operations["keys rotate the profile's own by replacement"]!.words(table, at);
      return words.map((word) => (word === "push-ingest:*" ? "*" : word));
    },
  },
  "journal recover of a request that was lost": {
    profile: "p",
    change: 1,
    async words(table, at) {
      await table.service.fault("POST /v1/oauth_clients drop=before times=1");
      await afterFailing(at, [...(await creation(table, at)), "--secret-file", "s", "--retry-for", "0"], 7);
      return ["journal", "recover"];
    },
  },
  "journal recover of a key": {
    profile: "k",
    change: 1,
    async words(table, at) {
      await table.service.fault("POST /api/v1/access-keys drop=after times=1");
      const words = [...(await operations["keys create"]!.words(table, at)), "-p", "k"];
      await afterFailing(at, [...words, "--retry-for", "0"], 7);
      // A request is not asked about before its time limit is over.
      await wait(3200);
      return ["journal", "recover", "--replace-lost-secret"];
    },
  },
  "journal claim": {
    profile: "p",
    change: 1,
    async words(table, at) {
      await afterFailing(at, [...(await creation(table, at)), "--secret-command", "exit 1"], 12);
      return ["journal", "claim", journalOf(at)[0]!.id, "--secret-file", "s"];
    },
  },
  apply: {
    profile: "p",
    change: 1,
    goesOn: true,
    async words(table, at) {
      writeFileSync(at.path("integ.yaml"), policyText(table, { names: ["s", "t"] }));
      return ["apply", "--yes", "-q"];
    },
  },
  "apply that rotates": {
    profile: "p",
    change: 1,
    goesOn: true,
    async words(table, at) {
      const words = ["apply", "--yes", "-q"];
      writeFileSync(at.path("integ.yaml"), policyText(table, { names: ["s"] }));
      await afterFailing(at, [...words, "-p", "p"], 0);
      writeFileSync(at.path("integ.yaml"), policyText(table, { names: ["s"], scopes: widerScopes }));
      return words;
    },
  },
};

/** Tried in every run; a full one tries all. */
const fewWorks = ["rotate", "keys create", "apply"];

interface Lane {
  readonly table: Table;
  readonly crossing: Crossing;
}

/** What there is of an operation: new credentials, older ones that are left, and secrets that work and did not before. */
interface Held {
  readonly made: number;
  readonly left: number;
  readonly working: number;
}

interface Begun {
  readonly at: Home;
  readonly words: readonly string[];
  readonly profile: string;
  /** Ids of the credentials that stood before it. */
  readonly before: ReadonlySet<string>;
  readonly known: ReadonlySet<string>;
}

let server: PostgresServer;

/** Another machine of the same administrator: the same profiles and credentials, a state of its own. */
function otherMachine(at: Home): Home {
  const { HOME: _home, INTEG_CONFIG_DIR: config = "", INTEG_STATE_DIR: _state, ...env } = at.env;
  const other = new Home(env);
  cpSync(config, other.path("config"), { recursive: true });
  return other;
}

async function begin({ table }: Lane, { profile, words }: Work): Promise<Begun> {
  await table.service.rewind(table.base);
  const at = table.home();
  await at.integ(["journal", "init"]);
  const its = await words(table, at);
  const before = new Set((await table.live()).map(({ id }) => id));
  await table.service.calm();
  return { at, words: [...its, "-p", profile], profile, before, known: new Set(secretsIn(at)) };
}

/** Starts it, and may let it stand still before a message. */
async function start({ crossing }: Lane, { at, words }: Begun, point?: number) {
  const port = await crossing.portTo("journal", server.port);
  const INTEG_JOURNAL = at.env.INTEG_JOURNAL!.replace(`:${server.port}/`, `:${port}/`);
  let tell: (isStopped: boolean) => void = () => {};
  const stopped = new Promise<boolean>((resolve) => (tell = resolve));
  const child = at.start(words, { env: { ...lease, INTEG_JOURNAL } });
  const act = (): "pass" => {
    child.kill("SIGSTOP");
    tell(true);
    return "pass";
  };
  crossing.watch({ plan: point === undefined ? undefined : { at: point, act } });
  const ending = ended(child, { timeoutMs: 120_000 });
  return { child, ending, isStopped: Promise.race([stopped, ending.then(() => false)]) };
}

/** Everything in files and profiles that may be a secret. */
function secretsIn(at: Home): string[] {
  const files = ["s", "t", "again", "claimed0", "claimed1", "claimed2", "s.json", "t.json"].map((name) =>
    at.path(name),
  );
  const folder = join(at.env.INTEG_CONFIG_DIR ?? "", "credentials");
  const credentials = existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
  const texts = [...files, ...credentials].filter((path) => existsSync(path)).map((path) => readFileSync(path, "utf8"));
  return texts.flatMap((text) => (text.startsWith("{") ? Object.values(JSON.parse(text) as object) : [text.trimEnd()]));
}

async function heldBy({ table }: Lane, { before, known }: Begun, homes: readonly Home[]): Promise<Held> {
  const live = await table.live();
  const found = new Set(homes.flatMap((home) => secretsIn(home)).filter((text) => text && !known.has(text)));
  let working = 0;
  for (const secret of found) if (typeof secret === "string" && (await table.works(secret, live))) working += 1;
  const made = live.filter(({ id }) => !before.has(id)).length;
  return { made, left: live.length - made, working };
}

interface Records {
  /** The newest epoch of each entry. */
  readonly epochs: ReadonlyMap<string, number>;
  /** Entries that a process has taken and not released. */
  readonly held: ReadonlySet<string>;
  /** `entry position epoch` of each record. */
  readonly lines: readonly string[];
}

function recordsOf({ env }: Home): Records {
  const ask = (text: string): string[] =>
    askPsql(env.INTEG_JOURNAL!, { password: role.password, text }).split("\n").filter(Boolean);
  const epochs = ask("SELECT id || ' ' || epoch FROM integ_entries").map((line) => line.split(" "));
  return {
    epochs: new Map(epochs.map(([id = "", epoch]) => [id, Number(epoch)])),
    held: new Set(ask("SELECT id FROM integ_entries WHERE lease_until IS NOT NULL")),
    lines: ask("SELECT entry || ' ' || n || ' ' || epoch FROM integ_records"),
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

const isChange = ({ method, path }: Met): boolean =>
  method !== "GET" && /^\/(?:v1\/oauth_clients|api\/v1\/access-keys)/.test(path);

interface Totals {
  rounds: number;
  taken: number;
}

/** What a person types there: recover, and claim what is kept there. */
async function finish(at: Home, profile: string, words: readonly string[]): Promise<void> {
  const options = { env: lease };
  const to = (name: string): string[] => ["--secret-file", name, "--force", "-p", profile];
  const { code } = await at.integ(["journal", "recover", ...words, ...to("again")], options);
  if (code !== 12) return;
  const kept = unsettledIn(journalOf(at)).filter(({ state }) => state === "undelivered");
  for (const [index, { id }] of kept.entries())
    await at.integ(["journal", "claim", id, ...to(`claimed${index}`)], options);
  await at.integ(["journal", "recover", ...words, "-p", profile], options);
}

/** What there is if nothing was begun, or what was begun was proven never sent. */
function withoutEffect({ goesOn }: Work, { at, words, before }: Begun): Held | undefined {
  if (goesOn === true) return undefined;
  const nothing = { made: 0, left: before.size, working: 0 };
  if (words[0] === "journal") {
    // The lost key was revoked, and the request for the one in its place never sent: the person is told so.
    const isNone = journalOf(at).some(({ state, replaces }) => replaces !== null && state === "refused");
    return isNone ? { ...nothing, left: before.size - 1 } : undefined;
  }
  const root = journalOf(at).findLast(({ parent, replaces }) => parent === null && replaces === null);
  return root === undefined || root.state === "refused" ? nothing : undefined;
}

/** @returns what is wrong */
async function stoppedAt(
  lane: Lane,
  work: Work,
  { at: point, whole, totals }: { at: number; whole: Held; totals: Totals },
): Promise<string[]> {
  const begun = await begin(lane, work);
  const { at, profile } = begun;
  const other = otherMachine(at);
  const { gate } = lane.table;
  const wrong: string[] = [];
  try {
    gate.arm();
    const { child, ending, isStopped } = await start(lane, begun, point);
    if (!(await isStopped)) return [];
    const standing = recordsOf(at);
    await wait(pastLeaseMs);
    const first = await other.integ(["journal", "recover", "--yes", "-p", profile], { env: lease });
    // 11: a machine under load may not have connected in time, and has changed nothing.
    if (![0, 4, 7, 8, 9, 11, 12, ...(work.endsOther ? [3] : [])].includes(first.code ?? -1))
      wrong.push(`recover elsewhere: ${first.code} ${first.stderr}`);
    const before = recordsOf(at);
    const sent = gate.met.filter(isChange).length;
    // From itself: what it had not taken when it was stopped, it may take afterwards.
    const isTaken = [...standing.held].some((id) => (before.epochs.get(id) ?? 0) > standing.epochs.get(id)!);
    totals.rounds += 1;
    totals.taken += isTaken ? 1 : 0;
    child.kill("SIGCONT");
    const last = await ending;
    wrong.push(...writtenLate(before, recordsOf(at)).map((line) => `recorded late: ${line}`));
    const all = gate.met.filter(isChange);
    if (isTaken && work.goesOn !== true && all.length > sent)
      wrong.push(`sent late: ${JSON.stringify(all.slice(sent).map(({ method, path }) => `${method} ${path}`))}`);
    if (/a bug in integ/.test(last.stderr)) wrong.push(last.stderr);
    const posts = all.filter(({ method, path }) => method === "POST" && path === "/api/v1/access-keys");
    if (new Set(posts.map(({ body }) => body)).size !== posts.length) wrong.push("a key was asked for twice");
    for (const home of [at, other, at])
      await finish(home, profile, home === at ? ["--replace-lost-secret"] : ["--yes"]);
    if (work.goesOn) await at.integ(begun.words);
    wrong.push(...unsettledIn(journalOf(at)).map(({ id, state }) => `entry ${id} is still ${state}`));
    const held = await heldBy(lane, begun, [at, other]);
    const wanted = withoutEffect(work, begun) ?? whole;
    if (JSON.stringify(held) !== JSON.stringify(wanted))
      wrong.push(`${JSON.stringify(held)} instead of ${JSON.stringify(wanted)}: ${last.code} ${last.stderr}`);
    return wrong.map((words) => `stopped at message ${point}: ${words}`);
  } finally {
    at.remove();
    other.remove();
  }
}

describe.skipIf(isMissing("PostgreSQL"))("a holder that stands still past its lease", () => {
  let lanes: Lane[] = [];

  beforeAll(async () => {
    stayInThisProcess();
    server = await PostgresServer.start();
    keepJournalsIn({ address: server.address(), password: role.password });
    // It waits for leases most of the time: several stand still side by side.
    for (let number = 0; number < (isFull ? 8 : 1); number += 1) {
      const crossing = new Crossing();
      lanes.push({ crossing, table: await Table.open(crossing.through) });
    }
  });
  afterAll(async () => {
    keepJournalsIn(undefined);
    for (const { crossing, table } of lanes) await Promise.all([crossing.close(), table.close()]);
    await server?.remove();
  });

  /** An undisturbed run: the number of its messages, the first one that may change something, and what comes of it. */
  async function undisturbed(work: Work): Promise<{ messages: number; first: number; whole: Held }> {
    const [lane] = lanes;
    const begun = await begin(lane!, work);
    const { ending } = await start(lane!, begun);
    const { code, stderr } = await ending;
    expect(code, stderr).toBe(0);
    const passed = lane!.crossing.passed();
    const whole = await heldBy(lane!, begun, [begun.at]);
    begun.at.remove();
    return { messages: passed.length, first: passed.findIndex(({ link }) => link === "service"), whole };
  }

  // Before its first record nothing differs from one operation to another.
  const connecting = 10;

  const chosen = isFull ? Object.keys(works) : fewWorks;

  it.each(chosen)("%s", { timeout: 7_200_000 }, async (name) => {
    const work = works[name]!;
    const { messages, first, whole } = await undisturbed(work);
    const all = Array.from({ length: messages }, (_, number) => number);
    const points = isFull
      ? all.slice(name === "create" ? 0 : connecting)
      : spread(all.slice(Math.max(0, first)), 3).slice(1, -1);
    const totals = { rounds: 0, taken: 0 };
    const wrong: string[] = [];
    const play = async (lane: Lane): Promise<void> => {
      for (let at = points.shift(); at !== undefined; at = points.shift())
        wrong.push(...(await stoppedAt(lane, work, { at, whole, totals })));
    };
    await Promise.all(lanes.map(play));
    const figures = { messages, hit: totals.rounds, taken: totals.taken, violations: wrong.length };
    recordFigure("team", figures, `${name}, stopped past its lease`);
    expect(wrong).toEqual([]);
  });
});
