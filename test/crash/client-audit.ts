// Compares the program's reports on an OAuth client with the service, after a fault and again after recovery.
import { existsSync, lstatSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { type Account, type ListedClient, foreignKeyPrefix } from "../support/account.ts";
import { journalOf as entriesOf, type ReadEntry, unsettledIn } from "../support/journal-file.ts";
import type { Ended, Home } from "../support/program.ts";
import { wasKilled } from "../support/strace.ts";
import { type Findings, undisturbed } from "./harness.ts";
import type { Place } from "./secret-places.ts";

/** Omits the entries of another service, which only fill a long journal. */
function journalOf(at: Home): ReadEntry[] {
  return entriesOf(at).filter(({ base_url }) => base_url.startsWith("http://"));
}

const secretStart = "sbx_us_cs_";

export interface Watched {
  readonly at: Home;
  readonly account: Account;
  readonly findings: Findings;
  readonly where: string;
  readonly place: Place;
  printed: string;
  readonly old?: { readonly id: string };
  /** True if the client existed, or may have existed, before the command. */
  readonly isMade?: boolean | undefined;
}

/** @returns the delivered secret, if any */
export async function auditAtOnce({
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
      !idempotency_key?.startsWith(foreignKeyPrefix) &&
      !entries.some((entry) => entry.idempotency_key === idempotency_key && entry.request_text === body)
    )
      findings.lostKeys.push(`${where}: the service met the key ${idempotency_key}, which is not in the journal`);
  const claimable = entries.find(({ state }) => state === "undelivered");
  if (claimable && filesIn(at.path("state", "undelivered")).length === 0)
    findings.unfinished.push(`${where}: ${claimable.operation} waits for a claim, and nothing is kept`);
  const secret = place.delivered(at, printed);
  const live = await account.live();
  if (secret !== undefined && !(await clientOpenedBy(account, live, secret)))
    findings.tornSecrets.push(`${where}: what stands in its place opens no client: ${secret.length} characters`);
  if (old && !live.some(({ id }) => id === old.id) && secret === undefined)
    findings.withoutWorkingClient.push(`${where}: the old client is no longer live and no new one was delivered`);
  return secret;
}

const codesOf = {
  /** Exit codes that report that no client was created. */
  nothing: new Set([1, 2, 3, 6, 11]),
  /** Exit codes that report that a client exists or may exist; `journal recover` or `journal claim` finishes the change. */
  unfinished: new Set([7, 8, 9, 12]),
};

export async function auditExit(
  { at, account, findings, where, old, isMade }: Watched,
  { ended, secret, isUnshown }: { ended: Ended; secret: string | undefined; isUnshown: boolean },
): Promise<void> {
  const { code, stderr } = ended;
  if (/a bug in integ/.test(stderr)) findings.bugs.push(`${where}: ${stderr}`);
  if (code === null || wasKilled(ended)) return;
  const made = (await account.live()).filter(({ id }) => id !== old?.id);
  const isWhole = made.length === 1 && secret !== undefined && secret !== "";
  if (code === 0 && !isWhole)
    findings.falseSuccesses.push(`${where}: ${made.length} clients, secret ${secret ? "there" : "missing"}`);
  if (codesOf.nothing.has(code) && made.length > 0 && !isWhole && !isMade)
    findings.falseSuccesses.push(
      `${where}: nothing was done, it says, and ${made.length} clients are there: ${stderr}`,
    );
  const done = journalOf(at).some(({ state, operation }) => state === "done" && operation !== "oauth_client.revoke");
  if (code !== 0 && isWhole && done && !old && !isUnshown)
    findings.falseFailures.push(`${where}: all is done: ${stderr}`);
  if (code !== 0 && !codesOf.nothing.has(code) && !codesOf.unfinished.has(code))
    findings.falseFailures.push(`${where}: an unexpected exit code: ${stderr}`);
}

/**
 * Recovers as a user does: claims kept secrets, and replaces a lost secret after exit 9.
 * @param recoveries how many recoveries may be needed
 * @returns the commands' standard output, and the exit codes of the recoveries
 */
export async function recoverAll(
  { at, findings, where, place }: Watched,
  recoveries: number,
): Promise<{ printed: string; codes: number[] }> {
  const codes: number[] = [];
  let printed = "";
  const lost = (): string[] => (codes.includes(9) ? ["--replace-lost-secret"] : []);
  while (journalOf(at).length > 0) {
    const { code, stdout, stderr } = await undisturbed(at, [
      "journal",
      "recover",
      "--json",
      ...(place.again ?? []),
      ...lost(),
    ]);
    codes.push(code ?? -1);
    printed += stdout;
    if (code === 0) break;
    if (codes.length >= recoveries || (code !== 9 && code !== 12)) {
      findings.unfinished.push(`${where}: recovery ended with ${codes.join(", then ")}: ${stderr}`);
      break;
    }
    const kept = journalOf(at).filter(
      ({ state, operation }) => state === "undelivered" && operation === "oauth_client.create",
    );
    for (const { id } of kept) {
      const claimed = await undisturbed(at, ["journal", "claim", id, ...place.words]);
      if (claimed.code !== 0) findings.unfinished.push(`${where}: claim ended with ${claimed.code}: ${claimed.stderr}`);
      printed += claimed.stdout;
    }
  }
  return { printed, codes };
}

async function clientOpenedBy(
  account: Account,
  live: readonly ListedClient[],
  secret: string,
): Promise<ListedClient | undefined> {
  for (const client of live)
    if (client.client_id !== null && (await account.opens(client.client_id, secret.trimEnd()))) return client;
  return undefined;
}

/**
 * Every entry must be finished. A change that has started must leave one live client, with its secret delivered.
 * @param before the secret that was delivered when the run ended
 */
export async function auditRecovered(watched: Watched, before: string | undefined): Promise<void> {
  const { at, account, findings, where, old, place, printed } = watched;
  const entries = journalOf(at);
  for (const { id, state } of unsettledIn(entries)) findings.unfinished.push(`${where}: entry ${id} is still ${state}`);
  const live = await account.live();
  const isRefused = entries.every(({ state }) => state === "refused");
  const hasStarted = entries.length > 0 && !isRefused;
  const ours = hasStarted ? live : live.filter(({ id }) => id !== old?.id);
  if (ours.length > 1)
    findings.duplicates.push(`${where}: ${ours.length} live clients: ${ours.map(({ id }) => id).join(", ")}`);
  const secret = place.delivered(at, printed);
  const opened = secret === undefined ? undefined : await clientOpenedBy(account, live, secret);
  for (const { id, idempotency_key } of ours)
    if (opened?.id !== id || !isOwned(entries, id))
      findings.withoutOwner.push(`${where}: ${id} is live under ${idempotency_key}, its secret is not in its place`);
  if (hasStarted && ours.length === 0) findings.unfinished.push(`${where}: started, and no client after recovery`);
  if (place.keepsTrace && before !== undefined && (secret !== before || opened === undefined))
    findings.revokedAfterDelivery.push(`${where}: the delivered secret ${opened ? "was replaced" : "no longer opens"}`);
  for (const text of place.wrong?.() ?? []) findings.duplicates.push(`${where}: ${text}`);
  const tokens = place.tokens?.() ?? [];
  for (const file of filesWithSecrets(at.folder, tokens))
    if (!place.holds(at, file)) findings.strayedSecrets.push(`${where}: a secret stands in ${file}`);
  if (tokens.some((token) => printed.includes(token))) findings.strayedSecrets.push(`${where}: a token was printed`);
}

function isOwned(entries: readonly ReadEntry[], id: string): boolean {
  return entries.some(
    ({ operation, state, resource_id }) =>
      operation === "oauth_client.create" && state === "done" && resource_id === id,
  );
}

function filesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder).filter((name) => !name.endsWith(".key")) : [];
}

/** Files below a folder that contain a client secret or one of `tokens`, or that were reserved for a secret and not removed. */
export function filesWithSecrets(folder: string, tokens: readonly string[] = []): string[] {
  const found: string[] = [];
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const path = join(folder, name);
    if (!lstatSync(path).isFile()) continue;
    const text = readFileSync(path);
    if ([secretStart, ...tokens].some((secret) => text.includes(secret)) || /\.integ-|undelivered\//.test(name))
      found.push(relative(folder, path));
  }
  return found;
}
