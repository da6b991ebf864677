import type { Region } from "./state.ts";

export interface Population {
  readonly region: Region;
  readonly size: number;
  readonly seed: number;
}

/**
 * One entity in eight is not a person, so that the filter `type` excludes some.
 * @assumed `organization` and the status `inactive` (§2.2 shows `person` and `active`)
 */
const every = 8;
export type EntityType = "person" | "organization";

const givenNames = (
  "Ada Alan Amina Anders Barbara Chen Clara Dennis Edith Elena Emil Fatima Frances Grace Hedy Henrik Ines Ivan Jean " +
  "Joan Jonas Karim Katherine Ken Lena Leo Lin Marta Mary Mei Niklas Noor Omar Priya Radia Rosa Sofia Tim Wanda Yuki Zoë"
).split(" ");
const familyNames = (
  "Allen Andersson Bartik Berg Blum Carter Chaudhry Dijkstra Eriksen Ferreira Fischer García Goldberg Hamilton Haddad " +
  "Holberton Hopper Ito Jansen Johnson Kaur Keller Kowalska Lamarr Lindqvist Liskov López Lovelace Meyer Moreau Müller " +
  "Nakamura Novák Okafor Olsen Perlman Ritchie Rossi Santos Schmidt Silva Sørensen Spärck Tanaka Turing Vaughan Wagner Wing Wu Zhang"
).split(" ");

const firstMoment = Date.UTC(2024, 0, 1);
const dayMs = 86_400_000;
/** Interval between the creation times of entities; shorter if they would span more than two years. */
const usualIntervalMs = 37_003;
const longestMs = 2 * 365 * dayMs;

function seedOf(population: Population, use: number): number {
  return population.seed + use + (population.region === "eu" ? 1_000 : 0);
}

/** A hash that ends with the finalizer of MurmurHash3. */
function mix(seed: number, index: number): number {
  let h = (Math.imul(seed, 0x9e3779b1) + Math.imul(index, 0x85ebca6b)) | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

export function entityId(region: Region, index: number): string {
  return `ent_${region}_${String(index + 1).padStart(7, "0")}`;
}

export function indexOf(population: Population, id: string): number | undefined {
  const match = new RegExp(`^ent_${population.region}_([0-9]{7,})$`).exec(id);
  const index = match ? Number(match[1]) - 1 : -1;
  return index >= 0 && index < population.size && entityId(population.region, index) === id ? index : undefined;
}

export function typeAt(index: number): EntityType {
  return index % every === every - 1 ? "organization" : "person";
}

export function displayNameAt(population: Population, index: number): string {
  const h = mix(seedOf(population, 0), index);
  const family = familyNames[(h >>> 8) % familyNames.length]!;
  return typeAt(index) === "person" ? `${givenNames[h % givenNames.length]} ${family}` : `${family} & Partners`;
}

function plain(name: string): string {
  return name
    .toLowerCase()
    .replaceAll("ø", "o")
    .normalize("NFD")
    .replace(/[^a-z]/g, "");
}

const plainGivenNames = givenNames.map(plain);
const plainFamilyNames = familyNames.map(plain);

export function emailAt(population: Population, index: number): string {
  const h = mix(seedOf(population, 0), index);
  const family = plainFamilyNames[(h >>> 8) % familyNames.length]!;
  const name = typeAt(index) === "person" ? `${plainGivenNames[h % givenNames.length]}.${family}` : `office.${family}`;
  return `${name}.${index + 1}@example.com`;
}

export function statusAt(population: Population, index: number): "active" | "inactive" {
  return mix(seedOf(population, 7), index) % 10 === 0 ? "inactive" : "active";
}

export function createdAt(population: Population, index: number): number {
  const intervalMs = Math.min(usualIntervalMs, Math.floor(longestMs / population.size));
  return firstMoment + index * intervalMs + (mix(seedOf(population, 1), index) % intervalMs);
}

/** An entity of §2.2 in JSON. Names contain no character that JSON escapes. */
export function entityText(population: Population, index: number): string {
  const created = createdAt(population, index);
  const updated = created + (mix(seedOf(population, 2), index) % (90 * dayMs));
  return (
    `{"id":"${entityId(population.region, index)}","object":"entity","type":"${typeAt(index)}",` +
    `"status":"${statusAt(population, index)}","display_name":"${displayNameAt(population, index)}",` +
    `"email":"${emailAt(population, index)}","created_at":"${new Date(created).toISOString()}",` +
    `"updated_at":"${new Date(updated).toISOString()}"}`
  );
}

export function countOf(population: Population, type: string | null): number {
  const organizations = Math.floor(population.size / every);
  if (type === null) return population.size;
  return type === "organization" ? organizations : type === "person" ? population.size - organizations : 0;
}

export function nthOf(type: string | null, nth: number): number {
  if (type === null) return nth;
  return type === "person" ? nth + Math.floor(nth / (every - 1)) : nth * every + every - 1;
}
