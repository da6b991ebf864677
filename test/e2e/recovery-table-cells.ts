// The cells of the table of recoveries: each operation of the built program is interrupted at one of its steps, once, and what
// it left is recovered in every other world. What reached the service and how it ended, without what is random in both.
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Met } from "../support/gate.ts";
import { runHere } from "../support/program-here.ts";
import { type Ended, ended, type Home, type RunOptions } from "../support/program.ts";
import type { Moment } from "../support/rewindable-service.ts";
import { record, wasKilled } from "../support/strace.ts";
import { operations, type Table } from "./recovery-table-operations.ts";

/** An entry as `journal list --json` shows it. */
export interface Row {
  readonly id: string;
  readonly operation: string;
  readonly state: string;
  readonly idempotency_key: string | null;
  readonly parent?: string;
}

/**
 * Where the first process ends: killed at one of its requests, or with a response that says nothing; killed before one of its
 * syncs, each of which follows a step that the journal or a destination keeps.
 */
export interface End {
  readonly index: number;
  readonly how: "killed before" | "killed after" | "dropped" | "killed at sync";
}

export interface Dimension {
  /** Added to the words of the recovery. */
  readonly words?: (table: Table, at: Home) => readonly string[];
  readonly env?: (table: Table, at: Home) => Readonly<Record<string, string>>;
  /** What else is another by then. */
  readonly before?: (table: Table, at: Home) => unknown;
  readonly cwd?: (at: Home) => string;
  /** Words before the program. */
  readonly under?: readonly string[];
  /** The clock of the first process is wrong by so many milliseconds. */
  readonly firstClock?: number;
  /** The recovery may end without sending anything, if it says this. */
  readonly refuses?: RegExp;
  /** The recovery may leave in doubt what a plain one settles, if it says this. */
  readonly doubts?: RegExp;
  /** A secret that comes goes to the file `another`. */
  readonly isElsewhere?: boolean;
  /** It is not there for the recovery that is expected to end as a plain one afterwards. */
  readonly undo?: (table: Table, at: Home) => unknown;
}

export interface Outcome {
  readonly code: number | null;
  readonly stderr: string;
  /** Method, path, headers and body of each request of the recovery. */
  readonly wire: readonly string[];
  /** Operation and state of each entry, the oldest first. */
  readonly states: readonly string[];
  readonly live: number;
  /** Of each place of a secret whether its secret works. */
  readonly secrets: readonly string[];
  /** What is true of no good recovery. */
  readonly broken: readonly string[];
}

/** What an interrupted operation left: its home and the service, both put back before each recovery. */
export class Left {
  readonly #table: Table;
  readonly #at: Home;
  readonly #env: Readonly<Record<string, string>>;
  readonly #kept = mkdtempSync(join(tmpdir(), "integ-left-"));
  readonly #moment: Moment;
  readonly #entry: string;
  /** Ends that leave the same are recovered alike. */
  readonly fingerprint: string;

  /** @returns nothing if the operation ended by itself, or had not begun */
  static async of(table: Table, name: string, { end, shift }: { end: End; shift?: number }): Promise<Left | undefined> {
    await table.service.rewind(table.base);
    const at = table.home();
    const { profile, words } = operations[name]!;
    const isLeft = await leave(table, at, { words: [...(await words(table, at)), "-p", profile], end, shift });
    const entries = isLeft ? await rows(at).catch(() => []) : [];
    const entry = entries.find(({ parent }) => parent === undefined);
    if (entry !== undefined)
      return new Left(table, at, { entry: entry.id, fingerprint: await fingerprintOf(table, at, entries) });
    at.remove();
    return undefined;
  }

