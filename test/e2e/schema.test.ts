import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { outputs } from "../../src/commands/schema/outputs.ts";
import { seen } from "../support/check-output.ts";
import { ended, Home } from "../support/program.ts";
import { homeOfTest, serviceOfFile, tokenEnv } from "../support/service.ts";

const service = await serviceOfFile();
function home(): Home {
  return homeOfTest(tokenEnv(service));
}

it("lists each schema with the commands that print it", async () => {
  const { stdout } = await home().integ(["schema", "--json"]);
  const { data } = JSON.parse(stdout) as { data: { name: string; printed_by: string[] }[] };
  expect(data.map(({ name }) => name)).toEqual(["policy", ...Object.keys(outputs)]);
  expect(data.find(({ name }) => name === "plan")?.printed_by).toEqual(["plan"]);
});

it("refuses an unknown schema and lists the known ones", async () => {
  const ended = await home().integ(["schema", "nothing"]);
  expect([ended.code, ended.stdout]).toEqual([2, ""]);
  for (const name of ["policy", "journal_entry", "error"]) expect(ended.stderr).toContain(name);
});

it("describes the results about a file, a profile and the journal's path", async () => {
  const at = home();
  for (const [words, printed] of [
    [["journal", "path"], { object: "journal_path", path: at.path("state", "journal.ndjson") }],
    [["profiles", "use", "sandbox"], { object: "default_profile", name: "sandbox" }],
    [["policy", "init"], { object: "policy_file", path: at.path("integ.yaml") }],
    [["journal", "export"], { journal: "integ" }],
  ] as const) {
    const said = await at.integ([...words, "--json"]);
    expect(JSON.parse(said.stdout), said.stderr).toMatchObject(printed);
  }
});

it("describes what a command in a shell or another process prints", async () => {
  const at = new Home(tokenEnv(service));
  const count = (): number => (seen.get("journal_path") ?? 0) + (seen.get("entity") ?? 0);
  const before = count();
  await ended(at.start(["journal", "path", "--json"]));
  at.addToPath();
  const line = "integ entities list --ndjson --max 3 > list; integ entities list --max 2 --json | cat >> list";
  execFileSync("sh", ["-ec", line], { cwd: at.folder, env: at.env, stdio: "pipe" });
  at.remove();
  expect(count()).toBe(before + 6);
});

it("describes each command that integ commands prints", async () => {
  const at = home();
  expect((await at.integ(["schema", "command"])).code).toBe(0);
  for (const format of ["--json", "--ndjson"]) {
    const name = format === "--json" ? "commands" : "command";
    const before = seen.get(name) ?? 0;
    const said = await at.integ(["commands", format]);
    expect(seen.get(name)).toBeGreaterThanOrEqual(before + said.stdout.trim().split("\n").length);
  }
});

it("describes the documented objects of the service", async () => {
  const at = home();
  const client = ["oauth-clients", "create", "--service-account", service.us.service_account_id];
  for (const words of [
    ["entities", "list", "--all"],
    ["people", "search", "a"],
    ["cohorts", "members", "cohort_us_large"],
    ["sandbox", "status"],
    ["schema"],
    ["keys", "list"],
    ["keys", "get", "ak_us_ending"],
    ["keys", "create", "--name", "schema", "--secret-file", "key.secret"],
    [...client, "--scope", "entity:read", "--secret-file", "client.secret"],
    ["oauth-clients", "list"],
  ])
    for (const format of words.includes("create") ? ["--json"] : ["--json", "--ndjson"]) {
      const said = await at.integ([...words, format]);
      expect(said.stdout, said.stderr).not.toBe("");
    }
  const found = await at.integ(["people", "search", "a", "--json"]);
  const { id } = (JSON.parse(found.stdout) as { data: { id: string }[] }).data[0]!;
  const { client_id } = JSON.parse((await at.integ(["oauth-clients", "list", "--json"])).stdout).data[0];
  for (const [words, input] of [
    [["people", "membership", id], ""],
    [
      ["oauth-clients", "token", "--client-id", client_id, "--client-secret-stdin"],
      readFileSync(at.path("client.secret")),
    ],
  ] as const) {
    const said = await at.integ([...words, "--json"], { input: String(input) });
    expect(said.code, said.stderr).toBe(0);
  }
});
