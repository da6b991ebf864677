// Simulates a year in which a policy is applied each night. The program and the sandbox share a moved clock in this process.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Server, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startSandbox } from "../../src/sandbox/sandbox.ts";
import { type Ended, Home } from "./program.ts";
import { runHere } from "./program-here.ts";
import { askControl, type RegionDescription } from "./service.ts";

const hour = 3_600_000;
const day = 24 * hour;

/** Replaces this process's `Date`, whose time only `set` changes. */
class MovableClock {
  #now: number;
  readonly #real = globalThis.Date;
  readonly #emit = Server.prototype.emit;

  constructor(start: number) {
    this.#now = start;
    const now = (): number => this.#now;
    globalThis.Date = class extends this.#real {
      constructor(...given: unknown[]) {
        super(...((given.length === 0 ? [now()] : given) as [number]));
      }
      static override now(): number {
        return now();
      }
    } as DateConstructor;
    // Node's own Date header would have the real time, which contradicts the moved clock.
    const emit = this.#emit;
    Server.prototype.emit = function (this: Server, event: string | symbol, ...given: unknown[]) {
      if (event === "request") (given[1] as ServerResponse).setHeader("date", new Date(now()).toUTCString());
      return emit.apply(this, [event, ...given] as Parameters<typeof emit>);
    };
  }

  set(ms: number): void {
    this.#now = ms;
  }

  get now(): number {
    return this.#now;
  }

  release(): void {
    globalThis.Date = this.#real;
    Server.prototype.emit = this.#emit;
  }
}

export interface YearItem {
  readonly name: string;
  readonly kind: "oauth_client" | "access_key";
  /** The age limit: `every` of a client, or `expires_in` minus `before_expiry` of a key. */
  readonly everyDays: number;
  readonly overlapHours: number;
  /** The destination, as in a policy. By default it is a JSON file. */
  readonly to?: string;
  /** Reads the current secret at the destination, by default from the file. */
  readonly secret?: (home: Home) => string | undefined;
}

export interface YearFigures {
  nights: number;
  runs: number;
  polls: number;
  /** How often a consumer had no working credential when it polled. */
  withoutWorking: number;
  /** How often an item was more than a day older than its limit after a night. */
  tooOld: number;
  /** The number of items whose secret did not work at the end. */
  lost: number;
  /** The number of live clients and keys at the end, beyond one per item. */
  doubled: number;
  /** How often the service account had more than 20 clients. */
  aboveSlots: number;
  rotations: number;
  failedRuns: number;
  readonly troubles: string[];
}

interface ListedCredential {
  readonly id: string;
  readonly status: string;
  readonly client_id?: string | null;
  readonly name?: string;
  readonly createdAt?: string;
}

export interface YearOptions {
  readonly nights: number;
  readonly items: readonly YearItem[];
  readonly faultOf: (night: number) => string | undefined;
  readonly env?: Readonly<Record<string, string>>;
}

const beforeExpiryDays = 14;

function policyOf(items: readonly YearItem[], account: string): string {
  const of = (kind: YearItem["kind"], lines: (item: YearItem) => string[]): string[] =>
    items
      .filter((item) => item.kind === kind)
      .flatMap((item) => [`  ${item.name}:`, ...lines(item).map((line) => `    ${line}`)]);
  return [
    "version: 1",
    "id: pol_of_this_test",
    "profile: prod",
    "unmanaged: ignore",
    "limits: { changes_per_run: 100 }",
    "oauth_clients:",
    ...of("oauth_client", ({ name, everyDays, overlapHours, to = `{ file: ${name}.json, format: json }` }) => [
      `service_account: ${account}`,
      "scopes: [entity:read]",
      `rotate: { every: ${everyDays}d, overlap: ${overlapHours}h }`,
      `secret: ${to}`,
    ]),
    ...(items.some(({ kind }) => kind === "access_key") ? ["access_keys:"] : []),
    ...of("access_key", ({ name, everyDays, overlapHours }) => [
      "type: service_account",
      'scopes: ["push-ingest:*"]',
      `expires_in: ${everyDays + beforeExpiryDays}d`,
      `rotate: { before_expiry: ${beforeExpiryDays}d, overlap: ${overlapHours}h }`,
      `secret: { file: ${name}.json, format: json }`,
    ]),
    "",
  ].join("\n");
}

/** An item is created in the first night, and rotated in the first night in which it exceeds its limit. */
export function expectedRotations({ everyDays }: YearItem, nights: number): number {
  return Math.floor((nights - 1) / (everyDays + 1));
}

interface Deployed {
  readonly client_id?: string;
  readonly client_secret?: string;
  readonly secret?: string;
}

