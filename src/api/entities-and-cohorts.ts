// Requests pages of the lists of /v1 (§2.2, §4.3): entities and a cohort's members.
// @assumed no field is required and unknown fields are allowed (§2.2 shows fields, but not which are required)
// @assumed a member may have any fields (§4.3 rule 6 and §2.5 show none)
import { flags } from "../next-step.ts";
import { Failure, invalidValue } from "../errors.ts";
import type { Attempt } from "./call/attempt.ts";
import type { Caller } from "./call/caller.ts";
import { type Pair, query, segment } from "./call/request.ts";
import { BrokenBody, saysJson } from "./json/json-text.ts";

export interface ListRequest {
  /** 1 to 500; the service's default is 25. */
  readonly limit?: number;
  readonly pageToken?: string;
  /** Further query parameters. @assumed §4.3 rule 6 shows none: the service refuses unsupported parameters. */
  readonly filters?: readonly Pair[];
  readonly signal?: AbortSignal;
}

/** `checkPage` in pages.ts checks the body. */
export interface RawPage {
  readonly body: Buffer;
  readonly requestId: string | undefined;
}

const maxLimit = 500;

function checkLimit(limit: number): void {
  if (!Number.isInteger(limit) || limit < 1 || limit > maxLimit)
    throw invalidValue("limit", String(limit), {
      why: `a page has 1 to ${maxLimit} rows`,
      hint: `Use ${flags.limit} 1 to ${flags.limit} ${maxLimit}.`,
    });
}

function checkListRequest({ limit, pageToken, filters = [] }: ListRequest): void {
  if (limit !== undefined) checkLimit(limit);
  if (pageToken === "")
    throw new Failure("usage", "The page token is empty.", {
      hint: `Leave ${flags.pageToken} out for the first page.`,
    });
  for (const [name] of filters) {
    if (name === "") throw new Failure("usage", "A filter has no name.", { hint: `Write ${flags.filter} name=value.` });
    const option = { limit: flags.limit, page_token: flags.pageToken }[name];
    if (option) throw new Failure("usage", `"${name}" is an option, not a filter.`, { hint: `Use ${option}.` });
  }
}

function requestPage(v1: Caller, path: string, request: ListRequest): Promise<Attempt<RawPage>> {
  checkListRequest(request);
  const { limit, pageToken, filters = [], signal } = request;
  const pairs: Pair[] = [...filters];
  if (pageToken !== undefined) pairs.unshift(["page_token", pageToken]);
  if (limit !== undefined) pairs.unshift(["limit", String(limit)]);
  const call = { method: "GET", path: path + query(pairs), success: [200], page: true, signal } as const;
  return v1.send(call, ({ headers, body, requestId }) => {
    if (!saysJson(headers["content-type"])) throw new BrokenBody("the response is not JSON");
    return { body, requestId };
  });
}

interface EntityListRequest extends ListRequest {
  readonly type?: string;
}

export interface Entities {
  page(request: EntityListRequest): Promise<Attempt<RawPage>>;
}

export function createEntities(v1: Caller): Entities {
  return {
    async page(request) {
      const { type } = request;
      if (type === undefined) return requestPage(v1, "/v1/entities", request);
      const filters = request.filters ?? [];
      if (type === "")
        throw new Failure("usage", "The type is empty.", {
          hint: `Use ${flags.type} person, or leave the option out.`,
        });
      if (filters.some(([name]) => name === "type"))
        throw new Failure("usage", "The type is given twice.", { hint: `Use ${flags.type} alone.` });
      return requestPage(v1, "/v1/entities", { ...request, filters: [["type", type], ...filters] });
    },
  };
}

export interface Cohorts {
  /**
   * A page has at most 50 rows (§8), so a page shorter than the limit may not be the last.
   * @throws Failure `usage` for an invalid id, limit or filter, or an empty page token
   */
  membersPage(cohortId: string, request: ListRequest): Promise<Attempt<RawPage>>;
}

export function createCohorts(v1: Caller): Cohorts {
  return {
    membersPage: async (cohortId, request) =>
      requestPage(v1, `/v1/cohorts/${segment(cohortId, "cohort id")}/members`, request),
  };
}
