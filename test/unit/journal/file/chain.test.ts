// A removed or moved line is detected; changed records of an entry are tested in conformance.ts.
import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { intent, journalAt as at, journalPath } from "../intent.ts";

/** A journal with the lines head, a1, b1, a2, b2, a3, b3: alternating records of the entries a and b. */
async function twoEntries(): Promise<{ path: string; lines: string[] }> {
  const path = journalPath();
  const [a, b] = [await at(path).admit(intent()), await at(path).admit(intent({ fingerprint: "another" }))];
  for (const state of ["unknown", "done"] as const) for (const { lease } of [a, b]) await lease.record({ state });
  for (const { lease } of [a, b]) await lease.release();
  return { path, lines: readFileSync(path, "utf8").trim().split("\n") };
}

test.each<[string, (lines: string[]) => string[]]>([
  ["an entry's newest record removed", (lines) => lines.toSpliced(5, 1)],
  ["a whole entry removed", (lines) => lines.filter((_, number) => number === 0 || number % 2 === 0)],
  ["records of two entries in another order", ([head, a1, b1, ...rest]) => [head!, b1!, a1!, ...rest]],
])("%s: verify reports it", async (_, change) => {
  const { path, lines } = await twoEntries();
  expect(await at(path).verify()).toEqual([]);
  writeFileSync(path, `${change(lines).join("\n")}\n`);
  const problems = (await at(path).verify()).filter(({ severity }) => severity === "problem");
  expect(problems.length).toBeGreaterThan(0);
  expect(problems[0]?.message).toMatch(/edited, removed, (?:repeated )?or moved|edited, removed, repeated or moved/);
});

test("a gap left by damage is a warning after the journal was rewritten", async () => {
  const { path, lines } = await twoEntries();
  writeFileSync(path, `${lines.with(3, lines[3]!.replace("unknown", "unknowm")).join("\n")}\n`);
  expect((await at(path).verify()).some(({ severity }) => severity === "problem")).toBe(true);
  await at(path).prune(1e12);
  const findings = await at(path).verify();
  expect(findings.filter(({ severity }) => severity === "problem")).toEqual([]);
  expect(findings).toContainEqual(
    expect.objectContaining({ severity: "warning", where: expect.stringMatching("entry") }),
  );
});

test("a rewritten journal keeps each step of its remaining entries", async () => {
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