function deployedAt(home: Home, { name, secret }: YearItem): Deployed | undefined {
  if (secret === undefined) return JSON.parse(readFileSync(home.path(`${name}.json`), "utf8")) as Deployed;
  const client_secret = secret(home);
  return client_secret === undefined ? undefined : { client_secret };
}

/** Loads its secret again after half of the overlap, or on each poll if there is no overlap. */
class Consumer {
  readonly item: YearItem;
  #loaded: Deployed | undefined;
  #loadedAt = -Infinity;

  constructor(item: YearItem) {
    this.item = item;
  }

  credential(home: Home, nowMs: number): Deployed | undefined {
    const every = (this.item.overlapHours * hour) / 2;
    if (nowMs - this.#loadedAt >= every) {
      try {
        this.#loaded = deployedAt(home, this.item);
        this.#loadedAt = nowMs;
      } catch {
        // The secret is not delivered yet.
      }
    }
    return this.#loaded;
  }
}

export async function simulateYear({ nights, items, faultOf, env }: YearOptions): Promise<YearFigures> {
  const start = Date.parse("2026-01-01T02:00:00.000Z");
  const clock = new MovableClock(start);
  const stateDir = mkdtempSync(join(tmpdir(), "integ-year-"));
  const home = new Home();
  const figures: YearFigures = {
    nights,
    runs: 0,
    polls: 0,
    withoutWorking: 0,
    tooOld: 0,
    lost: 0,
    doubled: 0,
    aboveSlots: 0,
    rotations: 0,
    failedRuns: 0,
    troubles: [],
  };
  const sandbox = await startSandbox({ stateDir, now: () => Date.now() });
  try {
    const { us } = sandbox.describe() as unknown as { us: RegionDescription };
    const year = new Year({ clock, home, us, items, figures, env });
    await year.begin();
    for (let night = 0; night < nights; night += 1) {
      clock.set(start + night * day);
      await year.night(faultOf(night), night);
      for (let part = 1; part <= 5; part += 1) {
        clock.set(start + night * day + part * 4 * hour);
        await year.pollAll(`night ${night}, ${part * 4} h later`);
      }
    }
    await year.end(start + nights * day);
  } finally {
    clock.release();
    await sandbox.close();
    home.remove();
    rmSync(stateDir, { recursive: true, force: true });
  }
  return figures;
}

interface YearParts {
  readonly clock: MovableClock;
  readonly home: Home;
  readonly us: RegionDescription;
  readonly items: readonly YearItem[];
  readonly figures: YearFigures;
  readonly env: Readonly<Record<string, string>> | undefined;
}

class Year {
  readonly #parts: YearParts;
  readonly #consumers: readonly Consumer[];
  readonly #seenIds = new Set<string>();

  constructor(parts: YearParts) {
    this.#parts = parts;
    this.#consumers = parts.items.map((item) => new Consumer(item));
  }

