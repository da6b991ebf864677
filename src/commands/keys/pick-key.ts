// Asks for a key at a terminal. Offers the service's list, else the journal's keys.
import { readAccessKey } from "../../api/access-keys.ts";
import type { Rows } from "../../api/json/unknown-list.ts";
import type { Context } from "../../context.ts";
import { type Entry, kindOf, revokedBy } from "../../journal/entry.ts";
import type { Choice } from "../../output/asking/pick-list.ts";
import { relativeTime } from "../../output/relative-time.ts";
import { newestEntries } from "../options/known-names.ts";
import { listKeysOnce } from "./own-key.ts";

export async function pickKey(context: Context, question: string): Promise<string | undefined> {
  const profile = await context.profiles.active();
  const { baseUrl, keyId: own } = profile;
  const { rows, now } = await listKeysOnce(context, profile);
  const choices =
    rows === undefined
      ? keysIn(await newestEntries(await context.journal()), { baseUrl, own })
      : keysListed(rows, { own, now });
  if (choices.length === 0) return undefined;
  const other = { label: "another…", question: "Id of the key" };
  return context.output.pick(question, { choices, flag: "<id>", other });
}

/** The profile's own key comes last: revoking or rotating it can lock the profile out. */
export function keysListed(
  { rows }: Pick<Rows, "rows">,
  { own, now }: { readonly own: string | undefined; readonly now: number },
): Choice[] {
  const keys = rows.map(({ value }) => readAccessKey(value)).filter(({ id, status }) => id && status !== "revoked");
  const choices = keys.map((key) => {
    const { id = "", name, boundEmail, keyType, createdAt, expiresAt } = key;
    const status = key.status === "active" && Date.parse(expiresAt ?? "") <= now ? "expired" : key.status;
    const age = createdAt === undefined ? undefined : `created ${relativeTime(createdAt, now)}`;
    const owner = id === own ? "the key that this profile uses" : (boundEmail ?? keyType);
    return { value: id, hint: [name, owner, status, age].filter((part) => part !== undefined).join(", ") };
  });
  return [...choices.filter(({ value }) => value !== own), ...choices.filter(({ value }) => value === own)];
}

export function keysIn(
  entries: readonly Entry[],
  { baseUrl, own }: { readonly baseUrl: string; readonly own?: string },
): Choice[] {
  const atAddress = entries.filter((entry) => entry.base_url === baseUrl && kindOf(entry) === "access_key");
  const revoked = new Set(
    atAddress.map((entry) => (entry.state === "replaced" ? entry.resource_id : revokedBy(entry))),
  );
  const hints = new Map<string, string>();
  for (const entry of atAddress) {
    const { resource_id: id, operation, created_at } = entry;
    if (id === null || id === own || operation === "access_key.revoke" || revoked.has(id) || hints.has(id)) continue;
    hints.set(id, [nameOf(entry), created_at.slice(0, 10)].filter((part) => part !== undefined).join(", "));
  }
  const choices = [...hints].map(([value, hint]) => ({ value, hint }));
  return own === undefined ? choices : [...choices, { value: own, hint: "the key that this profile uses" }];
}

function nameOf({ request_text }: Entry): string | undefined {
  if (request_text === "") return undefined;
  const { name } = JSON.parse(request_text) as { name?: unknown };
  return typeof name === "string" ? name : undefined;
}
