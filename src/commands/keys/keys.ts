// What the commands of access keys share: how a key is shown, and picking one of those that this machine knows. The list of
// the legacy contract would need the network and a permission.
import type { Context } from "../../context.ts";
import { type Entry, revokedBy } from "../../journal/entry.ts";
import type { Choice } from "../../output/asking/pick-list.ts";
import type { Column, ResourceView } from "../../output/formats/format.ts";
import { newestEntries } from "../options/known-names.ts";

export const accessKeyColumns: readonly Column[] = [
  { path: "id", heading: "id" },
  { path: "name", heading: "name" },
  { path: "keyType", heading: "type" },
  { path: "boundEmail", heading: "bound to" },
  { path: "status", heading: "status", kind: "status" },
  { path: "lastUsedAt", heading: "last used", kind: "time" },
  { path: "expiresAt", heading: "expires", kind: "time" },
  { path: "createdAt", heading: "created", kind: "time" },
  { path: "createdByUserId", heading: "created by" },
  { path: "scopes", heading: "scopes", kind: "list" },
];

export const accessKeyView: ResourceView = {
  columns: [...accessKeyColumns, { path: "secret", heading: "secret" }],
  secretField: "secret",
};

/** The same for a secret that went elsewhere. */
export const deliveredKeyView: ResourceView = { ...accessKeyView, nulls: ["secret"] };

/** A key without a secret: after a revocation. */
export const revokedKeyView: ResourceView = { columns: accessKeyColumns };

export const findingColumns: readonly Column[] = [
  { path: "severity", heading: "severity", kind: "status" },
  { path: "rule", heading: "rule" },
  { path: "key_id", heading: "key" },
  { path: "key_name", heading: "name" },
  { path: "message", heading: "what was seen" },
  { path: "remedy", heading: "what to do", kind: "command" },
];

/**
 * Asks which key is meant, of those that this machine knows and that are not known to be revoked.
 * @returns nothing where none is known
 */
export function askKey(question: string): (context: Context) => Promise<string | undefined> {
  return async (context) => {
    const { baseUrl, keyId } = await context.profiles.active();
    const choices = keysIn(await newestEntries(await context.journal()), { baseUrl, own: keyId });
    if (choices.length === 0) return undefined;
    return context.output.pick(question, {
      choices,
      flag: "<id>",
      other: { label: "another…", question: "Id of the key" },
    });
  };
}

/**
 * The keys that entries at this address made or rotated, newest first.
 * @param own id of the profile's own key, where it is known: it comes last, whether an entry names it or not
 */
export function keysIn(
  entries: readonly Entry[],
  { baseUrl, own }: { readonly baseUrl: string; readonly own?: string },
): Choice[] {
  const here = entries.filter((entry) => entry.base_url === baseUrl && entry.operation.startsWith("access_key."));
  const gone = new Set(here.flatMap(goneBy));
  const known = new Map<string, string>();
  for (const entry of here) {
    const { resource_id: id, operation, created_at } = entry;
    if (id === null || id === own || operation === "access_key.revoke" || gone.has(id) || known.has(id)) continue;
    known.set(id, [nameOf(entry), created_at.slice(0, 10)].filter((part) => part !== undefined).join(", "));
  }
  const choices = [...known].map(([value, hint]) => ({ value, hint }));
  return own === undefined ? choices : [...choices, { value: own, hint: "the key that this profile uses" }];
}

/** Keys that are revoked, as an entry says. */
function goneBy(entry: Entry): unknown[] {
  return [entry.state === "replaced" ? entry.resource_id : revokedBy(entry)];
}

function nameOf({ request_text }: Entry): string | undefined {
  if (request_text === "") return undefined;
  const { name } = JSON.parse(request_text) as { name?: unknown };
  return typeof name === "string" ? name : undefined;
}
