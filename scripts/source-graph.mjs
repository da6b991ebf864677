// Reads the imports between files of src/, for the architecture test.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";

export function filesBelow(folder) {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(folder, name));
}

export function importsOf(file, source) {
  const text = readFileSync(file, "utf8").replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
  const from = relative(source, file).split(sep).join("/");
  const imports = [];
  const add = (to, kind) => imports.push({ from, to, ...kind });
  for (const match of text.matchAll(/\b(?:import|export)\s+(type\s+)?([^;"']*?)\s*from\s*["']([^"']+)["']/g))
    add(match[3], { typeOnly: match[1] !== undefined || namesOnlyTypes(match[2]), lazy: false });
  for (const match of text.matchAll(/(typeof\s+)?\bimport\(\s*["']([^"']+)["']\s*\)/g))
    add(match[2], { typeOnly: match[1] !== undefined, lazy: match[1] === undefined });
  for (const match of text.matchAll(/\bimport\s+["']([^"']+)["']/g)) add(match[1], { typeOnly: false, lazy: false });
  for (const match of text.matchAll(/\b(?:require|createRequire\([^)]*\))\(\s*["']([^"']+)["']\s*\)/g))
    add(match[1], { typeOnly: false, lazy: true });
  return imports;
}

function namesOnlyTypes(names) {
  return /^\{(\s*type\s+[\w$]+(\s+as\s+[\w$]+)?\s*,?)+\}$/.test(names.replaceAll("\n", " "));
}

export function targetOf({ from, to }, source) {
  if (!to.startsWith(".")) return undefined;
  return relative(source, resolve(source, dirname(from), to))
    .split(sep)
    .join("/");
}

/** Finds strongly connected components by Tarjan's algorithm, and files that import themselves. */
export function importCycles(imports, source) {
  const edges = new Map();
  for (const one of imports) {
    const to = targetOf(one, source);
    if (to !== undefined) edges.set(one.from, [...(edges.get(one.from) ?? []), to]);
  }
  const index = new Map();
  const low = new Map();
  const stack = [];
  const cycles = [];
  const visit = (file) => {
    index.set(file, index.size);
    low.set(file, index.get(file));
    stack.push(file);
    for (const next of edges.get(file) ?? []) {
      if (!index.has(next)) visit(next);
      if (stack.includes(next)) low.set(file, Math.min(low.get(file), low.get(next)));
    }
    if (low.get(file) !== index.get(file)) return;
    const cycle = stack.splice(stack.indexOf(file));
    if (cycle.length > 1 || edges.get(file)?.includes(file)) cycles.push(cycle.sort((a, b) => (a < b ? -1 : 1)));
  };
  for (const file of edges.keys()) if (!index.has(file)) visit(file);
  return cycles;
}
