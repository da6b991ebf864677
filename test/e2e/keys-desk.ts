// Makes and reads access keys at the service without the program, and adds profiles that authenticate with such a key.
import { readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll } from "vitest";
import { Home } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { type RegionDescription, startService, type Service } from "../support/service.ts";

export interface ServiceKey {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly keyType: string;
  readonly scopes: readonly string[];
  readonly expiresAt: number | null;
  readonly lastUsedAt: number | null;
  readonly createdAt: number;
  readonly generation: number;
}

export interface JournalEntry {
  readonly id: string;
  readonly operation: string;
  readonly state: string;
  readonly resource_id: string | null;
  readonly attempts: number;
  readonly next_step: string | null;
  readonly due_at?: string;
  readonly idempotency_key: string | null;
  readonly parent?: string;
  readonly replaces?: string;
  readonly replaced_by?: string;
}

export class KeysDesk {
  readonly service: Service;
  #here: RegionDescription;
  #tokenSince = performance.now();
  readonly #homes: Home[] = [];
  #number = 0;

  constructor(service: Service, here: RegionDescription = service.us) {
    this.service = service;
    this.#here = here;
  }

  get here(): RegionDescription {
    return this.#here;
  }

  static async open(): Promise<KeysDesk> {
    return new KeysDesk(await startService());
  }

  async close(): Promise<void> {
    this.clear();
    await this.service.stop();
  }

  clear(): void {
    for (const home of this.#homes.splice(0)) home.remove();
  }

  /** A home whose environment has the service and a bearer token, but no endpoint that exchanges a secret. */
  withToken(env: Readonly<Record<string, string>> = {}): Home {
    const { base_url, organization_id, access_token } = this.#here;
    return this.#keep(
      new Home({
        INTEG_REGION: "us",
        INTEG_BASE_URL: base_url,
        INTEG_ORGANIZATION_ID: organization_id,
        INTEG_ACCESS_TOKEN: access_token,
        ...env,
      }),
    );
  }

  /** Renews the bearer token of the desk and its homes if it expires soon, because a long run outlives the token. */
  async renew(): Promise<void> {
    if (performance.now() - this.#tokenSince < 240_000) return;
    this.#tokenSince = performance.now();
    const answer = await this.#exchange(this.#here.access_key_secret);
    const { access_token } = (await answer.json()) as { access_token: string };
    this.#here = { ...this.#here, access_token };
    for (const { env } of this.#homes) if (env.INTEG_ACCESS_TOKEN !== undefined) env.INTEG_ACCESS_TOKEN = access_token;
  }

  /** Later homes use the origin that `through` returns, or the service's own without `through`. */
  async goThrough(through: ((origin: string) => Promise<string>) | undefined): Promise<void> {
    const { origin } = new URL(this.service.us.base_url);
    const near = through ? await through(origin) : origin;
    this.#here = { ...this.#here, base_url: this.service.us.base_url.replace(origin, near) };
  }

  #exchange(secret: string): Promise<Response> {
    return fetch(this.#here.access_token_endpoint, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ secret }),
    });
  }

  #keep(home: Home): Home {
    this.#homes.push(home);
    return home;
  }

  /**
   * A home whose profile `p` authenticates with its own key, knows the key's id, and has the exchange endpoint.
   * @param more more words of `profiles add`, in which OWN stands for the key's id
   */
  async withProfile(...more: readonly string[]): Promise<{ at: Home; own: { id: string; secret: string } }> {
    const { base_url, organization_id, access_token_endpoint } = this.#here;
    const own = await this.makeKey({ name: `own-${(this.#number += 1)}` });
    const at = this.#keep(new Home());
    const where = ["--region", "us", "--base-url", base_url, "--organization-id", organization_id];
    const words = ["profiles", "add", "--no-verify", "p", ...where];
    const added = await integHere(
      at,
      [
        ...words,
        "--api-key-stdin",
        "--access-token-endpoint",
        access_token_endpoint,
        ...(more.includes("--api-key-id") ? more : ["--api-key-id", "OWN", ...more]).map((word) =>
          word.replace("OWN", own.id),
        ),
      ],
      {
        input: own.secret,
      },
    );
    if (added.code !== 0) throw new Error(added.stderr);
    return { at, own };
  }

  async makeKey(body: Readonly<Record<string, unknown>>): Promise<{ id: string; secret: string }> {
    const answer = await fetch(`${this.#here.base_url}/api/v1/access-keys`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${this.#here.access_token}`,
        "x-organization-id": this.#here.organization_id,
        "content-type": "application/json",
      },
      body: JSON.stringify(body),
    });
    if (answer.status !== 201) throw new Error(await answer.text());
    return (await answer.json()) as { id: string; secret: string };
  }

  async keys(): Promise<ServiceKey[]> {
    const answer = await fetch(`${this.#here.control_url}/access_keys`);
    return (await answer.json()) as ServiceKey[];
  }

  async key(id: string): Promise<ServiceKey> {
    return (await this.keys()).find((key) => key.id === id)!;
  }

  async live(name: string): Promise<ServiceKey[]> {
    return (await this.keys()).filter((key) => key.name.startsWith(name) && key.status === "active");
  }

  async opens(secret: string): Promise<boolean> {
    const answer = await this.#exchange(secret);
    await answer.body?.cancel();
    return answer.status === 200;
  }

  async sent(method: string, path: RegExp): Promise<number> {
    const { requests } = (await this.service.control("GET")) as { requests: { method: string; path: string }[] };
    return requests.filter((request) => request.method === method && path.test(request.path)).length;
  }
}

export const creation = /^\/api\/v1\/access-keys$/;
export const rotation = /^\/api\/v1\/access-keys\/[^/]+\/rotate$/;

export async function entries(at: Home): Promise<JournalEntry[]> {
  const { stdout } = await integHere(at, ["journal", "list", "--all", "--json"]);
  return (JSON.parse(stdout) as { data: JournalEntry[] }).data;
}

export async function unfinishedEntries(at: Home): Promise<JournalEntry[]> {
  const { stdout } = await integHere(at, ["journal", "list", "--json"]);
  return (JSON.parse(stdout) as { data: JournalEntry[] }).data;
}

export function secretIn(at: Home, name: string): string {
  return readFileSync(at.path(name), "utf8").trimEnd();
}

/** @param take receives the desk, which is reset after each test */
export function deskOfTests(take: (desk: KeysDesk) => void): void {
  let desk: KeysDesk | undefined;
  beforeAll(async () => {
    desk = await KeysDesk.open();
    take(desk);
  });
  afterEach(async () => {
    await desk?.service.calm();
    desk?.clear();
  });
  afterAll(() => desk?.close());
}
