// Figures of the tests. Every run prints them; a full run and the scripts that try everything write them to
// test/figures.json, each with the commit it was measured on. What a run did not measure stays as it is.
import { execFileSync } from "node:child_process";
import { appendFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");
export const figuresFile = join(root, "test/figures.json");

/** Prints a figure, and keeps it if the run collects figures. `of` is which of several, such as a scene. */
export function recordFigure(name, values, of) {
  const whole = of === undefined ? name : `${name}, ${of}`;
  const words = Object.entries(values).map(([what, value]) => `${value} ${what}`);
  console.log(`${whole}: ${words.join(", ")}`);
  const { INTEG_TEST_FIGURES: folder } = process.env;
  if (folder) appendFileSync(join(folder, `${process.pid}.ndjson`), `${JSON.stringify({ name: whole, values })}\n`);
}

/** From now on this process and those that it starts keep their figures. @returns what writes them to the file */
export function collectFigures() {
  const folder = mkdtempSync(join(tmpdir(), "integ-figures-"));
  process.env.INTEG_TEST_FIGURES = folder;
  return () => {
    delete process.env.INTEG_TEST_FIGURES;
    const lines = readdirSync(folder).flatMap((file) => readFileSync(join(folder, file), "utf8").trim().split("\n"));
    rmSync(folder, { recursive: true });
    const found = lines.filter(Boolean).map((line) => JSON.parse(line));
    if (found.length > 0) writeFigures(found);
  };
}

function writeFigures(found) {
  const before = existsSync(figuresFile) ? JSON.parse(readFileSync(figuresFile, "utf8")) : {};
  const measured = { commit: commit(), date: new Date().toISOString().slice(0, 10), node: process.versions.node };
  const all = { ...before };
  for (const { name, values } of found) all[name] = { ...measured, ...values };
  const sorted = Object.fromEntries(Object.entries(all).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(figuresFile, `${JSON.stringify(sorted, null, 2)}\n`);
}

/** The commit of the sources and tests; one with uncommitted changes says so. */
function commit() {
  const git = (...words) => execFileSync("git", words, { cwd: root, encoding: "utf8" }).trim();
  try {
    const isChanged = git("status", "--porcelain", "--", "src", "test", ":!test/figures.json") !== "";
    return `${git("rev-parse", "--short=10", "HEAD")}${isChanged ? ", changed" : ""}`;
  } catch {
    return "unknown";
  }
}
