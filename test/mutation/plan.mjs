// Which files are mutated, and the numbers of their mutants.
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { mutantsOf } from "./mutants.mjs";

const root = resolve(import.meta.dirname, "../..");
export const rooms = ["changes", "journal", "secrets", "disk"];

/** @returns the files with the number of their first mutant, all mutants, and how many stand where they run once, at load */
export function readPlan() {
  const files = [];
  const mutants = [];
  let left = 0;
  for (const room of rooms) {
    const names = readdirSync(join(root, "src", room), { recursive: true, encoding: "utf8" }).toSorted();
    for (const name of names.filter((one) => one.endsWith(".ts") && !one.endsWith(".d.ts"))) {
      const path = `src/${room}/${name.replaceAll("\\", "/")}`;
      const found = mutantsOf(path, readFileSync(join(root, path), "utf8"), mutants.length + 1);
      files.push({ path, first: mutants.length + 1 });
      mutants.push(...found.mutants);
      left += found.left;
    }
  }
  return { files, mutants, left };
}
