import { beforeAll, describe, expect, it } from "vitest";
import { homeOfFile, serviceOfFile } from "../support/service.ts";
import { Session } from "./session.ts";

const service = await serviceOfFile();
const home = homeOfFile({ ...service.env, INTEG_ACCESS_TOKEN: service.us.access_token });

beforeAll(async () => {
  const create = ["oauth-clients", "create", "--service-account", service.us.service_account_id, "--json", "--new"];
  await home.integ([...create, "--scope", "entity:read"]);
  const { stdout } = await home.integ([...create, "--scope", "organization:read"]);
  await home.integ(["oauth-clients", "revoke", (JSON.parse(stdout) as { id: string }).id, "--yes"]);
  await service.fault("POST /v1/oauth_clients status=500 times=1");
  await home.integ([...create, "--scope", "entity:read", "--retry-for", "0"]);
  await service.calm();
});

const sgr = new RegExp(`${String.fromCharCode(27)}\\[[\\d;]*m`, "g");

async function outputOf(
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
  columns = 120,
): Promise<string> {
  const session = new Session(words, { home, env, columns });
  await session.ended;
  return session.written;
}

describe("a status", () => {
  it.each([
    ["clients", ["oauth-clients", "list", "--fields", "id,status"], ["active", "revoked"]],
    ["one client's", ["oauth-clients", "list", "--offline", "--fields", "status"], ["active", "revoked"]],
    ["entries", ["journal", "list", "--all", "--fields", "id,state"], ["done", "unknown"]],
    ["one entry", ["journal", "show", "--fields", "operation,state", "LAST"], ["unknown"]],
    ["keys", ["keys", "list", "--fields", "id,status"], ["active"]],
    ["findings", ["doctor", "--fields", "check,status"], ["ok", "warning"]],
  ])("is a word, and its color adds no information: %s", async (_what, command, expected) => {
    const { stdout } = await home.integ(["journal", "list", "--json"]);
    const [last] = (JSON.parse(stdout) as { data: { id: string }[] }).data;
    // `--quiet` prevents a spinner, which could appear in between on a busy machine.
    const words = [...command.map((word) => (word === "LAST" ? last!.id : word)), "--quiet"];
    const colored = await outputOf(words);
    const plain = await outputOf(words, { NO_COLOR: "1" });
    expect(colored).toMatch(sgr);
    expect(plain).not.toMatch(sgr);
    expect(colored.replaceAll(sgr, "")).toBe(plain);
    for (const word of expected) {
      expect(plain).toMatch(new RegExp(`\\b${word}\\b`));
      // The color applies to the word itself, not to something next to it.
      expect(colored).toMatch(new RegExp(`\u001b\\[\\d+m${word} *\u001b\\[39m`));
    }
  });
});

describe("a pager", () => {
  it.each(["true", "sh -c 'exit 0'", "head -n 1"])("that ends early with 0 (%s) has succeeded", async (pager) => {
    const session = new Session(["journal", "list", "--all"], { home, env: { PAGER: pager } });
    expect(await session.ended).toBe(0);
    expect(session.shown).not.toContain("oauth_client.create");
    expect(session.shown).not.toMatch(/EPIPE|Note: The pager/);
  });
});

it("doctor without a usable profile is a table at 80 columns", async () => {
  const session = new Session(["doctor", "-p", "nobody"], { home, columns: 80 });
  expect(await session.ended).toBe(10);
  expect(session.shown).toMatch(/^STATUS +CHECK +MESSAGE/m);
  for (const line of session.shown.split(/\r?\n/)) expect(line.length, line).toBeLessThanOrEqual(80);
});

it("sandbox status at 40 columns wraps all but values and commands", async () => {
  const shown = await outputOf(["sandbox", "status"], {}, 40);
  for (const line of shown.split(/\r?\n/)) if (line.length > 40) expect(line).toMatch(/^\S{41,}$|^ {2}integ /);
});

describe("a time", () => {
  it("is relative on a terminal, and exact on a pipe", async () => {
    const words = ["entities", "list", "--limit", "3", "--quiet", "--fields", "id,created_at"];
    const { stdout } = await home.integ(words);
    expect(stdout.match(/\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z/g)).toHaveLength(3);
    const shown = await outputOf(words);
    expect(shown.match(/\d+ (year|month|day|hour)s? ago/g)).toHaveLength(3);
    expect(shown).not.toMatch(/\d{4}-\d{2}-\d{2}T/);
  });

  it("of one resource is shown in both forms", async () => {
    const { stdout } = await home.integ(["oauth-clients", "list", "--offline", "--json"]);
    const [client] = (JSON.parse(stdout) as { data: { id: string }[] }).data;
    const shown = await outputOf(["oauth-clients", "get", client!.id]);
    expect(shown).toMatch(/(just now|seconds? ago|minutes? ago) \(\d{4}-\d{2}-\d{2}T[\d:.]+Z\)/);
  });
});

describe("a long list", () => {
  const words = ["entities", "list", "--all", "--fields", "id"];

  it("goes through the pager, with messages printed after it; a pager that exits early is not an error", async () => {
    const session = new Session(words, { home, env: { PAGER: "head -2; echo paged; cat >/dev/null" } });
    expect(await session.ended).toBe(0);
    expect(session.written.match(/ent_us_\d+/g)).toHaveLength(1);
    expect(session.written).toContain("paged");
    const early = new Session(words, { home, env: { PAGER: "head -2" } });
    expect(await early.ended).toBe(0);
  });

  it.each(["false", "cat >/dev/null; exit 3"])("is printed if the pager %s fails", async (PAGER) => {
    const shown = await outputOf(words, { PAGER });
    expect(shown).toContain("Note: The pager failed: the output is printed without it.");
    expect(shown.match(/ent_us_\d+/g)!.length).toBeGreaterThan(100);
  });

  it("is printed directly without a pager, and in a pipe", async () => {
    const shown = await outputOf(words, { PAGER: "no-such-pager -x" });
    expect(shown).toContain('The pager "no-such-pager -x" is not installed');
    expect(shown.match(/ent_us_\d+/g)!.length).toBeGreaterThan(100);
    const { stdout } = await home.integ(words, { env: { PAGER: "head -2" } });
    expect(stdout.match(/ent_us_\d+/g)!.length).toBeGreaterThan(100);
  });
});
