import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { rolldown } from "rolldown";
import { onTestFinished } from "vitest";

export async function bundled(file: string): Promise<string> {
  const cache = resolve("node_modules/.cache");
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, "integ-sandbox-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const name = basename(file, ".ts");
  const bundle = await rolldown({ input: { [name]: resolve(file) }, platform: "node", external: [/^node:/] });
  await bundle.write({ dir: folder, format: "cjs", entryFileNames: "[name].cjs", chunkFileNames: "[name]-[hash].cjs" });
  await bundle.close();
  return join(folder, `${name}.cjs`);
}
