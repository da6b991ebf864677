// Owns: the two lists of `/v1` (§4.3): entities, and members of a cohort.
// Must not know: how a page is cut and signed.
import type { Call, V1Caller } from "./call.ts";
import { requirePermission } from "./credentials.ts";
import { pageAnswer } from "./page.ts";
import { countOf, entityText, nthOf, type Population } from "./population.ts";
import { type Answer, invalidRequest, notFound } from "./problem.ts";
import type { Region } from "./state.ts";

/** At most so many rows a page, even if a larger `limit` is requested (§8). */
const membersCap = 50;

/** Cohorts by the end of their id, and how many members each has, as far as there are people. */
const cohortSizes = new Map(Object.entries({ large: 137, fifty: 50, pair: 2, empty: 0, huge: 1_203 }));

export function cohortIds(region: Region): string[] {
  return [...cohortSizes.keys()].map((name) => `cohort_${region}_${name}`);
}

export function populationOf(call: Pick<Call, "region" | "settings">): Population {
  return { region: call.region, size: call.settings.entities, seed: call.settings.seed };
}

export function sizeOfCohort(population: Population, id: string): number | undefined {
  const name = id.startsWith(`cohort_${population.region}_`) ? id.slice(`cohort_${population.region}_`.length) : "";
  const size = cohortSizes.get(name);
  return size === undefined ? undefined : Math.min(size, countOf(population, "person"));
}

function rowsOf(population: Population, type: string | null): (start: number, end: number) => string[] {
  return (start, end) => {
    const rows: string[] = [];
    for (let nth = start; nth < end; nth++) rows.push(entityText(population, nthOf(type, nth)));
    return rows;
  };
}

/** GET /v1/entities */
export function listEntities(call: Call, caller: V1Caller): Answer {
  requirePermission(caller, "entity:read");
  const type = call.query.get("type");
  if (type === "") throw invalidRequest("type must name a type of entity, such as person.", "type");
  const population = populationOf(call);
  const rows = {
    filters: JSON.stringify(["entities", type]),
    total: countOf(population, type),
    slice: rowsOf(population, type),
  };
  return pageAnswer(call, { caller, rows });
}

/**
 * GET /v1/cohorts/{id}/members
 * @assumed it needs `entity:read`, and a member's row is the entity itself (§4.3 rule 6, §2.5 «not shown»)
 */
export function listMembers(call: Call, caller: V1Caller): Answer {
  requirePermission(caller, "entity:read");
  const id = call.parts.id!;
  const population = populationOf(call);
  const total = sizeOfCohort(population, id);
  if (total === undefined) throw notFound("No cohort of this organization has this id.");
  const rows = {
    filters: JSON.stringify(["members", id]),
    total,
    slice: rowsOf(population, "person"),
    cap: membersCap,
  };
  return pageAnswer(call, { caller, rows });
}
