import { execFileSync, spawnSync } from "node:child_process";
import { beforeAll, describe, expect, it } from "vitest";
import { isOtherBinary, root } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { creationWords, homeOfFile, homeOfTest, serviceOfFile } from "../support/service.ts";
import { entity, envelope, startListServer } from "./list-server.ts";

const service = await serviceOfFile(["--entities", "1234"]);
const at = homeOfFile(service.env);

beforeAll(async () => {
  at.addToPath();
});

function shell(line: string): { status: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync("bash", ["-o", "pipefail", "-c", line], {
    cwd: at.folder,
    env: at.env,
    encoding: "utf8",
    maxBuffer: 1 << 28,
  });
  return { status, stdout, stderr };
}

describe("entities list", () => {
  it("prints one page unchanged, and reports that more exists", async () => {
    const { code, stdout, stderr } = await at.integ(["entities", "list", "--json"]);
    const page = JSON.parse(stdout) as { object: string; data: unknown[]; next_page_token: string; has_more: boolean };
    expect(code).toBe(0);
    expect(page).toMatchObject({ object: "list", has_more: true, next_page_token: expect.stringMatching(/./) });
    expect(page.data).toHaveLength(25);
    expect(stderr).toMatch(/^Warning: This is one page, 25 entities\. More exist: --all fetches every page/);
    expect(stderr).toContain(page.next_page_token);
  });

  it("continues from a token", async () => {
    const first = JSON.parse((await at.integ(["entities", "list", "--limit", "2", "--json"])).stdout);
    const second = JSON.parse(
      (await at.integ(["entities", "list", "--limit", "2", "--page-token", first.next_page_token, "--json"])).stdout,
    );
    expect(second.data[0].id).not.toBe(first.data[0].id);
    expect(second.data).toHaveLength(2);
  });

  it("--all prints the same rows in every format", async () => {
    const all = (...more: string[]) => at.integ(["entities", "list", "--all", ...more]);
    const whole = JSON.parse((await all("--json")).stdout) as { data: { id: string }[] };
    const ids = whole.data.map(({ id }) => id);
    expect(new Set(ids).size).toBe(1234);
    expect(shell("integ entities list --all --ndjson | jq -r .id").stdout.trim().split("\n")).toEqual(ids);
    const [, ...rows] = (await all("-o", "table")).stdout.trim().split("\n");
    expect(rows.map((row) => row.split(" ")[0])).toEqual(ids);
    expect(whole).toMatchObject({ object: "list", next_page_token: null, has_more: false });
  });

  it("succeeds if its reader stops early", () => {
    const { status, stdout } = shell("integ entities list --all --ndjson | head -1 | jq -r .id");
    expect(status).toBe(0);
    expect(stdout.trim()).not.toBe("");
  });

  it("filters by type", () => {
    expect(
      shell("integ entities list --type person --limit 500 --json | jq '[.data[].type] | unique'").stdout,
    ).toContain("person");
  });

  it("retries a 503 and a dropped connection automatically", async () => {
    await service.fault("GET /v1/entities status=503 times=1");
    await service.fault("GET /v1/entities drop=before times=1 after=1");
    const ids = shell("integ entities list --all --json | jq '.data | length'");
    expect([ids.status, ids.stdout.trim()]).toEqual([0, "1234"]);
    await service.calm();
  });

  it.each(["0", "501", "-1", "1.5", "ten", ""])("refuses a limit of %j before anything is sent", async (limit) => {
    const { code, stderr } = await at.integ(["entities", "list", `--limit=${limit}`]);
    expect(code).toBe(2);
    expect(stderr).toContain("1 to 500");
  });
});

describe("cohorts members", () => {
  it("continues after a short page", () => {
    const cohort = service.us.cohort_ids.find((id) => id.endsWith("large"))!;
    const { status, stdout } = shell(`integ cohorts members ${cohort} --all --ndjson | wc -l`);
    expect(status).toBe(0);
    expect(Number(stdout)).toBeGreaterThan(50);
  });

  it("never treats an id as a path", async () => {
    const { code } = await at.integ(["cohorts", "members", "../entities"]);
    expect([2, 4]).toContain(code);
  });
});

