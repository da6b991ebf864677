import type { Store, StoreFacts } from "../../../src/secrets/store.ts";
import { open } from "../../../src/secrets/vault-store.ts";
import { type Answer, type Answers, type Script, scripted } from "./store-script.ts";

export const server = "https://vault.example:8200";
export const token = "s.token";
export const env = { VAULT_ADDR: server, VAULT_TOKEN: token };
export const address = "secret/app#key";
export const name = `--secret-to vault:${address}`;

export const asksMount = "GET /v1/sys/internal/ui/mounts/secret/app";
export const asksRights = "POST /v1/sys/capabilities-self";
export const gets = "GET /v1/secret/data/app";
export const posts = "POST /v1/secret/data/app";
export const patches = "PATCH /v1/secret/data/app";

export const ok: Answer = { status: 200, body: {} };
const kv: Answer = { status: 200, body: { data: { path: "secret/", type: "kv", options: { version: "2" } } } };
export const absent: Answer = { status: 404, body: { errors: [] } };

export function at(version: number, fields: object | null): Answer {
  const body = { data: { data: fields, metadata: { version } } };
  return { status: fields === null ? 404 : 200, body };
}

export function rights(...names: readonly string[]): Answer {
  return { status: 200, body: { data: { "secret/data/app": names } } };
}

interface Opened extends Script {
  readonly store: Store;
}

export function vault(answers: Answers, more: Readonly<Record<string, string | undefined>> = {}): Opened {
  const script = scripted({ [asksMount]: [kv], ...answers }, { ...env, ...more });
  return Object.defineProperty(script as Opened, "store", { value: open(address, script.tools) });
}

export const facts: StoreFacts = { server, namespace: "root" };
export const patch: StoreFacts = { ...facts, mount: "secret/", method: "patch" };
export const replace: StoreFacts = { ...patch, method: "replace" };
