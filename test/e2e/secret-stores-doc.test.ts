// The stores of docs/secret-stores.md to which integ itself writes. recipes.test.ts runs the commands of other tools.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, expect, it } from "vitest";
import type { StoreScheme } from "../../src/secrets/destination.ts";
import { root } from "../support/program.ts";
import { absentStores, StoreWorld } from "../support/store-world.ts";

const absent = absentStores();
const [page = ""] = readFileSync(join(root, "docs/secret-stores.md"), "utf8").split(
  "\n## Other stores, through their own commands\n",
);
const lines = page.split("\n").filter((line) => line.startsWith("integ "));

const world = new StoreWorld();
beforeAll(() => void world.at.addToPath());
afterEach(() => world.account.clear());

/** Runs the line in a child process, because this process must respond as the stores do. */
async function type(line: string): Promise<void> {
  const child = spawn("bash", ["-euc", `${line} --new`], {
    cwd: world.at.folder,
    env: world.at.env,
    stdio: ["ignore", "ignore", "pipe"],
  });
  let stderr = "";
  child.stderr.on("data", (some: Buffer) => (stderr += some.toString()));
  const code = await new Promise((done) => child.on("close", done));
  expect(code, stderr).toBe(0);
}

it("the page has five commands", () => expect(lines.length).toBe(5));

it.for(lines)("stores the secret: %s", async (shown, { skip }) => {
  const line = shown.replaceAll("<id>", world.service.us.service_account_id).replace("my-namespace", "apps");
  const [, scheme = "", address = ""] = / --secret-to '?(\w+):([^\s']+)/.exec(line) ?? [];
  skip(absent[scheme as StoreScheme], "the store is missing");
  const store = await world.open(scheme as StoreScheme);
  try {
    await type(line);
    const [newest] = await world.account.live();
    expect(await world.account.opens(newest!.client_id!, String(store.secretAt(address)))).toBe(true);
  } finally {
    await store.close();
  }
});
