// Which entries a list is to show, as a question to the server. Pure.
import { type EntryFilter, isOfUnsettled, itemName } from "../lookup.ts";
import { plain } from "./columns.ts";
import type { Tables } from "./schema.ts";

/** What the server cannot read of JSON, in any text of an entry, would fail the whole question: U+0000 and half a character. */
const readable = String.raw`regexp_replace('{' || content || '}', '\\u(0000|d[89a-f][0-9a-f]{2})', '\\ufffd', 'gi')`;

/** Only these requests are known to be JSON. */
const serviceAccountIn = `CASE WHEN operation IN ('oauth_client.create', 'oauth_client.adopt') THEN
  (${readable}::jsonb #>> '{intent,request_text}')::jsonb ->> 'service_account_id' END`;

/** @param page so many of them, those below an id: of a list that is read in parts */
export function selectionOf(
  filter: EntryFilter,
  { entries, records }: Pick<Tables, "entries" | "records">,
  page: { readonly below?: string | undefined; readonly limit?: number } = {},
): { readonly text: string; readonly values: readonly unknown[] } {
  const { states, operation, profile, account, actor, since, after, ids } = filter;
  const { parent, replaces, resource, item, serviceAccount } = filter;
  const limit = Math.min(filter.limit ?? Number.POSITIVE_INFINITY, page.limit ?? Number.POSITIVE_INFINITY);
  const conditions: string[] = [];
  const values: unknown[] = [];
  const add = (condition: (place: string) => string, value: unknown): void => {
    values.push(value);
    conditions.push(condition(`$${values.length}`));
  };
  if (isOfUnsettled(filter)) conditions.push("NOT is_settled");
  if (states !== undefined) add((place) => `state = ANY(${place})`, states);
  if (operation !== undefined) add((place) => `operation = ${place}`, operation);
  if (profile !== undefined) add((place) => `profile = ${place}`, plain(profile));
  // The rest of an account has no column: see `isOfAccount`.
  if (account !== undefined) add((place) => `base_url = ${place}`, account.base_url);
  if (since !== undefined) add((place) => `updated_at >= ${place}`, since);
  if (after !== undefined) add((place) => `id > ${place}`, after);
  if (ids !== undefined) add((place) => `id = ANY(${place})`, ids);
  if (parent !== undefined) add((place) => `parent = ${place}`, parent);
  if (replaces !== undefined) add((place) => `replaces = ${place}`, replaces);
  if (resource !== undefined) add((place) => `resources @> ARRAY[${place}]`, plain(resource));
  if (item !== undefined) add((place) => `resources @> ARRAY[${place}]`, itemName(item));
  if (serviceAccount !== undefined) add((place) => `${serviceAccountIn} = ${place}`, plain(serviceAccount));
  if (page.below !== undefined) add((place) => `id < ${place}`, page.below);
  const names = "actor_user, actor_host, actor_user || '@' || actor_host, actor_run";
  if (actor !== undefined)
    add((place) => `EXISTS (SELECT FROM ${records} WHERE entry = id AND ${place} IN (${names}))`, plain(actor));
  const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
  const most = limit === Number.POSITIVE_INFINITY ? "" : `LIMIT ${Math.max(0, Math.floor(limit))}`;
  return { text: `SELECT content FROM ${entries} ${where} ORDER BY id DESC ${most}`, values };
}
