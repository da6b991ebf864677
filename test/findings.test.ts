// Every defect of the audit of 0.1.0 has its tests and the page that promises better: findings.md names them, and each is there.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { fixes } from "./fixes.mjs";

const rows = readFileSync(join(import.meta.dirname, "findings.md"), "utf8")
  .split("\n")
  .flatMap((line) => {
    const row = /^\| (\d+) \| (.+?) \| (.+) \| `(\S+\.md)` (.+) \|$/.exec(line);
    return row === null ? [] : [row.slice(1)];
  });

it("has a row for each of the 82", () => {
  expect(rows.map(([number]) => Number(number))).toEqual(Array.from({ length: 82 }, (_value, index) => index + 1));
});

it("has a break of each, whose text the sources have once", () => {
  expect([...new Set(fixes.map(([number]) => number))]).toEqual(rows.map(([number]) => number));
  for (const [number, , ...changes] of fixes)
    for (const [file, now, before] of changes) {
      const path = join(import.meta.dirname, "..", file.startsWith("/") ? "" : "src", file);
      expect(readFileSync(path, "utf8").split(now), `${number}, ${file}: ${now}`).toHaveLength(2);
      expect(before).not.toBe(now);
    }
});

it.each(rows)("%s: %s", (_number, _defect, tests = "", page = "", promise = "") => {
  const named = [...tests.matchAll(/`([^`]+)` (.+?)(?:; (?=`)|$)/g)];
  expect(named.length).toBeGreaterThan(0);
  for (const [, file = "", text = ""] of named) {
    const path = join(import.meta.dirname, file);
    expect(existsSync(path), file).toBe(true);
    expect(readFileSync(path, "utf8"), `${file} has no «${text}» any more`).toContain(text);
  }
  const text = readFileSync(join(import.meta.dirname, "..", page), "utf8").replaceAll(/\s+/g, " ");
  expect(text, page).toContain(promise);
});
