// Policies that are disturbed while `integ apply` carries them out, and what must be true of the account afterwards.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import type { Account } from "../support/account.ts";
import { type Ended, Home } from "../support/program.ts";
import type { Service } from "../support/service.ts";

export interface Names {
  readonly names: readonly string[];
  readonly scopes?: string;
  readonly overlap?: string;
}

export const applyWords = ["apply", "--yes", "--json", "-q"];
export const many = (count: number): string[] => Array.from({ length: count }, (_, index) => `item-${index}`);
export const widerScopes = "entity:read, organization:read";

/** Of two service accounts in turn, so that thirty have their slots. */
export function policyText(
  { us }: Pick<Service, "us">,
  { names, scopes = "entity:read", overlap = "0s" }: Names,
): string {
  const items = names.map(
    (name, index) =>
      `  ${name}:\n    service_account: ${index % 2 === 0 ? us.service_account_id : us.caller_service_account_id}\n    scopes: [${scopes}]\n    rotate: { every: 60d, overlap: ${overlap} }\n    secret: { file: ${name}.json, format: json }\n`,
  );
  return `version: 1\nunmanaged: ignore\nlimits: { changes_per_run: 100 }\noauth_clients:\n${items.join("")}`;
}

export function homeWith(service: Pick<Service, "us" | "env">, names: Names): Home {
  const home = new Home({ ...service.env, INTEG_TOKEN_ENDPOINT: service.us.token_endpoint });
  writeFileSync(home.path("integ.yaml"), policyText(service, names));
  return home;
}

export function resultsIn({ stdout }: Ended): string[] {
  return stdout === "" ? [] : (JSON.parse(stdout) as { data: { result: string }[] }).data.map(({ result }) => result);
}

interface Delivered {
  readonly client_id: string;
  readonly client_secret: string;
}

export function deliveredTo(home: Home, name: string): Delivered | undefined {
  const path = home.path(`${name}.json`);
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as Delivered) : undefined;
}

/** What is wrong with the account after all was done: each item has one live client, which its file opens. */
export async function wrongsOf(account: Account, home: Home, names: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  const live = new Map((await account.live()).map((client) => [client.client_id, client]));
  if (live.size !== names.length) found.push(`${live.size} live clients of ${names.length} items`);
  for (const name of names) {
    const { client_id, client_secret } = deliveredTo(home, name) ?? {};
    if (client_id === undefined || client_secret === undefined) found.push(`${name} has no secret`);
    else if (!live.delete(client_id)) found.push(`${name} has the secret of a client that is not live`);
    else if (!(await account.opens(client_id, client_secret))) found.push(`the secret of ${name} opens nothing`);
  }
  return found;
}

/** Items whose file is there and opens no client. */
export async function brokenFiles(account: Account, home: Home, names: readonly string[]): Promise<string[]> {
  const broken: string[] = [];
  for (const name of names) {
    const held = deliveredTo(home, name);
    if (held && !(await account.opens(held.client_id, held.client_secret))) broken.push(name);
  }
  return broken;
}

export async function isAnyAboveSlots(account: Account): Promise<boolean> {
  const counts = new Map<string, number>();
  for (const { service_account_id: owner } of await account.live()) counts.set(owner, (counts.get(owner) ?? 0) + 1);
  return [...counts.values()].some((count) => count > 20);
}