  private constructor(table: Table, at: Home, { entry, fingerprint }: { entry: string; fingerprint: string }) {
    this.#table = table;
    this.#at = at;
    this.#env = { ...at.env };
    this.#moment = table.service.moment();
    this.#entry = entry;
    this.fingerprint = fingerprint;
    cpSync(at.folder, this.#kept, { recursive: true });
  }

  remove(): void {
    this.#at.remove();
    rmSync(this.#kept, { recursive: true, force: true });
  }

  /** Recovers it in another world; where that refused, in its own afterwards. */
  async recover(dimension: Dimension = {}): Promise<{ first: Outcome; second: Outcome | undefined }> {
    const [table, at] = [this.#table, this.#at];
    await this.#putBack();
    const env = { ...dimension.env?.(table, at) };
    await dimension.before?.(table, at);
    const recovery = ["journal", "recover", this.#entry, "--yes", "--wait", "0s", "--retry-for", "2s"];
    const how: RunOptions = { env, cwd: dimension.cwd?.(at), under: dimension.under };
    const first = await recovered(table, at, [[...recovery, ...(dimension.words?.(table, at) ?? [])], how]);
    if (dimension.refuses === undefined || first.code === 0) return { first, second: undefined };
    await dimension.undo?.(table, at);
    return { first, second: await recovered(table, at, [recovery, {}]) };
  }

  async #putBack(): Promise<void> {
    const { folder, env } = this.#at;
    for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true });
    cpSync(this.#kept, folder, { recursive: true });
    for (const name of Object.keys(env)) delete env[name];
    Object.assign(env, this.#env);
    await this.#table.service.rewind(this.#moment);
  }
}

/** What matters of what is on the disk and at the service, without ids, keys, digests and times. */
async function fingerprintOf(table: Table, at: Home, entries: readonly Row[]): Promise<string> {
  const files = readdirSync(at.folder, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile() && !one.name.startsWith("journal.ndjson"))
    .map(({ parentPath, name }) => `${parentPath}/${name} ${statSync(join(parentPath, name)).size}`);
  const all = await Promise.all(["/oauth_clients", "/access_keys"].map((path) => table.service.control("GET", path)));
  const statuses = (all as { status: string }[][]).map((some) => some.map(({ status }) => status));
  return JSON.stringify([entries, files.toSorted(), statuses])
    .replaceAll(at.folder, "")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z|(?:oac|ak|cid|key|req)_\w+|[0-9a-f-]{8,}|\b1[0-9a-hjkmnp-tv-z]{9}\b/g, "");
}

/** How often an undisturbed run of an operation syncs. */
export async function syncsOf(table: Table, name: string): Promise<number> {
  await table.service.rewind(table.base);
  const at = table.home();
  const { profile, words } = operations[name]!;
  const { points } = await record((under) =>
    words(table, at).then((its) => at.spawned([...its, "-p", profile, "--retry-for", "0"], { under })),
  );
  at.remove();
  return Math.max(...points.filter(({ call }) => call === "fsync").map(({ nth }) => nth));
}

async function rows(at: Home, env: RunOptions["env"] = {}): Promise<Row[]> {
  const words = ["journal", "list", "--all", "--json"];
  const { stdout } = await at.integ(words, { env });
  return (JSON.parse(stdout) as { data: Row[] }).data.reverse();
}

/** Runs the command until its end comes. @returns false if it ended by itself before */
async function leave(
  { gate }: Table,
  at: Home,
  { words, end: { index, how }, shift }: { words: readonly string[]; end: End; shift: number | undefined },
): Promise<boolean> {
  const options: RunOptions = { env: shift === undefined ? {} : shifted(shift) };
  const under =
    how === "killed at sync"
      ? ["strace", "-f", "-o", "/dev/null", "-e", "trace=fsync", "-e", `inject=fsync:signal=KILL:when=${index}`]
      : undefined;
  const child = at.start([...words, "--retry-for", "0"], { ...options, under });
  let isMet = false;
  const when = how === "killed after" ? "after" : "before";
  const onHeld = (): void => void ((isMet = true), how !== "dropped" && child.kill("SIGKILL"));
  gate.arm(under ? undefined : { index, when, onHeld });
  const end = await ended(child);
  gate.arm();
  return under ? wasKilled(end) : isMet;
}

export function shifted(ms: number): Record<string, string> {
  const script = join(import.meta.dirname, "../support/shifted-clock.cjs");
  return { NODE_OPTIONS: `--require=${script}`, INTEG_TEST_SHIFT: String(ms) };
}

async function recovered(table: Table, at: Home, [words, how]: [readonly string[], RunOptions]): Promise<Outcome> {
  table.gate.arm();
  table.trap.arm();
  // In this process, thousands of times, unless its start is what differs.
  const isOwn = how.under !== undefined || Object.keys(how.env ?? {}).some((name) => name.startsWith("NODE_"));
  const { code, stderr }: Ended = await ((isOwn ? undefined : runHere(at, words, how)) ?? at.spawned(words, how));
  const wire = [...table.gate.met];
  const broken = table.trap.met.map(({ method, path }) => `another service met ${method} ${path}`);
  const { INTEG_JOURNAL = "" } = how.env ?? {};
  const entries = await rows(at, { INTEG_JOURNAL }).catch(() => []);
  const live = await table.live();
  // The service is honest.
  broken.push(
    ...entries.filter(({ state }) => state === "unusable").map(({ operation }) => `${operation} is unusable`),
  );
  return {
    code,
    stderr,
    wire: withoutChance(wire, entries, table),
    states: entries.map(({ operation, state }) => `${operation} ${state}`),
    live: live.length,
    secrets: await secretsIn(table, at, live),
    broken,
  };
}

/** The files and profiles that the operations deliver to. What it asks the service leaves no trace there. */
async function secretsIn(table: Table, at: Home, live: Awaited<ReturnType<Table["live"]>>): Promise<string[]> {
  const { service } = table;
  const before = service.moment();
  const said: string[] = [];
  const say = async (name: string, secret: string): Promise<void> =>
    void said.push(
      `${name} ${secret === "" ? "is empty" : (await table.works(secret, live)) ? "works" : "does not work"}`,
    );
  for (const name of ["s", "t", "another"])
    if (existsSync(at.path(name))) await say(name, readFileSync(at.path(name), "utf8"));
  const config = at.env.INTEG_CONFIG_DIR ?? "";
  const { profiles } = JSON.parse(readFileSync(join(config, "profiles.json"), "utf8")) as Stored;
  for (const { name, credential } of profiles) {
    const file = join(config, "credentials", `${credential?.ref}.json`);
    if (!existsSync(file)) continue;
    const { secret } = JSON.parse(readFileSync(file, "utf8")) as { secret: string };
    if (secret !== table.us.api_key) await say(`profile ${name.replace(/^renamed-/, "")}`, secret);
  }
  await service.rewind(before);
  return said;
}

/** As the profiles' file has them. */
interface Stored {
  readonly profiles: readonly { readonly name: string; readonly credential: { readonly ref: string } | null }[];
}

/** Requests without what is random: ids by their order, keys by their entries, secrets and tokens by what they are. */
function withoutChance(met: readonly Met[], entries: readonly Row[], { us, own }: Table): string[] {
  const ids = new Map<string, string>();
  const named = (text: string): string =>
    text.replaceAll(/(?:oac|ak|cid|key)_[\w-]+/g, (id) => {
      if (!ids.has(id)) ids.set(id, `<id ${ids.size + 1}>`);
      return ids.get(id)!;
    });
  const basic = `Basic ${Buffer.from(`apikey:${us.api_key}`).toString("base64")}`;
  return met.map(({ method, path, headers, body }) => {
    const { authorization, "content-length": _, "idempotency-key": key, ...rest } = headers;
    const as = authorization === basic ? "the profile's key" : String(authorization).split(" ")[0];
    const of = key === undefined ? "" : `key of entry ${entries.findIndex(({ idempotency_key: its }) => its === key)}`;
    const what = body
      .replace(/"secret":"[^"]*"/, (text) => (text.includes(own.secret) ? "the own secret" : "a new secret"))
      .replace(/"name":"made-[0-9a-f]+"/, '"name":"made"');
    return named(`${method} ${path} as ${as} ${of} ${JSON.stringify(rest)} ${what}`);
  });
}
