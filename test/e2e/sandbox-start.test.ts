import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Home } from "../support/program.ts";
import { homeOfTest } from "../support/service.ts";

let running: ReturnType<Home["start"]>;
const server = new Home();
let output = "";
let logged = "";

beforeAll(async () => {
  running = server.start(["sandbox", "start", "--log"]);
  running.stderr!.setEncoding("utf8").on("data", (text: string) => void (logged += text));
  await new Promise<void>((ready, failed) => {
    running.stdout!.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      if (/integ keys list\n/.test(output)) ready();
    });
    running.on("close", (code) => failed(new Error(`sandbox start ended with ${code}`)));
  });
});

afterAll(() => {
  running.removeAllListeners("close").kill("SIGINT");
  server.remove();
});

/** @returns the commands, which are the indented lines after the heading */
function linesAfter(heading: string): string {
  const rest = output.slice(output.indexOf(heading) + heading.length);
  return /^(?:.*\n)((?: {2}.+\n)+)/.exec(rest)?.[1] ?? "";
}

function type(at: Home, text: string): { status: number | null; stdout: string; stderr: string } {
  at.addToPath();
  return spawnSync("bash", ["-euo", "pipefail", "-c", text], { cwd: at.folder, env: at.env, encoding: "utf8" });
}

it.each([
  ["the exports", "Use it from another terminal:", "integ people search wanda --json | jq -e .data"],
  ["the profile", "or as profiles:", "integ keys list --json | jq -r .data[0].id"],
])("%s work, and so do the commands after them", (_, heading, more) => {
  const at = homeOfTest();
  const first = linesAfter(heading);
  const commands = linesAfter("and then:");
  expect(first.trim().split("\n").length).toBeGreaterThanOrEqual(2);
  expect(commands.trim().split("\n")).toHaveLength(3);
  const { status, stdout, stderr } = type(at, `${first}\n${commands}\n${more}`);
  expect(status, stderr).toBe(0);
  expect(stdout).toContain("ent_us_0000001");
  expect(stdout).toContain("oac_us_");
});

it("a line is logged for each request, and no warning", async () => {
  await expect.poll(() => logged.split("\n").length).toBeGreaterThan(4);
  const lines = logged.trim().split("\n");
  expect(lines.filter((line) => !/^(?:us|eu) (?:GET|POST) \/\S* \d{3} req_(?:us|eu)_\w+$/.test(line))).toEqual([]);
});

it("every name and credential that docs/sandbox.md promises is in status", async () => {
  const at = homeOfTest();
  const { us, eu } = JSON.parse((await at.integ(["sandbox", "status", "--json"])).stdout);
  const { stdout } = await at.integ(["sandbox", "status"]);
  // Omits tokens, which differ each time, and the caller's service account, which `status` does not show.
  const left = ["access_token", "caller_service_account_id"];
  for (const [key, value] of [...Object.entries(us), ...Object.entries(eu)].filter(([name]) => !left.includes(name)))
    if (typeof value === "string") expect(stdout, key).toContain(value);
});

it("the profile's key works in both contracts, with no more than its permissions", async () => {
  const at = homeOfTest();
  expect(type(at, linesAfter("or as profiles:")).status).toBe(0);
  const keys = await at.integ(["keys", "list", "--json"]);
  expect([keys.code, JSON.parse(keys.stdout).data.length], keys.stderr).toEqual([0, 7]);
  expect((await at.integ(["people", "search", "wanda"])).code).toBe(0);

  // With --yes, a new key replaces the profile's credential. With an ingestion key, the profile cannot read.
  expect((await at.integ(["keys", "create", "--name", "mine", "--secret-profile", "local", "--yes"])).code).toBe(0);
  expect((await at.integ(["entities", "list"])).code).toBe(0);
  const narrow = ["keys", "create", "--name", "push", "--scope", "push-ingest:*", "--secret-profile", "local", "--yes"];
  expect((await at.integ(narrow)).code).toBe(0);
  expect((await at.integ(["entities", "list"])).code).toBe(3);
});
