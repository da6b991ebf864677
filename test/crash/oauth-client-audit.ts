// What must hold after a crash of an OAuth client's work, at once and after recovery: compared with what the service holds.
import { lstatSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { type Account, type HeldClient, pastTheProgram } from "../support/account.ts";
import { readJournal, type ReadEntry, unsettledIn } from "../support/journal-file.ts";
import type { Home } from "../support/program.ts";
import type { Place } from "./secret-places.ts";

/** How every client secret of the sandbox begins. */
const secretStart = "sbx_us_cs_";

/** Violations by kind; all of them must stay empty. */
export class Findings {
  readonly duplicates: string[] = [];
  readonly lostKeys: string[] = [];
  readonly withoutOwner: string[] = [];
  readonly revokedAfterDelivery: string[] = [];
  readonly withoutWorkingClient: string[] = [];
  readonly tornSecrets: string[] = [];
  readonly strayedSecrets: string[] = [];
  readonly unfinished: string[] = [];

  get figures(): string {
    return Object.entries(this)
      .map(([name, found]) => `${name} ${(found as string[]).length}`)
      .join(", ");
  }

  get all(): string[] {
    return Object.entries(this).flatMap(([name, found]) => (found as string[]).map((text) => `${name}: ${text}`));
  }
}

export interface Watched {
  readonly at: Home;
  readonly account: Account;
  readonly findings: Findings;
  /** Where it happened, for messages. */
  readonly where: string;
  readonly place: Place;
  /** Standard output of all commands so far. */
  printed: string;
  /** The client that a rotation is to replace. */
  readonly old?: { readonly id: string };
}

export function journalOf(at: Home): ReadEntry[] {
  return readJournal(at.path("state", "journal.ndjson"));
}

/** Right after a crash, before anybody mends anything. @returns the delivered secret, where there is one */
export async function auditCrash({
  at,
  account,
  findings,
  where,
  old,
  place,
  printed,
}: Watched): Promise<string | undefined> {
  const entries = journalOf(at);
  for (const { idempotency_key, body } of await account.creations())
    if (
      !idempotency_key?.startsWith(pastTheProgram) &&
      !entries.some((entry) => entry.idempotency_key === idempotency_key && entry.request_text === body)
    )
      findings.lostKeys.push(`${where}: the service met the key ${idempotency_key}, which is not in the journal`);
  const secret = place.delivered(at, printed);
  const live = await account.live();
  if (secret !== undefined && !(await opensOne(account, live, secret)))
    findings.tornSecrets.push(`${where}: what stands in its place opens no client: ${secret.length} characters`);
  if (old && !live.some(({ id }) => id === old.id) && secret === undefined)
    findings.withoutWorkingClient.push(`${where}: the old client is gone and no new one delivered`);
  return secret;
}

async function opensOne(
  account: Account,
  live: readonly HeldClient[],
  secret: string,
): Promise<HeldClient | undefined> {
  for (const client of live)
    if (client.client_id !== null && (await account.opens(client.client_id, secret.trimEnd()))) return client;
  return undefined;
}

/**
 * After recovery: everything is settled, at most one live client stands for the intent, and its secret is in its place.
 * @param before the secret that was delivered when the crash came
 */
export async function auditRecovered(watched: Watched, before: string | undefined): Promise<void> {
  const { at, account, findings, where, old, place, printed } = watched;
  const entries = journalOf(at);
  for (const { id, state } of unsettledIn(entries)) findings.unfinished.push(`${where}: entry ${id} is still ${state}`);
  const live = await account.live();
  const isRefused = entries.every(({ state }) => state === "refused");
  const wasBegun = entries.length > 0 && !isRefused;
  const ours = wasBegun ? live : live.filter(({ id }) => id !== old?.id);
  if (ours.length > 1)
    findings.duplicates.push(`${where}: ${ours.length} live clients: ${ours.map(({ id }) => id).join(", ")}`);
  const secret = place.delivered(at, printed);
  const opened = secret === undefined ? undefined : await opensOne(account, live, secret);
  for (const { id, idempotency_key } of ours)
    if (opened?.id !== id || !isOwned(entries, id))
      findings.withoutOwner.push(`${where}: ${id} is live under ${idempotency_key}, its secret is not in its place`);
  if (wasBegun && ours.length === 0) findings.unfinished.push(`${where}: begun, and no client after recovery`);
  if (place.keepsTrace && before !== undefined && (secret !== before || opened === undefined))
    findings.revokedAfterDelivery.push(`${where}: the delivered secret ${opened ? "was replaced" : "no longer opens"}`);
  for (const file of filesWithSecrets(at.folder))
    if (!place.holds(at, file)) findings.strayedSecrets.push(`${where}: a secret stands in ${file}`);
}

function isOwned(entries: readonly ReadEntry[], id: string): boolean {
  return entries.some(
    ({ operation, state, resource_id }) =>
      operation === "oauth_client.create" && state === "done" && resource_id === id,
  );
}

/** Every file under a folder that holds a client secret, or room that was kept for one and not given back. */
export function filesWithSecrets(folder: string): string[] {
  const found: string[] = [];
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const path = join(folder, name);
    if (!lstatSync(path).isFile()) continue;
    if (readFileSync(path).includes(secretStart) || /\.integ-|undelivered\//.test(name))
      found.push(relative(folder, path));
  }
  return found;
}
