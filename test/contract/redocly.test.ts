import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { documentPaths, readDocuments } from "./openapi-check.ts";
import { startWorld } from "./world.ts";

interface Report {
  readonly totals: { readonly errors: number; readonly warnings: number };
  readonly problems: unknown[];
}

/** Telemetry and update checks would need the network. */
const quiet = { REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true", CI: "1" };

function lint(file: string): Report {
  const program = resolve("node_modules/@redocly/cli/bin/cli.js");
  const env = { ...process.env, ...quiet };
  return JSON.parse(spawnSync(process.execPath, [program, "lint", "--format=json", file], { env }).stdout.toString());
}

it("redocly lint with the recommended rules reports no error and no warning", async () => {
  const world = await startWorld();
  const documents = await readDocuments(String(world.description.us.base_url));
  await world.close();
  const folder = mkdtempSync(join(tmpdir(), "integ-openapi-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  expect(documents).toHaveLength(documentPaths.length);
  for (const [index, document] of documents.entries()) {
    const file = join(folder, `${index}.json`);
    writeFileSync(file, JSON.stringify(document));
    const { totals, problems } = lint(file);
    expect(problems).toEqual([]);
    expect(totals).toMatchObject({ errors: 0, warnings: 0 });
  }

  const broken = join(folder, "broken.json");
  writeFileSync(broken, JSON.stringify({ ...documents[0], paths: { "/x": { get: {} } } }));
  expect(lint(broken).totals.errors).toBeGreaterThan(0);
});