describe("the sandbox with nothing configured", () => {
  it.skipIf(isOtherBinary("the README's first command, which names bin/integ.js"))(
    "runs the README's first command",
    () => {
      const line = "node bin/integ.js entities list --profile sandbox --json | jq '.data[].display_name'";
      const env = { PATH: at.env.PATH, HOME: at.folder };
      const stdout = execFileSync("bash", ["-o", "pipefail", "-c", line], { cwd: root, env, encoding: "utf8" });
      expect(stdout.trim().split("\n")).toHaveLength(25);
    },
  );

  it("keeps one command's objects for the next, in both regions", async () => {
    const own = homeOfTest();
    const { eu } = JSON.parse((await own.integ(["sandbox", "status", "--json"])).stdout);
    const words = creationWords({ us: eu }, "-p", "sandbox-eu", "--json");
    const created = JSON.parse((await own.integ(words)).stdout);
    expect((await own.integ(["oauth-clients", "get", created.id, "-p", "sandbox-eu"])).code).toBe(0);
    expect((await own.integ(["oauth-clients", "get", created.id, "-p", "sandbox"])).code).toBe(4);
    expect((await own.integ(["sandbox", "reset"])).code).toBe(2);
    expect((await own.integ(["sandbox", "reset", "--yes"])).code).toBe(0);
    expect((await own.integ(["oauth-clients", "get", created.id, "-p", "sandbox-eu"])).code).toBe(4);
  });
});

describe("every empty list", () => {
  const legacy = { INTEG_ORGANIZATION_ID: "11111111-1111-4111-8111-111111111111", INTEG_ACCESS_TOKEN: "t" };
  const lists: readonly (readonly [line: string, message: string])[] = [
    ["entities list", "No entities."],
    ["entities list --all", "No entities."],
    ["cohorts members co_1", "No members."],
    ["keys list", "No keys."],
    ["people search absent", "No people."],
    [
      "oauth-clients list",
      "No clients of this account in this machine's journal. The API has no list of clients: clients created elsewhere are not shown.",
    ],
    [
      "oauth-clients list --offline",
      "No clients of this account in this machine's journal. The API has no list of clients: clients created elsewhere are not shown.",
    ],
    ["journal list", "No changes."],
    ["journal list --all", "No changes."],
    ["journal list -p sandbox", "No changes of profile sandbox."],
    ["journal recover", "No unfinished changes."],
    ["journal verify", "No findings. The journal is sound."],
    ["keys audit", "No findings. Audited 0 of 0 keys; revoked keys are not audited."],
  ];

  it.each(lists)("is reported in one line: integ %s", async (line, message) => {
    const server = await startListServer(() => envelope([], null));
    const home = homeOfTest({ ...server.env, ...legacy });
    const messages: Record<string, string> = {};
    for (const format of ["table", "json", "ndjson", "csv", "yaml"]) {
      const { code, stderr } = await integHere(home, [...line.split(" "), "-o", format]);
      messages[format] = `${code} ${stderr}`;
    }
    await server.stop();
    const isDocument = line === "keys audit";
    for (const format of ["table", "ndjson", "csv"]) expect(messages[format], format).toBe(`0 Note: ${message}\n`);
    for (const format of ["json", "yaml"])
      expect(messages[format], format).toBe(
        isDocument ? `0 Note: ${message.replace("No findings. ", "")}\n` : `0 Note: ${message}\n`,
      );
  });
});

describe("an array from integ api", () => {
  const rows = '[{"id":"a","n":12345678901234567890},{"id":"b","n":1.10}]';
  it.each([
    ["-o json", rows],
    ["-o ndjson", '{"id":"a","n":12345678901234567890}\n{"id":"b","n":1.10}'],
    ["-o csv", "id,n\r\na,12345678901234567890\r\nb,1.10"],
    ["-o table", "ID  N\na   12345678901234567890\nb   1.10"],
    ["-o json --fields n", '[{"n":12345678901234567890},{"n":1.10}]'],
    ["-o ndjson --fields n,id", '{"n":12345678901234567890,"id":"a"}\n{"n":1.10,"id":"b"}'],
    ["-o csv --fields n", "n\r\n12345678901234567890\r\n1.10"],
    ["-o table --fields id", "ID\na\nb"],
    ["", rows],
  ])("has the requested format and fields: %s", async (options, expected) => {
    const server = await startListServer(() => rows);
    const home = homeOfTest(server.env);
    const { code, stdout, stderr } = await integHere(home, ["api", "/v1/x", ...options.split(" ").filter(Boolean)]);
    await server.stop();
    expect([code, stdout.trimEnd(), stderr]).toEqual([0, expected, ""]);
  });
});

describe("--debug", () => {
  it("shows the scheme of a credential, and never the credential", async () => {
    const home = homeOfTest({ ...service.env, INTEG_ACCESS_TOKEN: "canary-token", INTEG_API_KEY: "canary-key" });
    const basic = await integHere(home, ["entities", "list", "--debug"]);
    const bearer = await integHere(home, ["keys", "list", "--debug"]);
    expect(basic.stderr).toContain('"authorization":"Basic <redacted>"');
    expect(bearer.stderr).toContain('"authorization":"Bearer <redacted>"');
    for (const secret of ["canary-key", "canary-token", Buffer.from("apikey:canary-key").toString("base64")])
      expect(basic.stderr + bearer.stderr).not.toContain(secret);
  });
});

