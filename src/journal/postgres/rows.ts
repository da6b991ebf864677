// Builds the row of an entry with its search columns, and the queries that use these columns.
import { hash } from "node:crypto";
import { namesOf } from "../actor.ts";
import { type Entry, isSettled, keyName, requestKey } from "../entry.ts";
import { wordsOfEntry, type EntryFilter, excludesFinished, wordsOfFilter } from "../lookup.ts";
import { entryIn, stepIn } from "../record.ts";
import type { NewRecord } from "../store.ts";
import type { Tables } from "./schema.ts";
import type { Row } from "./session.ts";

/** Replaces U+0000 and unpaired surrogates, which a column cannot hold. A name from the service may contain them. */
function plain(text: string): string {
  return text.replaceAll(/\0|\p{Cs}/gu, "\u{fffd}");
}

/** The search word of a request, the same for every profile, client and organization. */
export function requestWord(request: Parameters<typeof requestKey>[0]): string {
  return `request ${hash("sha256", requestKey(request), "hex")}`;
}

function columnsOf(entry: Entry, contents: readonly string[]) {
  const actors = contents.flatMap((content) => stepIn(content).actor ?? []).flatMap(namesOf);
  const about = [...wordsOfEntry(entry), `state ${entry.state}`, `account ${entry.base_url}`, requestWord(entry)];
  return {
    about: [...new Set(about.map(plain))].sort(),
    actors: [...new Set(actors.map(plain))].sort(),
    is_settled: isSettled(entry.state),
    key: keyName(entry),
    updated_at: entry.updated_at,
    n: entry.sequence,
  };
}

export function rowOf({ entry, content }: NewRecord, added: readonly NewRecord[]): Row {
  const contents = added.map((record) => record.content);
  return { id: entry.id, ...columnsOf(entry, contents), content };
}

/** Assignments of an UPDATE: `excluded` is the new row, `integ_entries` the existing one. */
const columns = `about = excluded.about, is_settled = excluded.is_settled, updated_at = excluded.updated_at,
  content = excluded.content, n = excluded.n`;

/** Assignments for a row that was built from all records: they also restore columns that a person edited. */
export const allColumns = `${columns}, key = excluded.key, actors = excluded.actors`;

export const rowChanges = `${columns},
  actors = ARRAY(SELECT DISTINCT unnest(integ_entries.actors || excluded.actors) ORDER BY 1)`;

export function entriesIn(rows: readonly Row[]): Entry[] {
  return rows.flatMap(({ content }) => entryIn(String(content)) ?? []);
}

export const editedWords = "it differs from its newest record: it was edited";

/** Searches may miss a row that contradicts its records. @returns the contradiction; undefined if there is none */
export function rowMismatch(
  row: Row | undefined,
  numbers: readonly number[],
  contents: readonly string[],
): string | undefined {
  if (row === undefined) return "its row was removed, and its records are still there";
  if (row.content !== contents.at(-1)) return editedWords;
  const entries = contents.map((content) => entryIn(content));
  const newest = entries.at(-1);
  if (newest === undefined) return undefined;
  const moved = entries.findIndex((entry, at) => entry !== undefined && entry.sequence !== numbers[at]);
  if (moved >= 0) return `its record ${moved + 1} was moved`;
  const shown = (value: unknown): string =>
    JSON.stringify(Array.isArray(value) ? value.map(String).toSorted((a, b) => (a < b ? -1 : 1)) : value);
  const wanted = Object.entries(columnsOf(newest, contents));
  const names = wanted.filter(([name, value]) => shown(row[name]) !== shown(value));
  return names.length === 0
    ? undefined
    : `its records differ from its columns (${names.map(([name]) => name).join(", ")}): it was edited`;
}

export function selectionOf(
  filter: EntryFilter,
  { entries }: Pick<Tables, "entries">,
  page: { readonly below?: string | undefined; readonly limit: number },
): { readonly text: string; readonly values: readonly unknown[] } {
  const { states, account, actor, since, after, start, ids } = filter;
  const conditions: string[] = excludesFinished(filter) ? ["NOT is_settled"] : [];
  const values: unknown[] = [];
  const add = (condition: (place: string) => string, value: unknown): void => {
    if (value === undefined) return;
    values.push(value);
    conditions.push(condition(`$${values.length}`));
  };
  // Only an account's base URL is indexed; `isOfAccount` compares the rest.
  const words = [...wordsOfFilter(filter), ...(account === undefined ? [] : [`account ${account.base_url}`])];
  add((place) => `about @> ${place}`, words.length === 0 ? undefined : words.map(plain));
  add(
    (place) => `about && ${place}`,
    states?.map((state) => `state ${state}`),
  );
  add((place) => `actors @> ${place}`, actor === undefined ? undefined : [plain(actor)]);
  add((place) => `updated_at >= ${place}`, since);
  add((place) => `id > ${place}`, after);
  add((place) => `id = ANY(${place})`, ids);
  // Ids consist of digits and letters, which sort before a brace.
  add((place) => `id >= ${place} AND id < ${place} || '{'`, start);
  add((place) => `id < ${place}`, page.below);
  const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
  return { text: `SELECT content FROM ${entries} ${where} ORDER BY id DESC LIMIT ${page.limit}`, values };
}
