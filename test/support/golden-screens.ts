// All golden screens are in one file. Each test owns a part of it, and `vitest -u` rewrites only that part.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { root } from "./program.ts";

const file = join(root, "test/screens.golden.txt");
export const goldenScreens = (): string => readFileSync(file, "utf8");

export async function expectScreens(part: "errors" | "plan" | "status", screens: string): Promise<void> {
  const [head = "", ...parts] = goldenScreens().split(/^(?==== )/m);
  const now = parts.map((one) => (one.startsWith(`=== ${part}\n`) ? `=== ${part}\n\n${screens.trimEnd()}\n\n` : one));
  await expect([head, ...now].join("")).toMatchFileSnapshot(file);
}
