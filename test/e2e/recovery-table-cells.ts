// The cells of the table of recoveries: each operation of the built program is ended at one of its requests, and recovered
// in another world. What reached the service and how it ended, without what is random in both.
import { cpSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Gate, type Met } from "../support/gate.ts";
import { runHere } from "../support/program-here.ts";
import { type Ended, ended, Home, type RunOptions } from "../support/program.ts";
import { type RegionDescription, type Service, startService } from "../support/service.ts";

/** An entry as `journal list --json` shows it. */
export interface Row {
  readonly id: string;
  readonly operation: string;
  readonly state: string;
  readonly idempotency_key: string | null;
  readonly resource_id: string | null;
  readonly parent?: string;
}

/** A service, what stands between it and the program, and the profiles that every cell begins with. */
export class Table {
  readonly service: Service;
  readonly gate: Gate;
  /** Another service: nothing may ever come there. */
  readonly trap: Gate;
  readonly us: RegionDescription;
  readonly #template = new Home();
  /** The key that the profile acts with. */
  own: { readonly id: string; readonly secret: string } = { id: "", secret: "" };

  private constructor(service: Service, gates: { gate: Gate; trap: Gate }) {
    this.service = service;
    this.gate = gates.gate;
    this.trap = gates.trap;
    this.us = service.us;
  }