describe("files of integ itself", () => {
  it.each([
    "state/journal.ndjson",
    "state/journal.ndjson.damaged-1-abc",
    "state/undelivered/x",
    "state/sandbox.json",
    "config/profiles.json",
    "config/credentials",
    "config/keychain.json",
  ])("are never overwritten by an export or a secret: %s", async (path) => {
    const home = homeOfTest();
    const list = ["entities", "list", "-p", "sandbox", "--out", path, "-o", "ndjson", "--force"];
    const client = "oauth-clients create -p sandbox --service-account sa_us_automation --scope entity:read".split(" ");
    for (const words of [list, [...client, "--secret-file", path, "--force"]]) {
      const { code, stderr } = await integHere(home, words);
      expect([code, stderr], words.join(" ")).toEqual([2, expect.stringContaining("integ keeps its own files")]);
    }
  });
});

describe("--fields", () => {
  it.each([
    ["entities list --fields id,bogus", 2, 'No entity has the field "bogus".'],
    ["entities list --fields id,emial", 2, 'Did you mean "email"?'],
    ["entities list --fields id,object,name", 0, ""],
    ["entities list --type none --fields id,bogus", 2, 'No entity has the field "bogus".'],
    ["journal list --fields id,bogus", 2, 'No entry has the field "bogus".'],
    ["journal list --fields id,idempotency_key,parent,holder.user", 0, "Note: No changes.\n"],
    ["oauth-clients list --offline --fields id,statsu", 2, 'Did you mean "status"?'],
    ["entities list --fields bogus", 2, 'No entity has the field "bogus".'],
    ["entities list --fields bogus,nome --all", 2, 'No entity has the fields "bogus", "nome".'],
    ["api /v1/entities --fields data,bogus", 2, 'The result has no field "bogus".'],
    ["api /v1/entities --paginate --fields id,bogus", 2, 'No row has the field "bogus".'],
    ["sandbox status --fields us,bogus", 2, 'The result has no field "bogus".'],
    ["commands --fields exit_codes,bogus", 2, "bogus"],
    ["api /v1/entities --fields bogus", 2, 'The result has no field "bogus".'],
    ["profiles show sandbox --fields nome", 2, 'The result has no field "nome".'],
    ["profiles list --fields nome", 2, 'No profile has the field "nome".'],
  ])("integ %s ends with %i", async (line, code, message) => {
    const server = await startListServer(() => envelope([entity(1), entity(2)], null));
    const home = homeOfTest(server.env);
    for (const format of ["table", "json", "ndjson", "csv", "yaml"]) {
      const ended = await integHere(home, [...line.split(" "), "-o", format]);
      expect(ended.code, format).toBe(code);
      if (code === 2) expect(ended.stdout, format).toBe("");
      if (code === 0) expect(ended.stderr).toBe(message);
      else expect(ended.stderr.includes(message.replaceAll('"', format.includes("json") ? '\\"' : '"'))).toBe(true);
    }
    await server.stop();
  });

  it("accepts a column's title, and a field's name with underscores", async () => {
    const server = await startListServer(() => envelope([entity(1)], null));
    const home = homeOfTest(server.env);
    const printed = async (fields: string, format: string): Promise<string> =>
      (await integHere(home, ["entities", "list", "--fields", fields, "-o", format])).stdout;
    const { display_name, created_at } = JSON.parse(entity(1)) as Record<string, string>;
    expect(JSON.parse(await printed("name,created", "ndjson"))).toEqual({ name: display_name, created: created_at });
    expect(await printed("name,Created", "csv")).toBe(`name,Created\r\n"${display_name}",${created_at}\r\n`);
    expect(await printed("name", "table")).toContain(display_name);
    await server.stop();
    const words = ["keys", "list", "-p", "sandbox", "--fields", "expires_at,last used", "--json"];
    const keys = await integHere(homeOfTest(), words);
    const [{ expires_at }] = (JSON.parse(keys.stdout) as { data: [Record<string, unknown>] }).data;
    expect([keys.code, expires_at]).toEqual([0, expect.stringMatching(/^\d{4}-/)]);
  });

  it("refuses an unknown field of a change before it sends anything", async () => {
    const home = homeOfTest();
    const words = "oauth-clients create -p sandbox --service-account sa_us_automation --scope entity:read".split(" ");
    const { code, stderr } = await integHere(home, [...words, "--secret-file", "s", "--fields", "nome"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining('The result has no field "nome".')]);
    const recovered = await integHere(home, ["journal", "recover", "-p", "sandbox", "--fields", "nome"]);
    expect([recovered.code, recovered.stderr]).toEqual([0, expect.stringContaining("No unfinished changes")]);
  });
});
