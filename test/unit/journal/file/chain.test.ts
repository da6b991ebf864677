// A record that was edited, removed or moved is found, whoever made its checksum fit.
import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { recordHash, recordLine } from "../../../../src/journal/record.ts";
import { intent, journalAt as at, journalPath } from "../intent.ts";

/** Lines: the head, then records of the entries a and b by turns: a1 b1 a2 b2 a3 b3. */
async function twoEntries(): Promise<{ path: string; lines: string[] }> {
  const path = journalPath();
  const [a, b] = [await at(path).admit(intent()), await at(path).admit(intent({ fingerprint: "another" }))];
  for (const state of ["unknown", "done"] as const) for (const { lease } of [a, b]) await lease.record({ state });
  for (const { lease } of [a, b]) await lease.release();
  return { path, lines: readFileSync(path, "utf8").trim().split("\n") };
}

const parts = /^\{"sum":"[0-9a-f]{16}","v":3,"after":"([0-9a-f]*)","mac":"([^"]*)",(.*)\}$/s;

function contentIn(line: string): string {
  return parts.exec(line)![3]!;
}

/** The line with something else in it, and a checksum that fits. */
function edited(line: string, change: (content: string) => string): string {
  const [, after, mac = "", content = ""] = parts.exec(line)!;
  return recordLine({ content: change(content), mac }, after).trimEnd();
}

function replaced(lines: readonly string[], at: number, by: readonly string[]): string[] {
  return lines.toSpliced(at, 1, ...by);
}

const blame = (content: string): string => content.replace('"user":"ada"', '"user":"eve"');

test.each<[string, (lines: string[]) => string[]]>([
  ["the actor of a first record edited", (lines) => replaced(lines, 1, [edited(lines[1]!, blame)])],
  ["the actor of one in the middle edited", (lines) => replaced(lines, 3, [edited(lines[3]!, blame)])],
  [
    "the state of an entry's newest record edited",
    (l) => replaced(l, 5, [edited(l[5]!, (t) => t.replace("done", "refused"))]),
  ],
  ["an entry's first record removed", (lines) => replaced(lines, 1, [])],
  ["one in the middle removed", (lines) => replaced(lines, 3, [])],
  ["an entry's newest record removed", (lines) => replaced(lines, 5, [])],
  ["a whole entry removed", (lines) => lines.filter((_, number) => number === 0 || number % 2 === 0)],
  ["records of two entries in another order", ([head, a1, b1, ...rest]) => [head!, b1!, a1!, ...rest]],
  [
    "what it stands on edited too",
    (lines) => {
      const first = edited(lines[1]!, blame);
      const next = edited(lines[3]!, (text) =>
        text.replace(/"prev":"[0-9a-f]{64}"/, `"prev":"${recordHash(contentIn(first))}"`),
      );
      return replaced(replaced(lines, 1, [first]), 3, [next]);
    },
  ],
])("%s: verify tells it", async (_, change) => {
  const { path, lines } = await twoEntries();
  expect(await at(path).verify()).toEqual([]);
  writeFileSync(path, `${change(lines).join("\n")}\n`);
  const problems = (await at(path).verify()).filter(({ severity }) => severity === "problem");
  expect(problems.length).toBeGreaterThan(0);
  expect(problems[0]?.message).toMatch(/edited, removed, (?:repeated )?or moved|edited, removed, repeated or moved/);
});

test.each([1, 3, 6])("a journal that was written anew: record %i removed from what was kept", async (number) => {
  const { path } = await twoEntries();
  writeFileSync(path, `${readFileSync(path, "utf8")}{"sum":"0000000000000000","v":3}\n`);
  await at(path).prune(1e12);
  const { lease } = await at(path).admit(intent());
  await lease.release();
  expect((await at(path).verify()).filter(({ severity }) => severity === "problem")).toEqual([]);
  const lines = readFileSync(path, "utf8").trim().split("\n");
  expect(lines).toHaveLength(8);
  writeFileSync(path, `${replaced(lines, number, []).join("\n")}\n`);
  const problems = (await at(path).verify()).filter(({ severity }) => severity === "problem");
  expect(problems.length).toBeGreaterThan(0);
});

test("a gap that damage left is a warning once the journal is written anew", async () => {
  const { path, lines } = await twoEntries();
  writeFileSync(path, `${replaced(lines, 3, [lines[3]!.replace("unknown", "unknowm")]).join("\n")}\n`);
  expect((await at(path).verify()).some(({ severity }) => severity === "problem")).toBe(true);
  await at(path).prune(1e12);
  const findings = await at(path).verify();
  expect(findings.filter(({ severity }) => severity === "problem")).toEqual([]);
  expect(findings).toContainEqual(
    expect.objectContaining({ severity: "warning", where: expect.stringMatching("entry") }),
  );
});

test("the journal written anew keeps each step of what stays", async () => {
  const { path } = await twoEntries();
  const steps = async () => Promise.all((await at(path).entries()).map(({ id }) => at(path).history(id)));
  const before = await steps();
  expect(before.map((one) => one.map(({ state }) => state))).toEqual([
    ["open", "unknown", "done"],
    ["open", "unknown", "done"],
  ]);
  writeFileSync(path, `${readFileSync(path, "utf8")}{"sum":"0000000000000000","v":3}\n`);
  await at(path).prune(1e12);
  expect(await steps()).toEqual(before);
});
