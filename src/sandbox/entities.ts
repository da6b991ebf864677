import { type Answer, type Call, type V1Caller, invalidRequest, notFound, timestamp } from "./call.ts";
import { requirePermission, seal, unseal } from "./credentials.ts";
import { type Population, countOf, entityText, nthOf } from "./population.ts";
import { organizationOf, type Region } from "./state.ts";

const membersCap = 50;

/** The number of members by the last word of the cohort's id; `sizeOfCohort` gives at most the number of people. */
const cohortSizes = new Map(Object.entries({ large: 137, fifty: 50, pair: 2, empty: 0, huge: 1_203 }));

export function cohortIds(region: Region): string[] {
  return [...cohortSizes.keys()].map((name) => `cohort_${region}_${name}`);
}

export function populationOf(call: Pick<Call, "region" | "settings">, caller?: V1Caller): Population {
  const { entities, seed } = call.settings;
  if (caller?.account.organizationId === undefined) return { region: call.region, size: entities, seed };
  return { region: call.region, size: Math.ceil(entities / 10), seed: seed + 500 };
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

export function listEntities(call: Call, caller: V1Caller): Answer {
  requirePermission(caller, "entity:read");
  const type = call.query.get("type");
  if (type === "") throw invalidRequest("type must name a type of entity, such as person.", "type");
  const population = populationOf(call, caller);
  const rows = {
    filters: JSON.stringify(["entities", type]),
    total: countOf(population, type),
    slice: rowsOf(population, type),
  };
  return pageAnswer(call, { caller, rows });
}

/** @assumed the list needs `entity:read`, and a member's row is the entity itself (§4.3 rule 6, §2.5 "not shown") */
export function listMembers(call: Call, caller: V1Caller): Answer {
  requirePermission(caller, "entity:read");
  const id = call.parts.id!;
  const population = populationOf(call);
  const total = caller.account.organizationId === undefined ? sizeOfCohort(population, id) : undefined;
  if (total === undefined) throw notFound("No cohort of this organization has this id.");
  const rows = {
    filters: JSON.stringify(["members", id]),
    total,
    slice: rowsOf(population, "person"),
    cap: membersCap,
  };
  return pageAnswer(call, { caller, rows });
}

const defaultLimit = 25;
const greatestLimit = 500;

interface Rows {
  /** The list and its filters, to which page tokens are bound. */
  readonly filters: string;
  readonly total: number;
  readonly slice: (start: number, end: number) => string[];
  /** Maximum rows whatever the `limit`: 50 for cohort members (§8). */
  readonly cap?: number;
}

function limitOf(call: Call): number {
  const text = call.query.get("limit");
  if (text === null) return defaultLimit;
  const limit = /^[0-9]{1,6}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > greatestLimit)
    throw invalidRequest(`limit must be a whole number from 1 to ${greatestLimit}.`, "limit");
  return limit;
}

function bindingOf(call: Call, given: { caller: V1Caller; rows: Rows }): string {
  const { caller, rows } = given;
  return JSON.stringify([
    "page",
    organizationOf(call.here, caller.account),
    caller.account.id,
    caller.version,
    rows.filters,
  ]);
}

function startOf(call: Call, binding: string): number {
  const token = call.query.get("page_token");
  if (token === null) return 0;
  const text = unseal(call.here.signingKey, { token, binding });
  if (text === undefined)
    throw invalidRequest(
      "page_token does not belong to this organization, credential, contract version and filters.",
      "page_token",
    );
  return Number(text);
}

function updated(row: string, now: number): string {
  const entity = JSON.parse(row) as { status: string };
  const status = entity.status === "active" ? "inactive" : "active";
  return JSON.stringify({ ...entity, status, updated_at: timestamp(now) });
}

function pageAnswer(call: Call, given: { caller: V1Caller; rows: Rows }): Answer {
  const { rows } = given;
  const limit = Math.min(limitOf(call), rows.cap ?? greatestLimit);
  const binding = bindingOf(call, given);
  const requested = Math.min(startOf(call, binding), rows.total);
  const isLater = requested > 0;
  // Repeats the previous page's last row, as if a row had been created between the requests (§4.3 rule 4).
  const start = isLater && call.effects.rows === "repeated" ? requested - 1 : requested;
  const end = Math.min(start + limit, rows.total);
  const hasMore = end < rows.total;
  const token = hasMore ? JSON.stringify(seal(call.here.signingKey, { text: String(end), binding })) : "null";
  const changed = (row: string): string => (isLater && call.effects.rows === "changed" ? updated(row, call.now) : row);
  const data = rows.slice(start, end).map(changed).join(",");
  return {
    status: 200,
    headers: { "Content-Type": "application/json" },
    body: `{"object":"list","data":[${data}],"next_page_token":${token},"has_more":${hasMore}}`,
  };
}
