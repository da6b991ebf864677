// What the table of recoveries interrupts: every operation of the built program, the account that it acts on, and what stood
// there before.
import { cpSync } from "node:fs";
import { Gate } from "../support/gate.ts";
import { Home } from "../support/program.ts";
import { type Moment, RewindableService } from "../support/rewindable-service.ts";
import type { RegionDescription } from "../support/service.ts";

interface Credential {
  readonly id: string;
  readonly secret: string;
}

interface Made {
  readonly id: string;
  readonly client_id: string;
  readonly client_secret: string;
}

/** A service, what stands between it and the program, and the profiles that every cell starts with. */
export class Table {
  readonly service: RewindableService;
  readonly gate: Gate;
  /** Another service: no request may ever reach it. */
  readonly trap: Gate;
  readonly us: RegionDescription;
  readonly #template = new Home();
  /** The key that profile `k` acts with. */
  own: Credential = { id: "", secret: "" };
  /** The client whose credential profile `o` has. */
  client: Made = { id: "", client_id: "", client_secret: "" };

  /** Before any operation. */
  base: Moment;

  /** What the profiles name. */
  readonly #origin: string;

  private constructor(service: RewindableService, gates: { gate: Gate; trap: Gate; origin: string }) {
    this.service = service;
    this.gate = gates.gate;
    this.trap = gates.trap;
    this.#origin = gates.origin;
    this.us = service.us;
    this.base = service.moment();
  }

