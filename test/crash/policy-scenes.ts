import { existsSync, readFileSync, writeFileSync } from "node:fs";
import type { Account } from "../support/account.ts";
import { type Ended, Home } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import type { Service } from "../support/service.ts";
import { filesWithSecrets } from "./client-audit.ts";

export interface PolicyOptions {
  readonly names: readonly string[];
  /** The names of access keys. The other names are OAuth clients. */
  readonly keys?: readonly string[];
  readonly scopes?: string;
  readonly wider?: readonly string[];
  readonly keyScope?: string;
  readonly overlap?: string;
}

export const applyWords = ["apply", "--yes", "--json", "-q"];
export const many = (count: number): string[] => Array.from({ length: count }, (_, index) => `item-${index}`);
export const widerScopes = "entity:read, organization:read";
export const widerKeyScope = "*";
const keySecretStart = "sbx_us_aks_";

/** The clients alternate between two service accounts, because one account has slots for only 20 clients. */
export function policyText({ us }: Pick<Service, "us">, policy: PolicyOptions): string {
  const { names, keys = [], scopes = "entity:read", wider = [], keyScope = "push-ingest:*", overlap = "0s" } = policy;
  const accounts = [us.service_account_id, us.caller_service_account_id];
  const common = (name: string): string[] => [
    `rotate: { every: 60d, overlap: ${overlap} }`,
    `secret: { file: ${name}.json, format: json }`,
  ];
  const clients = names
    .filter((name) => !keys.includes(name))
    .map((name, index) => [
      `  ${name}:`,
      `service_account: ${accounts[index % 2]}`,
      `scopes: [${wider.includes(name) ? widerScopes : scopes}]`,
      ...common(name),
    ]);
  const accessKeys = keys.map((name) => [
    `  ${name}:`,
    "type: service_account",
    `scopes: ["${keyScope}"]`,
    ...common(name),
  ]);
  const section = (title: string, items: readonly (readonly string[])[]): string[] =>
    items.length === 0 ? [] : [`${title}:`, ...items.map((lines) => lines.join("\n    "))];
  return [
    "version: 1",
    "id: pol_of_this_test",
    "unmanaged: ignore",
    "limits: { changes_per_run: 100 }",
    ...section("oauth_clients", clients),
    ...section("access_keys", accessKeys),
    "",
  ].join("\n");
}

export function homeWith(service: Pick<Service, "us" | "env">, names: PolicyOptions): Home {
  const home = new Home({ ...service.env, INTEG_TOKEN_ENDPOINT: service.us.token_endpoint });
  writeFileSync(home.path("integ.yaml"), policyText(service, names));
  return home;
}

/** A home whose profile has its own key, and exchanges keys for bearer tokens to prove new keys. */
export async function homeWithProfile(service: Pick<Service, "us">, names: PolicyOptions): Promise<Home> {
  const { us } = service;
  const home = new Home();
  const address = ["--region", "us", "--base-url", us.base_url, "--organization-id", us.organization_id];
  const tokens = ["--token-endpoint", us.token_endpoint, "--access-token-endpoint", us.access_token_endpoint];
  const key = ["--api-key-stdin", "--api-key-id", us.access_key_id];
  const words = ["profiles", "add", "prod", ...address, ...tokens, ...key];
  const added = await integHere(home, words, { input: us.access_key_secret });
  if (added.code !== 0) throw new Error(added.stderr);
  writeFileSync(home.path("integ.yaml"), policyText(service, names));
  return home;
}

export function resultsIn({ stdout }: Ended): string[] {
  return stdout === "" ? [] : (JSON.parse(stdout) as { data: { result: string }[] }).data.map(({ result }) => result);
}

interface Delivered {
  readonly client_id?: string;
  readonly client_secret?: string;
  readonly id?: string;
  readonly secret?: string;
}

export function deliveredTo(home: Home, name: string): Delivered | undefined {
  const path = home.path(`${name}.json`);
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as Delivered) : undefined;
}

async function opens(account: Account, { client_id, client_secret, secret }: Delivered): Promise<boolean> {
  if (secret === undefined) return account.opens(client_id ?? "", client_secret ?? "");
  const answer = await fetch(account.service.us.access_token_endpoint, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ secret }),
  });
  await answer.arrayBuffer();
  return answer.ok;
}

interface ListedKey {
  readonly id: string;
  readonly name: string;
  readonly status: string;
}

/** Includes revoked keys, and the keys that the program created, whose names end with a marker. */
export async function keysOf(account: Account): Promise<ListedKey[]> {
  const all = (await account.service.control("GET", "/access_keys")) as ListedKey[];
  return all.filter(({ name }) => /^item-\d+(?:-[0-9a-f]{12})?$/.test(name));
}

export async function clearAll(account: Account): Promise<void> {
  await account.clear();
  for (const { id, status } of await keysOf(account))
    if (status !== "revoked") await account.service.control("POST", `/access_keys/${id}`, { status: "revoked" });
}

/** @returns violations: each item must have exactly one live client or key, whose secret is in its file */
export async function violationsOf(account: Account, home: Home, names: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  const keys = (await keysOf(account)).filter(({ status }) => status === "active").map(({ id }) => id);
  const live = new Set([...(await account.live()).map(({ client_id }) => client_id), ...keys]);
  if (live.size !== names.length) found.push(`${live.size} live clients and keys of ${names.length} items`);
  for (const name of names) {
    const delivered = deliveredTo(home, name);
    const id = delivered?.client_id ?? delivered?.id;
    if (delivered === undefined || id === undefined) found.push(`${name} has no secret`);
    else if (!live.delete(id)) found.push(`${name} has the secret of a client or key that is not live`);
    else if (!(await opens(account, delivered))) found.push(`the secret of ${name} opens nothing`);
  }
  return found;
}

export async function brokenFiles(account: Account, home: Home, names: readonly string[]): Promise<string[]> {
  const broken: string[] = [];
  for (const name of names) {
    const delivered = deliveredTo(home, name);
    if (delivered && !(await opens(account, delivered))) broken.push(name);
  }
  return broken;
}

/** Files that contain a secret or belong to an unfinished write, except the items' files and the profiles' credentials. */
export function strayFilesIn(home: Home): string[] {
  return filesWithSecrets(home.folder, [keySecretStart]).filter(
    (file) => !/^(?:item-\d+\.json$|config\/credentials\/)/.test(file),
  );
}

export async function isAnyAboveSlots(account: Account): Promise<boolean> {
  const counts = new Map<string, number>();
  for (const { service_account_id: owner } of await account.live()) counts.set(owner, (counts.get(owner) ?? 0) + 1);
  return [...counts.values()].some((count) => count > 20);
}
