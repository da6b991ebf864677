// `--secret-to vault:<mount>/<path>#<field>`: one field of a secret in HashiCorp Vault or OpenBao (KV version 2). Every write
// names the version that was read (`cas`), so that it overwrites no other change.
import { flags } from "../next-step.ts";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { segment } from "../api/call/request.ts";
import { Failure, invalidValue } from "../errors.ts";
import { fileFailure } from "../disk/error-words.ts";
import { type Environment, variable } from "../profiles/resolution.ts";
import type { Found } from "./destination.ts";
import { AddressedStore, type OpenStore, type Store, type StoreFacts } from "./store.ts";
import { fieldOf, isTemporary, serverAddress, StoreClient, type StoreResponse, storeTries } from "./store-http.ts";
import { isObject } from "../json.ts";

const exampleAddress = "https://vault.example.com:8200";

interface Address {
  readonly path: string;
  readonly field: string;
}

/** The newest version. `fields` is undefined if that version was deleted, or if no version exists. */
interface Current {
  /** 0 if the secret was never written. */
  readonly version: number;
  readonly fields: Readonly<Record<string, unknown>> | undefined;
  /** The server's JSON, with all digits of numbers. */
  readonly text: string;
}

export const open: OpenStore = (text, tools) => {
  const at = addressIn(text);
  return new VaultStore(at, { scheme: "vault", address: `${at.path}#${at.field}`, tools });
};

class VaultStore extends AddressedStore<Address> implements Store {
  async check(): Promise<StoreFacts> {
    const { baseUrl, namespace } = this.#server();
    this.#token();
    authorities(this.tools.env);
    return { server: baseUrl, namespace: namespace ?? "root" };
  }

  async prepare(facts: StoreFacts, isShared = false): Promise<StoreFacts> {
    const client = this.#client();
    const mount = await this.#mount(client);
    const at = { ...facts, mount };
    const capabilities = await this.#capabilities(client, at);
    this.#assertCapable("read", capabilities, at);
    const current = await this.#current(client, at);
    // A patch sends only this field. A token that may not patch must write the other fields again.
    const patches = capabilities.includes("patch");
    if (current.fields !== undefined && patches) this.#assertCapable("patch", capabilities, at);
    else this.#assertCapable(current.version === 0 ? "create" : "update", capabilities, at);
    // The first of several fields creates the Vault secret, the others update it.
    if (isShared && !patches) this.#assertCapable("update", capabilities, at);
    const method = patches ? "patch" : "replace";
    this.#refuseOtherTypes(current, methodFor(current, method));
    return { mount, method };
  }

  async look(facts: StoreFacts): Promise<Found> {
    const current = await this.#current(this.#client(), facts);
    this.#refuseOtherTypes(current, "patch");
    const text = fieldOf(current.fields, this.at.field);
    const version = String(current.version);
    return typeof text === "string" ? { is: "text", text, version } : { is: "absent", version };
  }