  /** @param through leads to an origin by another one, which the profiles name then */
  static async open(through?: (origin: string) => Promise<string>): Promise<Table> {
    const service = await RewindableService.start();
    const gates = { gate: await new Gate(service.us.base_url).open(), trap: await new Gate().open() };
    const { origin } = gates.gate;
    const table = new Table(service, { ...gates, origin: (await through?.(origin)) ?? origin });
    table.own = await table.makeKey("own");
    table.client = await table.makeClient();
    for (const name of ["p", "k", "o"]) await table.add(table.#template, name);
    await table.add(table.#template, "other", table.trap.origin);
    table.base = service.moment();
    return table;
  }

  async close(): Promise<void> {
    await Promise.all([this.gate.close(), this.trap.close(), this.service.stop()]);
    this.#template.remove();
  }

  /** `profiles add`: `k` acts with an access key, `o` with an OAuth client, any other with an API key. */
  async add(at: Home, name: string, baseUrl: string = this.#origin): Promise<void> {
    const { organization_id, token_endpoint, access_token_endpoint, api_key } = this.us;
    const through = (address: string): string => this.gate.through(address).replace(this.gate.origin, this.#origin);
    const of = (address: string): string => (baseUrl === this.#origin ? through(address) : baseUrl);
    const ways: Readonly<Record<string, readonly [input: string, ...words: string[]]>> = {
      k: [
        this.own.secret,
        "--api-key-stdin",
        "--access-token-endpoint",
        of(access_token_endpoint),
        "--api-key-id",
        this.own.id,
      ],
      o: [
        this.client.client_secret,
        "--client-secret-stdin",
        "--client-id",
        this.client.client_id,
        "--token-endpoint",
        of(token_endpoint),
      ],
    };
    const [input, ...way] = ways[name] ?? [api_key, "--api-key-stdin", "--token-endpoint", of(token_endpoint)];
    const where = ["--region", "us", "--base-url", baseUrl, "--organization-id", organization_id, "--no-verify"];
    const { code, stderr } = await at.integ(["profiles", "add", name, ...where, ...way], { input });
    if (code !== 0) throw new Error(stderr);
  }

  /** A home of its own with the profiles. */
  home(): Home {
    const at = new Home();
    cpSync(this.#template.path("config"), at.path("config"), { recursive: true });
    return at;
  }

  async makeKey(name: string): Promise<Credential> {
    const { access_token } = (await this.exchange({ secret: this.us.access_key_secret })) as { access_token: string };
    const authorization = `Bearer ${access_token}`;
    return (await this.#post("/api/v1/access-keys", { name }, { authorization })) as Credential;
  }

  async makeClient(): Promise<Made> {
    const body = { service_account_id: this.us.service_account_id, scopes: ["entity:read"] };
    const authorization = `Basic ${Buffer.from(`apikey:${this.us.api_key}`).toString("base64")}`;
    const headers = { authorization, "idempotency-key": crypto.randomUUID() };
    return (await this.#post("/v1/oauth_clients", body, headers)) as Made;
  }

  /** @returns nothing if the secret is no key's */
  async exchange(secret: { readonly secret: string }): Promise<unknown> {
    const answer = await fetch(this.us.access_token_endpoint, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(secret),
    });
    return answer.ok ? answer.json() : undefined;
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

  /** What works of the account: all but the keys that the sandbox starts with. */
  async live(): Promise<{ id: string; client_id?: string }[]> {
    const [clients, keys] = (await Promise.all([
      this.service.control("GET", "/oauth_clients"),
      this.service.control("GET", "/access_keys"),
    ])) as [{ id: string; client_id: string; status: string }[], { id: string; status: string }[]];
    return [...clients, ...keys].filter(
      ({ id, status }) => (status === "active" || status === "pending") && id !== this.us.access_key_id,
    );
  }

  /** Whether a secret is that of a client or key of those that work. */
  async works(secret: string, live: readonly { id: string; client_id?: string }[]): Promise<boolean> {
    if (secret === this.client.client_secret) return live.some(({ id }) => id === this.client.id);
    if ((await this.exchange({ secret })) !== undefined) return true;
    // Most likely the newest.
    for (const { client_id } of live.toReversed()) {
      if (!client_id) continue;
      const authorization = `Basic ${Buffer.from(`${client_id}:${secret}`).toString("base64")}`;
      const headers = { authorization, "content-type": "application/x-www-form-urlencoded" };
      const asked = { method: "POST", headers, body: "grant_type=client_credentials" };
      if ((await fetch(this.us.token_endpoint, asked)).ok) return true;
    }
    return false;
  }
}

export interface Operation {
  readonly profile: "p" | "k";
  /** Which of its requests is the change, counted from 1. */
  readonly change: number;
  /** What stands before it; the words of the command. */
  readonly words: (table: Table, at: Home) => Promise<readonly string[]>;
}

const toFile = ["--secret-file", "s"];

export const operations: Readonly<Record<string, Operation>> = {
  create: { profile: "p", change: 1, words: async (table) => [...createWords(table), ...toFile] },
  "create for three destinations": {
    profile: "p",
    change: 1,
    words: async (table) => [...createWords(table), ...toFile, "--secret-file", "t", "--secret-profile", "o"],
  },
  "replace lost secret": {
    profile: "p",
    change: 2,
    async words(table, at) {
      await table.service.fault("POST /v1/oauth_clients drop=after times=1");
      await at.integ([...createWords(table), ...toFile, "--retry-for", "0", "-p", "p"]);
      return ["journal", "recover", "--replace-lost-secret"];
    },
  },
  rotate: {
    profile: "p",
    change: 2,
    words: async (table) => ["oauth-clients", "rotate", (await table.makeClient()).id, ...toFile],
  },
  "rotate the client of a profile": {
    profile: "p",
    change: 2,
    words: async (table) => ["oauth-clients", "rotate", table.client.id, "--secret-profile", "o"],
  },
  revoke: {
    profile: "p",
    change: 1,
    words: async (table) => ["oauth-clients", "revoke", (await table.makeClient()).id, "--yes"],
  },
  "keys create": {
    profile: "k",
    change: 2,
    words: async () => ["keys", "create", ...keyWords, ...toFile],
  },
  "keys create for two destinations": {
    profile: "k",
    change: 2,
    words: async () => ["keys", "create", ...keyWords, ...toFile, "--secret-file", "t"],
  },
  "keys rotate in place": {
    profile: "k",
    change: 2,
    words: async (table) => ["keys", "rotate", (await table.makeKey("old")).id, "--yes", ...toFile],
  },
  "keys rotate the profile's own in place": {
    profile: "k",
    change: 2,
    words: async ({ own }) => ["keys", "rotate", own.id, "--yes", "--update-profile"],
  },
  "keys rotate by replacement": {
    profile: "k",
    change: 3,
    async words(table) {
      const { id } = await table.makeKey("old");
      return ["keys", "rotate", id, "--by-replacement", ...keyWords, ...toFile];
    },
  },
  "keys rotate the profile's own by replacement": {
    profile: "k",
    change: 3,
    words: async ({ own }) => ["keys", "rotate", own.id, "--by-replacement", ...keyWords, "--update-profile", "--yes"],
  },
  "keys revoke": {
    profile: "k",
    change: 2,
    words: async (table) => ["keys", "revoke", (await table.makeKey("old")).id, "--yes"],
  },
};

const keyWords = [
  "--name",
  "made",
  "--scope",
  "push-ingest:*",
  "--expires-at",
  "2031-01-01T00:00:00Z",
  "--name-marker",
];

function createWords({ us }: Table): string[] {
  return ["oauth-clients", "create", "--service-account", us.service_account_id, "--scope", "entity:read"];
}