  async begin(): Promise<void> {
    const { home, us, items } = this.#parts;
    // The program's own key must not expire during the year.
    await askControl(this.#parts.us, "POST", `/access_keys/${us.access_key_id}`, { expiresAt: null });
    const at = `--base-url ${us.base_url} --organization-id ${us.organization_id}`;
    const words = `profiles add prod --region us ${at}`.split(" ");
    const more = ["--access-token-endpoint", us.access_token_endpoint, "--token-endpoint", us.token_endpoint];
    const own = ["--api-key-stdin", "--api-key-id", us.access_key_id];
    const added = await runHere(home, [...words, ...more, ...own], { input: us.access_key_secret });
    if (added?.code !== 0) throw new Error(added?.stderr);
    writeFileSync(home.path("integ.yaml"), policyOf(items, us.service_account_id));
  }

  async night(fault: string | undefined, night: number): Promise<void> {
    const { clock, figures } = this.#parts;
    const begun = clock.now;
    if (fault !== undefined) await askControl(this.#parts.us, "POST", "", { fault });
    const first = await this.#apply(night);
    await askControl(this.#parts.us, "DELETE");
    if (first.code !== 0) {
      figures.failedRuns += 1;
      clock.set(begun + hour);
      const second = await this.#apply(night);
      if (second.code !== 0) figures.troubles.push(`night ${night}: ${second.code} ${second.stderr}`);
    }
    await this.pollAll(`night ${night}, after the run`);
    await this.#recordAges(night);
  }

  async #apply(night: number, words: readonly string[] = []): Promise<Ended> {
    const { home, figures, env } = this.#parts;
    figures.runs += 1;
    const job = { isOver: false };
    const typed = ["apply", "--yes", "-o", "json", "-q", "--retry-for", "3s", "--wait", "2s", ...words];
    const running = runHere(home, typed, { env })!.finally(() => (job.isOver = true));
    if (night === 0) return running;
    do {
      await this.pollAll(`night ${night}, during the run`);
      await new Promise((done) => setTimeout(done, 5));
    } while (!job.isOver);
    return running;
  }

  async pollAll(when: string): Promise<void> {
    const { figures, home, clock } = this.#parts;
    for (const consumer of this.#consumers) {
      const credential = consumer.credential(home, clock.now);
      if (credential === undefined && when.startsWith("night 0,")) continue;
      figures.polls += 1;
      if (credential !== undefined && (await this.#works(credential))) continue;
      // Without an overlap the consumer loads the new secret immediately.
      const again = consumer.item.overlapHours === 0 ? consumer.credential(home, clock.now) : undefined;
      if (again !== undefined && (await this.#works(again))) continue;
      figures.withoutWorking += 1;
      figures.troubles.push(`${when}: ${consumer.item.name} has no working credential`);
    }
    const { length } = (await this.#clients()).filter(({ status }) => status !== "revoked");
    if (length > 20) figures.aboveSlots += 1;
  }

  async #works(deployed: Deployed): Promise<boolean> {
    if (deployed.client_id !== undefined || deployed.client_secret === undefined) return this.#getsToken(deployed);
    // A raw secret does not name its client, so all active clients are tried.
    for (const { client_id, status } of await this.#clients())
      if (status === "active" && (await this.#getsToken({ ...deployed, client_id: client_id ?? "" }))) return true;
    return false;
  }

  async #getsToken({ client_id, client_secret, secret }: Deployed): Promise<boolean> {
    const { us } = this.#parts;
    // A failed connection or a busy service says nothing about the credential.
    for (let attempt = 0; ; attempt += 1) {
      const answer = await fetch(
        client_secret === undefined ? us.access_token_endpoint : us.token_endpoint,
        client_secret === undefined
          ? { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ secret }) }
          : {
              method: "POST",
              headers: {
                authorization: `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString("base64")}`,
                "content-type": "application/x-www-form-urlencoded",
              },
              body: "grant_type=client_credentials",
            },
      ).catch(() => undefined);
      await answer?.arrayBuffer().catch(() => undefined);
      if (answer?.ok) return true;
      if (answer !== undefined && answer.status < 429) return false;
      if (attempt === 20) return false;
    }
  }

  async #recordAges(night: number): Promise<void> {
    const { figures, clock, items } = this.#parts;
    const live = await this.#ownLive();
    for (const { id } of live) if (!this.#seenIds.has(id)) this.#seenIds.add(id);
    figures.rotations = this.#seenIds.size - items.length;
    const journal = await this.#rows(["plan", "--json"]);
    for (const { name, age } of journal as { name: string; age: string | null }[]) {
      const { everyDays } = items.find((item) => item.name === name)!;
      const days = age === null ? Number.POSITIVE_INFINITY : age.endsWith("d") ? Number(age.slice(0, -1)) : 0;
      if (days <= everyDays + 1) continue;
      figures.tooOld += 1;
      figures.troubles.push(`night ${night}: ${name} is ${age} old at ${new Date(clock.now).toISOString()}`);
    }
  }

  /** Ends the last overlaps, and counts excess credentials and secrets that do not work. */
  async end(ms: number): Promise<void> {
    const { clock, figures, items, home } = this.#parts;
    clock.set(ms);
    await this.#apply(1);
    const rows = (await this.#rows(["plan", "--json", "-q"])) as { name: string; action: string }[];
    const waiting = rows.filter(({ action }) => action === "wait").map(({ name }) => name);
    // Night 0 polls no consumer: the early end of an overlap can leave a consumer with a revoked secret.
    if (waiting.length > 0) await this.#apply(0, ["--finish", ...waiting]);
    const live = await this.#ownLive();
    figures.doubled = live.length - items.length;
    for (const item of items) {
      const deployed = deployedAt(home, item);
      if (deployed === undefined || !(await this.#works(deployed))) figures.lost += 1;
    }
  }

  async #rows(words: readonly string[]): Promise<unknown[]> {
    const { home, env } = this.#parts;
    const { stdout, stderr } = (await runHere(home, words, { env }))!;
    if (stdout === "") throw new Error(stderr);
    return (JSON.parse(stdout) as { data: unknown[] }).data;
  }

  async #ownLive(): Promise<ListedCredential[]> {
    const names = new Set(this.#parts.items.map(({ name }) => name));
    const keys = (await askControl(this.#parts.us, "GET", "/access_keys")) as ListedCredential[];
    const ownKeys = keys.filter(
      ({ name = "", status }) => status === "active" && names.has(name.replace(/-[0-9a-f]{12}$/, "")),
    );
    return [...(await this.#clients()).filter(({ status }) => status !== "revoked"), ...ownKeys];
  }

  async #clients(): Promise<ListedCredential[]> {
    return (await askControl(this.#parts.us, "GET", "/oauth_clients")) as ListedCredential[];
  }
}
