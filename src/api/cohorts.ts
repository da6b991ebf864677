// Owns: the list of a cohort's members (§4.3): its one-attempt request.
// Must not know: walking (pages.ts), what a member is.
// @assumed §4.3 rule 6 and §2.5 do not show a member: rows are handed on as they came
import type { Attempt } from "./http/attempt.ts";
import { type ListRequest, type RawPage, requestPage } from "./list-request.ts";
import { segment } from "./http/path.ts";
import type { V1 } from "./v1.ts";

/** §8: a page has at most so many rows, whatever limit is asked for; it is still not the last for that. */
export const maxMembersPerPage = 50;

export interface Cohorts {
  /**
   * One page of members, one attempt.
   * @throws Failure `usage` for an id that is none, a limit outside 1 to 500, or an empty page token
   */
  membersPage(cohortId: string, request: ListRequest): Promise<Attempt<RawPage>>;
}

export function createCohorts(v1: V1): Cohorts {
  return {
    membersPage: async (cohortId, request) =>
      requestPage(v1, `/v1/cohorts/${segment(cohortId, "cohort id")}/members`, request),
  };
}