  static async open(): Promise<Table> {
    const service = await startService();
    const gates = { gate: await new Gate(service.us.base_url).open(), trap: await new Gate().open() };
    const table = new Table(service, gates);
    table.own = await table.makeKey("own");
    await table.add(table.#template, "p");
    await table.add(table.#template, "k");
    await table.add(table.#template, "other", table.trap.origin);
    return table;
  }

  async close(): Promise<void> {
    await Promise.all([this.gate.close(), this.trap.close(), this.service.stop()]);
    this.#template.remove();
  }

  /** `profiles add`: `k` acts with an access key, any other with an API key. */
  async add(at: Home, name: string, baseUrl: string = this.gate.origin): Promise<void> {
    const { organization_id, token_endpoint, access_token_endpoint, api_key } = this.us;
    const of = (address: string): string => (baseUrl === this.gate.origin ? this.gate.through(address) : baseUrl);
    const way =
      name === "k"
        ? ["--access-token-endpoint", of(access_token_endpoint), "--api-key-id", this.own.id]
        : ["--token-endpoint", of(token_endpoint)];
    const where = ["--region", "us", "--base-url", baseUrl, "--organization-id", organization_id];
    const input = name === "k" ? this.own.secret : api_key;
    const { code, stderr } = await at.integ(["profiles", "add", name, ...where, "--api-key-stdin", ...way], { input });
    if (code !== 0) throw new Error(stderr);
  }

  /** A home of its own with the profiles. */
  home(): Home {
    const at = new Home();
    cpSync(this.#template.path("config"), at.path("config"), { recursive: true });
    return at;
  }

  async makeKey(name: string): Promise<{ id: string; secret: string }> {
    return (await this.#post(
      "/api/v1/access-keys",
      { name },
      { authorization: `Bearer ${await this.token()}` },
    )) as never;
  }

  async makeClient(): Promise<{ id: string }> {
    const body = { service_account_id: this.us.service_account_id, scopes: ["entity:read"] };
    const authorization = `Basic ${Buffer.from(`apikey:${this.us.api_key}`).toString("base64")}`;
    return (await this.#post("/v1/oauth_clients", body, {
      authorization,
      "idempotency-key": crypto.randomUUID(),
    })) as never;
  }

  async token(): Promise<string> {
    const answer = await fetch(this.us.access_token_endpoint, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ secret: this.us.access_key_secret }),
    });
    return ((await answer.json()) as { access_token: string }).access_token;
  }

  async #post(path: string, body: object, headers: Record<string, string>): Promise<unknown> {
    const answer = await fetch(`${this.us.base_url}${path}`, {
      method: "POST",
      headers: { "x-organization-id": this.us.organization_id, "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
    if (answer.status !== 201) throw new Error(await answer.text());
    return answer.json();
  }

  /** What works of an account: all but the keys that the sandbox began with. */
  async live(): Promise<string[]> {
    const [clients, keys] = (await Promise.all([
      this.service.control("GET", "/oauth_clients"),
      this.service.control("GET", "/access_keys"),
    ])) as [{ id: string; status: string }[], { id: string; name: string; status: string }[]];
    const works = [...clients, ...keys].filter(({ status }) => status === "active" || status === "pending");
    return works.map(({ id }) => id).filter((id) => id !== this.own.id && id !== this.us.access_key_id);
  }

  /** As if nothing had happened. */
  async clear(): Promise<void> {
    this.gate.arm();
    this.trap.arm();
    await this.service.calm();
    for (const id of await this.live()) {
      const noun = id.startsWith("oac_") ? "oauth_clients" : "access_keys";
      const confirmed = noun === "oauth_clients" ? { cleanup: "confirmed" } : {};
      await this.service.control("POST", `/${noun}/${id}`, { status: "revoked", ...confirmed });
    }
  }
}

export interface Operation {
  readonly profile: "p" | "k";
  /** Which of its requests is the change, counted from 1. */
  readonly change: number;
  /** What stands before it; the words of the command. */
  readonly words: (table: Table, at: Home) => Promise<readonly string[]>;
}

let number = 0;

export const operations: Readonly<Record<string, Operation>> = {
  create: { profile: "p", change: 1, words: async (table) => createWords(table) },
  "replace lost secret": {
    profile: "p",
    change: 2,
    async words(table, at) {
      await table.service.fault("POST /v1/oauth_clients drop=after times=1");
      await at.integ([...createWords(table), "--retry-for", "0", "-p", "p"]);
      return ["journal", "recover", "--replace-lost-secret"];
    },
  },
  rotate: {
    profile: "p",
    change: 2,
    words: async (table) => ["oauth-clients", "rotate", (await table.makeClient()).id, "--secret-file", "s"],
  },
  revoke: {
    profile: "p",
    change: 1,
    words: async (table) => ["oauth-clients", "revoke", (await table.makeClient()).id, "--yes"],
  },
  "keys create": {
    profile: "k",
    change: 2,
    words: async () => ["keys", "create", ...keyWords(), "--name-marker", "--secret-file", "s"],
  },
  "keys rotate in place": {
    profile: "k",
    change: 2,
    words: async (table) => ["keys", "rotate", (await table.makeKey("old")).id, "--yes", "--secret-file", "s"],
  },
  "keys rotate by replacement": {
    profile: "k",
    change: 3,
    async words(table) {
      const { id } = await table.makeKey("old");
      return ["keys", "rotate", id, "--by-replacement", ...keyWords(), "--name-marker", "--secret-file", "s"];
    },
  },
  "keys revoke": {
    profile: "k",
    change: 2,
    words: async (table) => ["keys", "revoke", (await table.makeKey("old")).id, "--yes"],
  },
};

function createWords({ us }: Table): string[] {
  const whose = ["--service-account", us.service_account_id, "--scope", "entity:read"];
  return ["oauth-clients", "create", ...whose, "--secret-file", "s"];
}

function keyWords(): string[] {
  number += 1;
  return ["--name", `k${number}`, "--scope", "push-ingest:*", "--expires-at", "2031-01-01T00:00:00Z"];
}

/** Where the first process ends: killed at one of its requests, or with a response that says nothing. */
export interface End {
  readonly index: number;
  readonly how: "killed before" | "killed after" | "dropped";
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
  /** The recovery may leave in doubt what a plain one settles. */
  readonly mayDoubt?: boolean;
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
  /** What is true of no good recovery. */
  readonly broken: readonly string[];
}

/** Lives through one cell. @returns nothing if the operation came to its end before */
export async function cell(table: Table, name: string, { end, dimension = {} }: { end: End; dimension?: Dimension }) {
  const at = table.home();
  try {
    await table.clear();
    const { profile, words: wordsOf } = operations[name]!;
    const words = [...(await wordsOf(table, at)), "-p", profile];
    const isLeft = await leave(table, at, { words, end, shift: dimension.firstClock });
    const [entry] = (await rows(at)).filter(({ parent }) => parent === undefined);
    if (!isLeft || entry === undefined) return undefined;
    await table.service.calm();
    const env = { ...dimension.env?.(table, at) };
    await dimension.before?.(table, at);
    const recovery = ["journal", "recover", entry.id, "--yes", "--wait", "0s", "--retry-for", "2s"];
    const how: RunOptions = { env, cwd: dimension.cwd?.(at), under: dimension.under };
    const first = await recovered(table, at, [[...recovery, ...(dimension.words?.(table, at) ?? [])], how]);
    if (dimension.refuses === undefined || first.code === 0) return { first, second: undefined };
    await dimension.undo?.(table, at);
    return { first, second: await recovered(table, at, [recovery, {}]) };
  } finally {
    at.remove();
  }
}

export async function rows(at: Home, env: RunOptions["env"] = {}): Promise<Row[]> {
  const words = ["journal", "list", "--all", "--json"];
  // A full run gives what it tests a process of its own; this only looks.
  const { stdout } = await (runHere(at, words, { env }) ?? at.integ(words, { env }));
  return (JSON.parse(stdout) as { data: Row[] }).data.reverse();
}

/** Runs the command until its end comes. @returns false if it ended by itself before */
async function leave(
  { gate }: Table,
  at: Home,
  { words, end: { index, how }, shift }: { words: readonly string[]; end: End; shift: number | undefined },
): Promise<boolean> {
  const env = shift === undefined ? {} : shifted(shift);
  const child = at.start([...words, "--retry-for", "0"], { env });
  let isMet = false;
  const when = how === "killed before" || how === "dropped" ? "before" : "after";
  gate.arm({ index, when, onHeld: () => void ((isMet = true), how.startsWith("killed") && child.kill("SIGKILL")) });
  await ended(child);
  gate.arm();
  return isMet;
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
  const { code, stderr }: Ended = await ((isOwn ? undefined : runHere(at, words, how)) ?? at.integ(words, how));
  const wire = [...table.gate.met];
  const broken = table.trap.met.map(({ method, path }) => `another service met ${method} ${path}`);
  const { INTEG_JOURNAL = "" } = how.env ?? {};
  const entries = await rows(at, { INTEG_JOURNAL }).catch(() => []);
  const live = await table.live();
  const file = at.path("s");
  if (existsSync(file) && readFileSync(file, "utf8") === "") broken.push("the secret's file is empty");
  return {
    code,
    stderr,
    wire: withoutChance(wire, entries, table),
    states: entries.map(({ operation, state }) => `${operation} ${state}`),
    live: live.length,
    broken,
  };
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
      .replace(/"name":"k\d+(-[0-9a-f]{12})?"/, '"name":"k"');
    return named(`${method} ${path} as ${as} ${of} ${JSON.stringify(rest)} ${what}`);
  });
}
