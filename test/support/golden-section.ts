// A part of a golden file, held by a test of its own: a file has a section for each, in the order of their names.
// `npm run docs` writes them (INTEG_TEST_GOLDEN=write).
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { expect } from "vitest";

const head = "# ";

function sectionsIn(path: string): Map<string, string> {
  if (!existsSync(path)) return new Map();
  const parts = readFileSync(path, "utf8")
    .split(new RegExp(`^${head}`, "m"))
    .slice(1);
  return new Map(
    parts.map((part) => [part.slice(0, part.indexOf("\n")), part.slice(part.indexOf("\n") + 1).trimEnd()]),
  );
}

/** @throws if the section is another one, or none */
export function expectSection(path: string, name: string, text: string): void {
  const sections = sectionsIn(path);
  if (process.env.INTEG_TEST_GOLDEN !== "write") return expect(text.trimEnd()).toBe(sections.get(name));
  sections.set(name, text.trimEnd());
  const sorted = [...sections].toSorted(([a], [b]) => (a < b ? -1 : 1));
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, sorted.map(([title, part]) => `${head}${title}\n${part}\n`).join("\n"));
}
