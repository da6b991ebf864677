// Finds the rows of undocumented lists (§4.4). Parses a row only on use, because a list may have 100,000.
import { BrokenBody, type JsonObject, JsonText, type Parts } from "./json-text.ts";

export interface Row {
  readonly text: string;
  readonly value: JsonObject;
}

export interface Rows {
  readonly rows: readonly Row[];
  /** True if undocumented fields of the response hint at more rows. */
  readonly saysMore: boolean;
}

/** Usual names of the member that contains the rows, the likeliest first. */
const usualNames = ["data", "items", "results", "rows", "records"];

/**
 * @assumed §4.4 shows no list of the legacy contract: the body is an array, or an object that wraps one under any name.
 * @param body kept in memory by the rows
 * @throws BrokenBody if the body has no list, several possible lists, or a row that is not an object
 */
export function readRows(body: Buffer): Rows {
  const whole = JsonText.of(body);
  if (!whole.isArray && !whole.isObject) throw new BrokenBody("the response is not a list");
  const members = whole.parts();
  const rows = whole.isArray ? whole.items() : onlyListIn(members);
  if (!rows.every((row): row is JsonText & Row => row.isObject))
    throw new BrokenBody("a row of the list is not an object");
  return { rows, saysMore: mentionsMore(members) };
}

function onlyListIn(members: Parts): readonly JsonText[] {
  const usual = usualNames.find((name) => members.get(name)?.isArray);
  if (usual !== undefined) return members.get(usual)!.items();
  const arrays = members.names.flatMap((name) => {
    const value = name === "__proto__" ? undefined : members.get(name);
    return value?.isArray ? [value.items()] : [];
  });
  const ofObjects = arrays.filter((rows) => rows.some((row) => row.isObject));
  const candidates = ofObjects.length > 0 ? ofObjects : arrays;
  if (candidates.length !== 1) throw new BrokenBody("the response contains no list, or more than one");
  return candidates[0]!;
}

function mentionsMore(members: Parts): boolean {
  const isTrue = (name: string): boolean => members.get(name)?.text === "true";
  const isText = (name: string): boolean => members.get(name)?.isString === true && members.get(name)?.string !== "";
  return (
    ["has_more", "hasMore"].some(isTrue) ||
    ["next_page_token", "nextPageToken", "next_cursor", "nextCursor", "next"].some(isText)
  );
}
