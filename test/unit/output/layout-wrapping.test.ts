import * as fc from "fast-check";
import { expect, it } from "vitest";
import { firstWords, wrapped } from "../../../src/output/formats/layout.ts";
import { buildProgram } from "../../../src/program.ts";

it("wrapping loses nothing, and exceeds the width only for a long word", () => {
  const word = fc.string({ unit: fc.constantFrom(..."abcdefgh"), minLength: 1, maxLength: 30 });
  fc.assert(
    fc.property(fc.array(word, { minLength: 1 }), fc.integer({ min: 20, max: 120 }), (words, width) => {
      const lines = wrapped(words.join(" "), { width, margin: "  " }).split("\n");
      expect(lines.map((line) => line.trim()).join(" ")).toBe(words.join(" "));
      for (const line of lines) if (line.length > width) expect(line.trim()).not.toContain(" ");
    }),
  );
});

it.each([
  [
    "Resume it with integ journal recover 1rs6y1ys1e --replace-lost-secret, or later.",
    "integ journal recover 1rs6y1ys1e --replace-lost-secret",
  ],
  ["Without the question from now on: integ profiles use 'my profile' -q", "integ profiles use 'my profile' -q"],
  [
    "Give the key's holder its new secret with integ profiles edit prod --api-key-id ak_2, then continue.",
    "integ profiles edit prod --api-key-id ak_2",
  ],
  ["Unlock it (vault operator unseal), then run the command again.", "vault operator unseal"],
  ["Hidden columns: created_at, updated_at. To see them: --fields id,updated_at", "--fields id,updated_at"],
  [
    "Choose one: integ adopt access-key ak_1 --name etl, or integ adopt access-key ak_2 --name etl",
    "integ adopt access-key ak_2 --name etl",
  ],
  ["1 change needs attention. Next: integ journal list", "integ journal list"],
])("wrapping leaves the command whole at every width: %s", (text, command) => {
  for (let width = 20; width <= 120; width += 1) expect(wrapped(text, { width, margin: "  " })).toContain(command);
});

it("wrapping breaks the sentence after a command, and a sentence about integ", () => {
  const text =
    "Choose one: integ adopt access-key ak_2 --name etl, or integ journal recover 1rs6y1ys1e --replace-lost-secret revokes the client and creates another, then: integ releases the entry only if the process has done nothing for ten minutes.";
  const longest = "integ journal recover 1rs6y1ys1e --replace-lost-secret revokes".length;
  const widths = wrapped(text, { width: 40 })
    .split("\n")
    .map(({ length }) => length);
  expect(widths.filter((width) => width > 40)).toEqual([longest]);
});

it.each([
  "No credential is known: integ lists access keys in this profile",
  "200 days old (limit: 90 days); integ does not know whether it is used",
  "a part of the service: integ cannot create or rotate this credential",
])("wrapping breaks a sentence about integ between all words: %s", (text) => {
  for (let width = 20; width <= 80; width += 1) {
    const lines = wrapped(text, { width }).split("\n");
    for (const [index, line] of lines.slice(1).entries())
      expect(`${lines[index]} ${line.split(" ", 1)[0]}`.length).toBeGreaterThan(width);
  }
});

it("wrapping cuts names on request, and no ids, keys, paths and commands", () => {
  const kept = [
    "ak_us_5de667e059edeaed67123c92d026d79a5de667e059ed",
    `/srv/${"d".repeat(60)}`,
    "vault:収".padEnd(60, "集"),
  ];
  const name = "n".repeat(255);
  const text = wrapped(`${kept.join(" ")} (${name}), ${name}: integ adopt --name ${name}`, {
    width: 40,
    cutsNames: true,
  });
  expect(text.split("\n")).toEqual([
    ...kept,
    `(${"n".repeat(36)}…),`,
    `${"n".repeat(38)}…:`,
    `integ adopt --name ${name}`,
  ]);
});

it("wrapping knows every noun and verb of integ", () => {
  const { commands } = buildProgram("0", () => {});
  expect(firstWords.split("|")).toEqual([...commands.map((one) => one.name()), "help"].sort());
});

it.each(["--a", "integ ", ": integ ", "integ 'a ", "--a-", "x.", "--a --"])("wraps 60 kB of %j fast", (text) => {
  const begin = performance.now();
  wrapped(text.repeat(60_000 / text.length), { width: 80 });
  expect(performance.now() - begin).toBeLessThan(1000);
});

it("wrapping changes nothing without a useful width", () => {
  expect([undefined, 0, 10].map((width) => wrapped("a b c", { width, margin: "> " }))).toEqual(
    Array(3).fill("> a b c"),
  );
});