  #assertCapable(capability: string, all: readonly unknown[], at: StoreFacts): void {
    if (all.includes(capability) || all.includes("root")) return;
    throw new Failure("auth", `${this.name}: the token may not ${capability === "read" ? "read" : "write"} there.`, {
      meaning: "The secret is written over the version that was read, and read back.",
      hint: `Give the token's policy the capabilities read, create and patch on ${this.#logicalPath(at)}.`,
    });
  }

  /** Names the version even for an absent field, because other fields may have changed. */
  async write(text: string, facts: StoreFacts, over: Found): Promise<boolean> {
    const client = this.#client();
    const version = Number(over.version);
    const isSame = (now: Current): boolean => now.version === version;
    for (let attempt = 1; ; attempt += 1) {
      const isPatch = facts.method === "patch" && over.is === "text";
      const before = isPatch ? undefined : await this.#current(client, facts);
      if (before && fieldOf(before.fields, this.at.field) === text) return true;
      if (before && !isSame(before)) return false;
      const method = before ? methodFor(before, facts.method) : "patch";
      if (before) this.#refuseOtherTypes(before, method);
      const data = { ...(method === "patch" ? {} : before?.fields), [this.at.field]: text };
      const response = await client.send({
        method: method === "patch" ? "PATCH" : "POST",
        path: this.#dataPath(facts),
        contentType: method === "patch" ? "application/merge-patch+json" : undefined,
        body: { options: { cas: version }, data },
        secret: text,
      });
      if (response.kind === "response" && response.status < 300) return true;
      // After a lost response or a refusal, only a read shows if the secret was written.
      const now = await this.#current(client, facts);
      if (fieldOf(now.fields, this.at.field) === text) return true;
      if (!isSame(now)) return false;
      const mayRepeat = response.kind === "lost" || isTemporary(response);
      if (mayRepeat && attempt < storeTries && (await client.pause(attempt, response))) continue;
      throw response.kind === "lost" ? response.failure : await this.#refusal(client, response, "be written");
    }
  }

  #refuseOtherTypes({ fields, text }: Current, method: string): void {
    const { field, path } = this.at;
    const value = fieldOf(fields, field);
    if (value !== undefined && typeof value !== "string")
      throw new Failure("usage", `${this.name}: the field ${field} of ${path} is not a string.`, {
        meaning: "A secret never replaces an object, a list or a number.",
        hint: `Name another field after the # of ${flags.secretTo}.`,
      });
    if (method === "replace" && hasInexactNumber(text))
      throw new Failure("usage", `${this.name}: ${path} contains a number that a rewrite could change.`, {
        hint: "Give the token's policy the capability patch: then only the one field is sent.",
      });
  }

  /** A mount's name may contain slashes: only the server knows where it ends. */
  async #mount(client: StoreClient): Promise<string> {
    const response = await client.read({ method: "GET", path: `/v1/sys/internal/ui/mounts/${encoded(this.at.path)}` });
    if (response.status !== 200) throw await this.#refusal(client, response, "be found");
    const mount = fieldOf(response.body, "data", "path");
    const type = fieldOf(response.body, "data", "type");
    const version = fieldOf(response.body, "data", "options", "version");
    if (typeof mount !== "string" || !`${this.at.path}/`.startsWith(mount))
      throw new Failure("usage", `${this.name}: the server does not say which engine is mounted there.`);
    if (type !== "kv" || version !== "2")
      throw new Failure("usage", `${this.name}: ${mount} is not a KV engine of version 2.`, {
        hint: `Use ${flags.secretCommand} for another engine.`,
      });
    if (mount === `${this.at.path}/`)
      throw new Failure("usage", `${this.name} names the mount and no secret in it.`, {
        hint: `Name a secret below ${mount} in ${flags.secretTo}.`,
      });
    return mount;
  }

  async #capabilities(client: StoreClient, facts: StoreFacts): Promise<readonly unknown[]> {
    const path = this.#logicalPath(facts);
    // This POST changes nothing, so it may be repeated like a read.
    const response = await client.read({
      method: "POST",
      path: "/v1/sys/capabilities-self",
      body: { paths: [path] },
    });
    if (response.status !== 200) throw await this.#refusal(client, response, "be asked for its permissions");
    const granted = fieldOf(response.body, "data", path) ?? fieldOf(response.body, path);
    return Array.isArray(granted) ? granted : [];
  }

  async #current(client: StoreClient, facts: StoreFacts): Promise<Current> {
    const response = await client.read({ method: "GET", path: this.#dataPath(facts) });
    const version = fieldOf(response.body, "data", "metadata", "version");
    // The 404 response for a deleted version contains the version's number.
    if (response.status === 404)
      return { version: typeof version === "number" ? version : 0, fields: undefined, text: "" };
    if (response.status !== 200) throw await this.#refusal(client, response, "be read");
    const fields = fieldOf(response.body, "data", "data");
    if (typeof version !== "number" || !(fields === null || isObject(fields)))
      throw new Failure("unreachable", `${this.name}: the server's response is not one of KV version 2.`);
    return { version, fields: fields ?? undefined, text: response.text };
  }

  async #refusal(client: StoreClient, { status }: StoreResponse, what: string): Promise<Failure> {
    const details = { problem: { status } };
    const name = this.name;
    if (status === 503 && (await isSealed(client)))
      return new Failure("usage", `${name}: the server is sealed.`, {
        ...details,
        hint: "Unlock it (vault operator unseal), then run the command again.",
      });
    if (status === 403) {
      const isKnown = (await client.read({ method: "GET", path: "/v1/auth/token/lookup-self" })).status !== 403;
      return new Failure(
        "auth",
        `${name}: ${isKnown ? "permission denied: it cannot" : "the token is not accepted: it cannot"} ${what}.`,
        {
          ...details,
          hint: isKnown
            ? "Check the policies of the token and the namespace: vault token capabilities <path>."
            : "Renew the login (vault login): VAULT_TOKEN, VAULT_TOKEN_FILE or ~/.vault-token contains an expired, revoked or foreign token.",
        },
      );
    }
    if (status === 429) return new Failure("rate_limited", `${name}: the server limits the rate of requests.`, details);
    const kind = status === 400 || status === 404 || status === 405 ? "usage" : "unreachable";
    return new Failure(kind, `${name} cannot ${what}: the server responded with ${status}.`, details);
  }

  /** The path as the server's policies write it: `<mount>data/<path>`. */
  #logicalPath({ mount = "" }: StoreFacts): string {
    return `${mount}data/${this.at.path.slice(mount.length)}`;
  }

  #dataPath(facts: StoreFacts): string {
    return `/v1/${encoded(this.#logicalPath(facts))}`;
  }

  #server(): { readonly baseUrl: string; readonly namespace: string | undefined } {
    const { env } = this.tools;
    const address = variable(env, "VAULT_ADDR");
    if (address === undefined)
      throw new Failure("usage", `${this.name} needs VAULT_ADDR.`, {
        hint: `Set VAULT_ADDR, like ${exampleAddress}.`,
      });
    const namespace = variable(env, "VAULT_NAMESPACE")?.replaceAll(/^\/+|\/+$/g, "");
    return {
      baseUrl: serverAddress(address, { what: "VAULT_ADDR", example: exampleAddress }),
      namespace: namespace || undefined,
    };
  }

  #token(): string {
    const { env } = this.tools;
    const given = variable(env, "VAULT_TOKEN");
    if (given !== undefined) return given;
    const tokenFile = variable(env, "VAULT_TOKEN_FILE");
    const path = tokenFile ?? (env.HOME ? join(env.HOME, ".vault-token") : undefined);
    const token = path === undefined ? "" : tokenIn(path, tokenFile !== undefined);
    if (token === "")
      throw new Failure("auth", `${this.name} has no token.`, {
        hint: "Set VAULT_TOKEN or VAULT_TOKEN_FILE, or log in with vault login.",
      });
    return token;
  }

  #client(): StoreClient {
    const { baseUrl, namespace } = this.#server();
    const token = this.#token();
    const { env, http, sleep, signal } = this.tools;
    const client: StoreClient = new StoreClient({
      name: `Vault at ${baseUrl}`,
      baseUrl,
      token,
      headers: {
        accept: "application/json",
        "x-vault-token": token,
        "x-vault-request": "true",
        ...(namespace && { "x-vault-namespace": namespace }),
      },
      http: () => http({ ca: authorities(env) }),
      sleep,
      signal,
      // Both a busy and a sealed server respond with 503.
      isLasting: async ({ status }) => status === 503 && (await isSealed(client)),
    });
    return client;
  }
}

