import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { faultKeys, parseFault } from "../../src/sandbox/fault.ts";
import { apiDocument, coverageDocument, rowDefects, sentenceRows } from "./coverage.ts";
import { sentencesOf } from "./document-sentences.ts";
import { readDocuments } from "./openapi-check.ts";
import { startWorld } from "./world.ts";

const docs = join(import.meta.dirname, "../../docs");
const sandbox = readFileSync(join(docs, "sandbox.md"), "utf8");
const design = readFileSync(join(docs, "design", "sandbox.md"), "utf8");

function choicesIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(choicesIn);
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) =>
    name === "x-sandbox-choice" ? [String(inner)] : choicesIn(inner),
  );
}

describe("docs/design/contract-coverage.md", () => {
  it("matches the cases", async () => {
    await expect(coverageDocument()).toMatchFileSnapshot(join(docs, "design", "contract-coverage.md"));
  });
});

describe("the sentences of the API document", () => {
  it("are each checked by an existing case or test, or marked as not normative with a reason", () => {
    expect(rowDefects()).toEqual([]);
  });

  // The API document is published elsewhere; a checkout without it skips this comparison.
  const document = apiDocument();
  it.skipIf(document === undefined)("are complete and match the document", () => {
    const plain = ({ section, says }: { section: string; says: string }): string => `§${section}: ${says}`;
    expect(sentenceRows().map(plain)).toEqual(sentencesOf(document ?? "").map(plain));
  });
});

describe("docs/design/sandbox.md", () => {
  it("lists every choice that the published documents mark as assumed", async () => {
    const world = await startWorld();
    const choices = new Set(choicesIn(await readDocuments(String(world.description.us.base_url))));
    await world.close();
    expect(choices.size).toBeGreaterThan(15);
    expect([...choices].filter((choice) => !design.includes(choice))).toEqual([]);
  });
});

describe("docs/sandbox.md", () => {
  it("has an example of every fault, and each example is a valid fault", () => {
    const examples = [...sandbox.matchAll(/[|'"] ?`?((?:GET|POST|DELETE|\*) \/[^`'"]+=[^`'"]+)[`'"]/g)].map(
      (match) => match[1]!,
    );
    for (const example of examples) expect(() => parseFault(example), example).not.toThrow();
    for (const key of Object.keys(faultKeys))
      expect(
        examples.some((example) => example.includes(` ${key}=`)),
        key,
      ).toBe(true);
  });

  it("shows every fault with its grammar", () => {
    for (const [key, { grammar }] of Object.entries(faultKeys))
      expect(sandbox, key).toContain(`| \`${key}=${grammar.replaceAll("|", "\\|")}\``);
  });

  it("shows every key of the description", async () => {
    const world = await startWorld();
    const missing = Object.keys(world.description.us).filter((key) => !sandbox.includes(`\`${key}\``));
    await world.close();
    expect(missing).toEqual([]);
  });
});
