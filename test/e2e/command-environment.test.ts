import { readFileSync, writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { Home } from "../support/program.ts";
import { creationWords, homeOfTest, serviceOfFile } from "../support/service.ts";

const service = await serviceOfFile();
/** A job's secrets, which its commands must not get unless the job names them. */
const secrets = { PGPASSWORD: "canary-pg", VAULT_TOKEN: "canary-vault", AWS_SECRET_ACCESS_KEY: "canary-aws" };

function home(env: Readonly<Record<string, string>> = {}): Home {
  return homeOfTest({ ...secrets, GH_TOKEN: "named", INTEG_COMMAND_ENV: "GH_TOKEN", ...env });
}

const recording = (at: Home, work: string): string => `env >> '${at.path("seen")}'; ${work}`;

function expectListedVariables(at: Home, commands: number): void {
  const seen = readFileSync(at.path("seen"), "utf8");
  expect(seen).not.toMatch(/canary|^INTEG_API_KEY=|^INTEG_ACCESS_TOKEN=/m);
  expect(seen.match(/^GH_TOKEN=named$/gm)).toHaveLength(commands);
}

const client = (): string[] => creationWords(service);

it("a secret command and its check get only the variables that the job names", async () => {
  const at = home(service.env);
  const to = ["--secret-command", recording(at, "cat > stored"), "--secret-check-command", recording(at, "cat stored")];
  const created = await at.integ([...client(), ...to]);
  expect(created.code, created.stderr).toBe(0);
  // The check command also runs before the request and before the delivery.
  expectListedVariables(at, 4);
  expect(readFileSync(at.path("seen"), "utf8")).toMatch(/^INTEG_RESOURCE_ID=oac_/m);
});

it("a command of a policy gets only the variables that the job names", async () => {
  const at = home({ ...service.env, INTEG_TOKEN_ENDPOINT: service.us.token_endpoint });
  const item = `  a:\n    service_account: ${service.us.service_account_id}\n    scopes: [entity:read]\n    secret: { command: ${JSON.stringify(recording(at, "cat > stored"))} }\n`;
  writeFileSync(at.path("integ.yaml"), `version: 1\nid: pol_of_this_test\nunmanaged: ignore\noauth_clients:\n${item}`);
  const applied = await at.integ(["apply", "--yes"]);
  expect(applied.code, applied.stderr).toBe(0);
  expectListedVariables(at, 1);
});

it("the commands of a profile get only the variables that the job names", async () => {
  const { base_url, organization_id, api_key, access_token } = service.us;
  const at = home();
  const address = ["--region", "us", "--base-url", base_url, "--organization-id", organization_id];
  const key = ["--api-key-command", recording(at, `echo ${api_key}`)];
  const token = ["--access-token-command", recording(at, `cat >/dev/null; echo ${access_token}`)];
  const added = await at.integ(["profiles", "add", "p", "--no-verify", ...address, ...key, ...token]);
  expect(added.code, added.stderr).toBe(0);
  for (const words of [
    ["entities", "list"],
    ["keys", "list"],
  ]) {
    const listed = await at.integ([...words, "-p", "p"]);
    expect(listed.code, listed.stderr).toBe(0);
  }
  // For `keys list` two commands run: one prints the API key, the other exchanges it for a bearer token.
  expectListedVariables(at, 3);
});

it("an invalid variable name is reported before anything is sent", async () => {
  const at = home({ ...service.env, INTEG_COMMAND_ENV: "INTEG_API_KEY" });
  const created = await at.integ([...client(), "--secret-command", "cat > stored"]);
  expect([created.code, created.stderr]).toEqual([2, expect.stringContaining("Invalid INTEG_COMMAND_ENV")]);
  expect((await at.integ(["journal", "list", "--all", "--ndjson"])).stdout).toBe("");
});
