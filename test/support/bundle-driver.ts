// Bundles a small TypeScript program, so that tests can run it in separate processes (Node 20 runs no TypeScript).
import { mkdtempSync, rmSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { rolldown } from "rolldown";
import { onTestFinished } from "vitest";

const cache = join(import.meta.dirname, "../../node_modules/.cache");

export async function bundleDriver(file: string): Promise<{ path: string; remove: () => void }> {
  await mkdir(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, "integ-driver-"));
  const bundle = await rolldown({
    input: file,
    platform: "node",
    external: [/^node:/, "@napi-rs/keyring", "fs-native-extensions"],
  });
  const name = `${basename(file, ".ts")}.cjs`;
  await bundle.write({ dir: folder, format: "cjs", entryFileNames: name, codeSplitting: false });
  await bundle.close();
  return { path: join(folder, name), remove: () => rmSync(folder, { recursive: true, force: true }) };
}

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(process.env.TMPDIR ?? "/tmp", "integ-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
