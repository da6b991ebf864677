// Which files are mutated, and the numbers of their mutants.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { mutantsOf } from "./mutants.mjs";

const root = resolve(import.meta.dirname, "../..");
const finder = readFileSync(join(import.meta.dirname, "mutants.mjs"));
export const rooms = ["changes", "journal", "secrets", "disk"];

/** @returns the files with the number of their first mutant and what they consist of, all mutants, and how many stand where they run once, at load */
export function readPlan() {
  const files = [];
  const mutants = [];
  let left = 0;
  for (const room of rooms) {
    const names = readdirSync(join(root, "src", room), { recursive: true, encoding: "utf8" }).toSorted();
    for (const name of names.filter((one) => one.endsWith(".ts") && !one.endsWith(".d.ts"))) {
      const path = `src/${room}/${name.replaceAll("\\", "/")}`;
      const text = readFileSync(join(root, path), "utf8");
      const found = mutantsOf(path, text, mutants.length + 1);
      const hash = createHash("sha256").update(finder).update(text).digest("hex").slice(0, 16);
      files.push({ path, first: mutants.length + 1, hash });
      mutants.push(...found.mutants);
      left += found.left;
    }
  }
  return { files, mutants, left };
}
