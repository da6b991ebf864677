// Owns: what every request of the legacy contract carries (§4.4, §5.3), and finding the rows of answers whose shape the
// document does not show.
// Must not know: single resources, how the bearer token is come by.
import { Failure } from "../errors.ts";
import { type Authorization, type Caller, createCaller } from "./http/caller.ts";
import type { Transport } from "./http/exchange.ts";
import { BrokenBody, type JsonBody } from "./json/json-body.ts";
import { isObject, type JsonObject } from "./json/json-object.ts";
import { elementSpans, memberSpan } from "./json/json-spans.ts";

export interface LegacyOptions {
  readonly transport: Transport;
  readonly baseUrl: string;
  /** A uuid (§4.4); without one nothing of the legacy contract can be asked for. */
  readonly organizationId: string | undefined;
  /** A short-lived bearer token (§5.3). */
  readonly authorization: Authorization;
  readonly now: () => number;
}

/** The legacy contract: each call is one attempt. */
export type Legacy = Caller;

/** @assumed `x-organization-id` is shown for the creation of access keys alone (§4.4); it is sent with every request. */
export function createLegacy({ transport, baseUrl, organizationId, authorization, now }: LegacyOptions): Legacy {
  return createCaller({
    transport,
    baseUrl,
    authorization,
    now,
    commonHeaders: () => organizationHeader(organizationId),
  });
}

/** @throws Failure `usage` where there is no organization id, or it is no uuid */
export function organizationHeader(organizationId: string | undefined): Readonly<Record<string, string>> {
  if (organizationId === undefined || organizationId === "")
    throw new Failure("usage", "The legacy contract needs the organization's id, and the profile has none.", {
      hint: "integ profiles edit <name> --organization-id <uuid>, or set INTEG_ORGANIZATION_ID",
    });
  if (!/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(organizationId))
    throw new Failure("usage", `"${organizationId}" is no organization id.`, {
      hint: "It is a uuid, like 3f2b8c1e-9a4d-4e6f-8b7a-0c1d2e3f4a5b",
    });
  return { "x-organization-id": organizationId };
}

/** A row of a legacy list: the API's own text, and the same parsed. */
export interface Row {
  readonly text: string;
  readonly value: JsonObject;
}

export interface Rows {
  readonly rows: readonly Row[];
  /** Name of the member that wrapped the rows; nothing where the body was the array itself. */
  readonly wrappedIn: string | undefined;
  /** True where the answer says that there are more: none of the names is documented, so it is a hint and no promise. */
  readonly saysMore: boolean;
}

/** Names that lists are wrapped in, the likely ones first. */
const usualNames = ["data", "items", "results", "rows", "records"];

/**
 * The rows of a list whose shape is not shown: the body is an array, or an object that wraps one under any name.
 * @assumed §4.4 shows no list of the legacy contract.
 * @throws BrokenBody where no array of objects, or more than one that could be meant, is found
 */
export function readRows({ text, value }: JsonBody): Rows {
  const { array, name } = arrayIn(value);
  const body = Buffer.from(text, "utf8");
  const spans = elementSpans(body, name === undefined ? 0 : memberSpan(body, name).start);
  const rows = array.map((row, index) => {
    if (!isObject(row)) throw new BrokenBody("a row of the list is no object");
    const { start, end } = spans[index]!;
    return { text: body.toString("utf8", start, end), value: row };
  });
  return { rows, wrappedIn: name, saysMore: isObject(value) && mentionsMore(value) };
}

interface FoundArray {
  readonly array: readonly unknown[];
  /** Of the member that it is; nothing where it is the body itself. */
  readonly name: string | undefined;
}

function arrayIn(value: unknown): FoundArray {
  if (Array.isArray(value)) return { array: value, name: undefined };
  if (!isObject(value)) throw new BrokenBody("the answer is no list");
  const arrays = Object.entries(value).flatMap(([name, array]): FoundArray[] =>
    Array.isArray(array) ? [{ array, name }] : [],
  );
  const usual = usualNames.flatMap((name) => arrays.filter((found) => found.name === name));
  const ofObjects = arrays.filter(({ array }) => array.some(isObject));
  const candidates = [usual.slice(0, 1), ofObjects, arrays].find((found) => found.length > 0) ?? [];
  if (candidates.length !== 1) throw new BrokenBody("the answer wraps no list, or more than one");
  return candidates[0]!;
}

function mentionsMore(value: JsonObject): boolean {
  if (value.has_more === true || value.hasMore === true) return true;
  return ["next_page_token", "nextPageToken", "next_cursor", "nextCursor", "next"].some(
    (name) => typeof value[name] === "string" && value[name] !== "",
  );
}
