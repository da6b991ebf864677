// The row of an entry: what its columns repeat from its records, so that the server can look for it, and how it is asked. Pure.
import { hash } from "node:crypto";
import { namesOf } from "../actor.ts";
import { type Entry, isSettled, keyName, requestKey } from "../entry.ts";
import { aboutOf, type EntryFilter, isOfUnsettled, wordsOf } from "../lookup.ts";
import { entryIn, stepIn } from "../record.ts";
import type { NewRecord } from "../store.ts";
import type { Tables } from "./schema.ts";
import type { Row } from "./session.ts";

/** Text as a column can hold it: a name that came from the service may have what none can, U+0000 or half a character. */
function plain(text: string): string {
  return text.replaceAll(/\0|\p{Cs}/gu, "\u{fffd}");
}

/** The same for the same request, whatever account and organization it is for. */
export function requestWord(request: Parameters<typeof requestKey>[0]): string {
  return `request ${hash("sha256", requestKey(request), "hex")}`;
}

/** @param contents of its records, or of those that are added */
function columnsOf(entry: Entry, contents: readonly string[]) {
  const actors = contents.flatMap((content) => stepIn(content).actor ?? []).flatMap(namesOf);
  const about = [...aboutOf(entry), `state ${entry.state}`, `account ${entry.base_url}`, requestWord(entry)];
  return {
    about: [...new Set(about.map(plain))].sort(),
    actors: [...new Set(actors.map(plain))].sort(),
    is_settled: isSettled(entry.state),
    key: keyName(entry),
    updated_at: entry.updated_at,
    n: entry.sequence,
  };
}

/** The row of an entry as JSON, but for its lease. @param coming the records that are added with it */
export function rowOf({ entry, content }: NewRecord, coming: readonly NewRecord[]): Row {
  const contents = coming.map((record) => record.content);
  return { id: entry.id, ...columnsOf(entry, contents), content };
}

/** What a step changes in a row, where the row that comes is called `excluded`, and the one that is there `integ_entries`. */
export const changed = `about = excluded.about, is_settled = excluded.is_settled, updated_at = excluded.updated_at,
  content = excluded.content, n = excluded.n,
  actors = ARRAY(SELECT DISTINCT unnest(integ_entries.actors || excluded.actors) ORDER BY 1)`;

export function entriesIn(rows: readonly Row[]): Entry[] {
  return rows.flatMap(({ content }) => entryIn(String(content)) ?? []);
}

/** @returns in words how a row differs from what its records say: an entry that is looked for by it would be hidden */
export function astrayIn(
  row: Row | undefined,
  numbers: readonly number[],
  contents: readonly string[],
): string | undefined {
  if (row === undefined) return "it has records, and was removed itself";
  if (row.content !== contents.at(-1)) return "it does not stand as its newest record says: it was edited";
  const entries = contents.map((content) => entryIn(content));
  const newest = entries.at(-1);
  if (newest === undefined) return undefined;
  const moved = entries.findIndex((entry, at) => entry !== undefined && entry.sequence !== numbers[at]);
  if (moved >= 0) return `its record ${moved + 1} was put elsewhere since it was written`;
  const shown = (value: unknown): string =>
    JSON.stringify(Array.isArray(value) ? value.map(String).toSorted((a, b) => (a < b ? -1 : 1)) : value);
  const wanted = Object.entries(columnsOf(newest, contents));
  const names = wanted.filter(([name, value]) => shown(row[name]) !== shown(value));
  return names.length === 0
    ? undefined
    : `its records say something else than its columns (${names.map(([name]) => name).join(", ")}): it was edited`;
}

/** @param page so many of them, those below an id: of a list that is read in parts */
export function selectionOf(
  filter: EntryFilter,
  { entries }: Pick<Tables, "entries">,
  page: { readonly below?: string | undefined; readonly limit: number },
): { readonly text: string; readonly values: readonly unknown[] } {
  const { states, account, actor, since, after, start, ids } = filter;
  const conditions: string[] = isOfUnsettled(filter) ? ["NOT is_settled"] : [];
  const values: unknown[] = [];
  const add = (condition: (place: string) => string, value: unknown): void => {
    if (value === undefined) return;
    values.push(value);
    conditions.push(condition(`$${values.length}`));
  };
  // The rest of an account is not a word: see `isOfAccount`.
  const words = [...wordsOf(filter), ...(account === undefined ? [] : [`account ${account.base_url}`])];
  add((place) => `about @> ${place}`, words.length === 0 ? undefined : words.map(plain));
  add(
    (place) => `about && ${place}`,
    states?.map((state) => `state ${state}`),
  );
  add((place) => `actors @> ${place}`, actor === undefined ? undefined : [plain(actor)]);
  add((place) => `updated_at >= ${place}`, since);
  add((place) => `id > ${place}`, after);
  add((place) => `id = ANY(${place})`, ids);
  // Ids are digits and letters: nothing that begins so comes after a brace.
  add((place) => `id >= ${place} AND id < ${place} || '{'`, start);
  add((place) => `id < ${place}`, page.below);
  const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
  return { text: `SELECT content FROM ${entries} ${where} ORDER BY id DESC LIMIT ${page.limit}`, values };
}