/** Vault refuses a patch of a missing secret. */
function methodFor({ fields }: Current, method: string | undefined): string {
  return fields !== undefined && method === "patch" ? "patch" : "replace";
}

function addressIn(text: string): Address {
  const hash = text.lastIndexOf("#");
  const [path, field] = [text.slice(0, hash), text.slice(hash + 1)];
  const parts = path.split("/");
  const isPath = parts.length > 1 && parts.every((part) => part !== "" && part !== "." && part !== "..");
  if (hash > 0 && field !== "" && isPath && !/[\p{Cc}\p{Cs}]/u.test(text)) return { path, field };
  throw invalidValue(flags.secretTo, `vault:${text}`, {
    why: "it is not vault:<mount>/<path>#<field>",
    hint: `Write it like ${flags.secretTo} vault:secret/my-app#client_secret.`,
  });
}

function encoded(path: string): string {
  return path
    .split("/")
    .map((part) => segment(part, "path in Vault"))
    .join("/");
}

function authorities(env: Environment): string | undefined {
  const path = variable(env, "VAULT_CACERT");
  return path === undefined ? undefined : textOf(path, "VAULT_CACERT");
}

function tokenIn(path: string, isNeeded: boolean): string {
  const text = textOf(path, "the Vault token", isNeeded).trim();
  if (!/[\p{Cc}\s]/u.test(text)) return text;
  throw new Failure("auth", `${path} contains more than a token.`);
}

function textOf(path: string, what: string, isNeeded = true): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (!isNeeded && (error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw fileFailure(error, `read ${what}`, { path });
  }
}

async function isSealed(client: StoreClient): Promise<boolean> {
  const response = await client.send({ method: "GET", path: "/v1/sys/seal-status" });
  return response.kind === "response" && fieldOf(response.body, "sealed") === true;
}

/** True if JavaScript would write a number differently, for example with fewer digits. */
function hasInexactNumber(json: string): boolean {
  const tokens = json.match(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g) ?? [];
  return tokens.some((token) => !token.startsWith('"') && String(Number(token)) !== token);
}
