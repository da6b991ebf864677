// Every cell of the table has its expected result, and each condition of the acts decides at least one cell.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as destroy from "../../../../src/operations/acts/destroy.ts";
import * as overwrite from "../../../../src/operations/acts/overwrite.ts";
import { type Acts, cells } from "./cells.ts";

const source = resolve(import.meta.dirname, "../../../../src");
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "integ-gates-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

it.each(cells.map((cell) => [cell.name, cell] as const))("%s", async (_name, cell) => {
  expect(await cell.run({ overwrite, destroy })).toBe(cell.expected);
});

async function changedCells(acts: Acts): Promise<string[]> {
  const found: string[] = [];
  for (const cell of cells) if ((await cell.run(acts).catch(() => "an error")) !== cell.expected) found.push(cell.name);
  return found;
}

async function without(file: string, [from, to]: readonly [string, string], name: string): Promise<Acts> {
  const text = readFileSync(join(source, "operations/acts", file), "utf8");
  expect(text.split(from).length, `${file} has it once: ${from}`).toBe(2);
  const path = join(folder, `${name.replaceAll(/\W+/g, "-")}.ts`);
  const absolute = text
    .replace(from, to)
    .replaceAll('"../../', `"${source}/`)
    .replaceAll('"../', `"${source}/operations/`)
    .replaceAll('"./', `"${source}/operations/acts/`);
  writeFileSync(path, absolute);
  const changed = (await import(/* @vite-ignore */ path)) as never;
  return file === "destroy.ts" ? { overwrite, destroy: changed } : { overwrite: changed, destroy };
}

it("a copy with every condition decides like the act", async () => {
  for (const [file, line] of [
    ["overwrite.ts", "if (!(await lease.isTrusted()))"],
    ["destroy.ts", 'return evidence.shown === "revoked";'],
  ] as const)
    expect(await changedCells(await without(file, [line, line], `whole ${file}`))).toEqual([]);
});

describe("overwrite needs each of its conditions", () => {
  it.each<readonly [string, string, string]>([
    ["the entry is trusted", "if (!(await lease.isTrusted()))", "if (false)"],
    ["the list names the place", "if (limit !== undefined)", "if (false)"],
    [
      "the place is on this machine",
      "if (isLocal(place) && !named.every((one) => isOfMachine(one, bench)))",
      "if (false)",
    ],
    ["a person agreed to give up the acting profile's own", "if (isActing && place.own !== true)", "if (false)"],
    ["the older entry goes first", "  await assertFirst(bench, lease.entry, places);\n", ""],
    ["only an older entry goes first", "other.id < entry.id && mayDeliver(other)", "mayDeliver(other)"],
    [
      "only an entry that may deliver goes first",
      "other.id < entry.id && mayDeliver(other)",
      "other.id < entry.id && other.destination !== null",
    ],
    ["only an entry of other work goes first", "findLast(({ id }) => !own.has(id))", "findLast(() => true)"],
    ["existing content is checked", "if (!(await isReplaceable(bench, lease.entry, at, found)))", "if (false)"],
    ["what this entry delivered may be replaced", "isKnown(proofOf(place)) || mayBeOwnWrite", "mayBeOwnWrite"],
    ["a write that this entry began may be replaced", "|| mayBeOwnWrite(place, found, by)", ""],
    [
      "only if the version changed soon after the entry's last record",
      " || isLongAfter(found.version, updated_at)",
      "",
    ],
    ["only if the version changed since that write began", " && proof !== `after ${found.version}`", ""],
    [
      "content with consent may be replaced",
      "if (ownPlaces.some((place) => isKnown(consentTo(place)))) return true;",
      "",
    ],
    [
      "a credential that the change replaces may be overwritten",
      "if (found.of !== undefined && replacedIds(item, entry).has(found.of)) return true;",
      "",
    ],
    [
      "that credential is of the same item",
      "const item = await entriesOfItem(journal, entry);\n  if (at",
      "const item = await journal.select({ all: true });\n  if (at",
    ],
    [
      "a command may have the secret of another",
      "return !(await isTaken(journal, { entry, item, at, found }));",
      "return true;",
    ],
    ["a command may have been used for the same item", "!own.has(one.id) && !isExpiredKey", "!isExpiredKey"],
    ["a command's place may depend on the service account", "place(each) === place(entry)", "true"],
    ["an expired key does not count", " && !isExpiredKey(one, entry)", ""],
    [
      "an item's entries are of one organization",
      "if (one.organization_id !== other.organization_id && !isSameProfile) return false;",
      "",
    ],
    ["or of one profile", " && !isSameProfile", ""],
    ["which is not the environment", "other.profile_id && one", "one"],
    ["a command that took no secret is free", " && proofOf(place) !== undefined;", ";"],
    ["another command is free", "isSamePlace(place, at) && proofOf", "proofOf"],
    ["the secret behind a command may be of a revoked client", " && !(await isRevokedBy(journal, all, one))", ""],
    ["entries are of the same account", "!found.has(one.id) && isSameAccount(one)", "!found.has(one.id)"],
    ["entries are of the same policy", "(one.policy?.id ?? null) === (other.policy?.id ?? null) && ", ""],
    ["entries are of clients, or of keys", " && isSameKind", ""],
    ["the machine is the same", "return here === undefined || there === undefined || here === there;", "return true;"],
    ["what a revoked client left may be replaced", " || isRevoked(journal, isDelivered)", ""],
    ["the revocation is of that client", "revokedBy(one) === resource_id", "revokedBy(one) !== undefined"],
    ["linked entries are trusted", "all: true, trusted: true });", "all: true });"],
    ["an entry that permits is trusted", "return entries.some(({ id }) => !unknown.has(id));", "return true;"],
    ["the entry that delivered is trusted", "(await isAnyTrusted(journal, [one])) && ", ""],
  ])("%s", async (name, from, to) => {
    expect(await changedCells(await without("overwrite.ts", [from, to], name))).not.toEqual([]);
  });
});

describe("destroy needs each of its conditions", () => {
  it.each<readonly [string, string, string]>([
    ["there is evidence", "if (!(await isEvidence(bench.journal, entry, evidence)))", "if (false)"],
    ["the entry is trusted", "if ((await journal.untrusted([id])).size > 0) return false;", ""],
    ["the service shows revoked", 'return evidence.shown === "revoked";', "return true;"],
    ["the evidence is of that entry", "return evidence.entry === id;", "return true;"],
    ["the rotation is in place, of that key", "detail.key_id === resource_id && later > id", "later > id"],
    ["the rotation is a rotation", 'operation === "access_key.rotate" && detail', "detail"],
    ["the rotation is later", " && later > id", ""],
    ["the rotation succeeded", "return isLater && hasSucceeded &&", "return isLater &&"],
    ["the rotation is trusted", " && !(await journal.untrusted([later])).has(later)", ""],
  ])("%s", async (name, from, to) => {
    expect(await changedCells(await without("destroy.ts", [from, to], name))).not.toEqual([]);
  });
});
