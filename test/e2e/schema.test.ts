import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { outputs } from "../../src/commands/schema/outputs.ts";
import { outputFaults, seen } from "../support/check-output.ts";
import { Home } from "../support/program.ts";
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
    expect(outputFaults([...words, "--json"], at.env, { said })).toEqual([]);
  }
});

it("describes each command that integ commands prints", async () => {
  const at = home();
  expect((await at.integ(["schema", "command"])).code).toBe(0);
  for (const format of ["--json", "--ndjson"]) {
    const name = format === "--json" ? "commands" : "command";
    const before = seen.get(name) ?? 0;
    const said = await at.integ(["commands", format]);
    expect(outputFaults(["commands", format], at.env, { said })).toEqual([]);
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
      expect(outputFaults([...words, format], at.env, { said, isService: true }), words.join(" ")).toEqual([]);
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
    expect(outputFaults([...words, "--json"], at.env, { said, isService: true }), words.join(" ")).toEqual([]);
  }
});
