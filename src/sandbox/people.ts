import { requireAccess } from "./access-keys.ts";
import { type Answer, type Call, type LegacyCaller, invalidRequest, jsonAnswer, notFound, timestamp } from "./call.ts";
import { cohortIds, populationOf, sizeOfCohort } from "./entities.ts";
import {
  type Population,
  createdAt,
  displayNameAt,
  emailAt,
  entityId,
  indexOf,
  statusAt,
  typeAt,
} from "./population.ts";

// @assumed parameters and responses of both operations, fields of a person and a membership (§4.4, §2.5 "not shown")

const maxFound = 50;
/** The search lets other requests run after this many entities. */
const stride = 20_000;

function personAt(population: Population, index: number): Record<string, string> {
  return {
    id: entityId(population.region, index),
    displayName: displayNameAt(population, index),
    email: emailAt(population, index),
    status: statusAt(population, index),
  };
}

function isMatch(population: Population, search: { index: number; text: string }): boolean {
  if (typeAt(search.index) !== "person") return false;
  return (
    displayNameAt(population, search.index).toLowerCase().includes(search.text) ||
    emailAt(population, search.index).includes(search.text)
  );
}

export async function searchPeople(call: Call, caller: LegacyCaller): Promise<Answer> {
  requireAccess(call, caller);
  const text = call.query.get("query")?.trim().toLowerCase() ?? "";
  if (text === "") throw invalidRequest("query must be given: part of a name or of an e-mail address.", "query");
  const population = populationOf(call);
  const people: Record<string, string>[] = [];
  for (let index = 0; index < population.size && people.length < maxFound; index++) {
    if (isMatch(population, { index, text })) people.push(personAt(population, index));
    if (index % stride === stride - 1) await new Promise((resolve) => setImmediate(resolve));
  }
  return jsonAnswer(200, { data: people });
}

export function getMembership(call: Call, caller: LegacyCaller): Answer {
  requireAccess(call, caller);
  const population = populationOf(call);
  const index = indexOf(population, call.parts.personId!);
  if (index === undefined || typeAt(index) !== "person") throw notFound("No person of this organization has this id.");
  const nth = index - Math.floor(index / 8);
  return jsonAnswer(200, {
    personId: entityId(population.region, index),
    organizationId: call.here.organizationId,
    status: statusAt(population, index),
    role: "member",
    joinedAt: timestamp(createdAt(population, index)),
    cohortIds: cohortIds(population.region).filter((id) => nth < (sizeOfCohort(population, id) ?? 0)),
  });
}
