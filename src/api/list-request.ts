// Owns: what every list request of /v1 has in common (§4.3, §8): limit, page token, the query, the page that comes back.
// Must not know: which list it is, walking.
import { Failure } from "../errors.ts";
import type { Attempt } from "./http/attempt.ts";
import type { BodyRoom } from "./http/body-room.ts";
import type { CallRequest } from "./http/caller.ts";
import { BrokenBody, saysJson } from "./json/json-body.ts";
import { type Pair, query } from "./http/path.ts";
import type { V1 } from "./v1.ts";

export interface ListRequest {
  /** 1 to 500; the service's default is 25. */
  readonly limit?: number;
  /** As the service gave it; omitted for the first page. */
  readonly pageToken?: string;
  /** Further parameters, as the person names them. @assumed §4.3 rule 6 shows none: an unsupported one is refused by the service. */
  readonly filters?: readonly Pair[];
  readonly signal?: AbortSignal;
  /** Where the page is received. It is whole until the room is handed in again; without one it stays. */
  readonly room?: BodyRoom;
}

/** A page as it came, unchecked: see pages.ts. */
export interface RawPage {
  readonly body: Buffer;
  readonly requestId: string | undefined;
}

/** §8 */
export const maxLimit = 500;

/** @throws Failure `usage` outside 1 to 500 */
export function checkLimit(limit: number): void {
  if (!Number.isInteger(limit) || limit < 1 || limit > maxLimit)
    throw new Failure("usage", `A limit of ${limit} is not possible: a page has 1 to ${maxLimit} rows (§8).`, {
      hint: `--limit 1 to --limit ${maxLimit}`,
    });
}

/** @throws Failure `usage` for what the service would refuse anyway */
export function checkListRequest({ limit, pageToken, filters = [] }: ListRequest): void {
  if (limit !== undefined) checkLimit(limit);
  if (pageToken === "")
    throw new Failure("usage", "The page token is empty.", { hint: "Leave --page-token out for the first page." });
  for (const [name] of filters) {
    if (name === "") throw new Failure("usage", "A filter has no name.", { hint: "--filter name=value" });
    const option = { limit: "--limit", page_token: "--page-token" }[name];
    if (option) throw new Failure("usage", `"${name}" is no filter.`, { hint: `Use ${option}.` });
  }
}

/** One attempt to get one page; the body is not looked into. */
export async function requestPage(v1: V1, path: string, request: ListRequest): Promise<Attempt<RawPage>> {
  checkListRequest(request);
  const { limit, pageToken, filters = [], signal, room } = request;
  const pairs: Pair[] = [];
  if (limit !== undefined) pairs.push(["limit", String(limit)]);
  if (pageToken !== undefined) pairs.push(["page_token", pageToken]);
  const call: CallRequest = {
    method: "GET",
    path: path + query([...pairs, ...filters]),
    success: [200],
    page: true,
    signal,
    room,
  };
  return v1.raw(call, ({ headers, body, requestId }) => {
    if (!saysJson(headers["content-type"])) throw new BrokenBody("the answer is not JSON");
    return { body, requestId };
  });
}
