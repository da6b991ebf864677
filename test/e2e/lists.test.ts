// Lists from the command line: one page, the whole walk, the formats, and real jq at the end of a real pipe.
import { execFileSync, spawnSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Home, isOtherBinary, root } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { startService, type Service } from "../support/service.ts";
import { entity, envelope, startListServer } from "./list-server.ts";

let service: Service;
let at: Home;

beforeAll(async () => {
  service = await startService(["--entities", "1234"]);
  at = new Home(service.env);
  at.addToPath();
});

afterAll(async () => {
  at.remove();
  await service.stop();
});

/** A pipeline as a person types it, in a real shell. */
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
  it("gives one page as the API gives it, and says that more exists", async () => {
    const { code, stdout, stderr } = await at.integ(["entities", "list", "--json"]);
    const page = JSON.parse(stdout) as { object: string; data: unknown[]; next_page_token: string; has_more: boolean };
    expect(code).toBe(0);
    expect(page).toMatchObject({ object: "list", has_more: true, next_page_token: expect.stringMatching(/./) });
    expect(page.data).toHaveLength(25);
    expect(stderr).toContain("--all");
    expect(stderr).toContain(page.next_page_token);
  });

  it("goes on from a token", async () => {
    const first = JSON.parse((await at.integ(["entities", "list", "--limit", "2", "--json"])).stdout);
    const second = JSON.parse(
      (await at.integ(["entities", "list", "--limit", "2", "--page-token", first.next_page_token, "--json"])).stdout,
    );
    expect(second.data[0].id).not.toBe(first.data[0].id);
    expect(second.data).toHaveLength(2);
  });

  it("walks to the end with --all, in every format the same rows", async () => {
    const ids = shell("integ entities list --all --json | jq -r '.data[].id'").stdout.trim().split("\n");
    expect(new Set(ids).size).toBe(1234);
    expect(shell("integ entities list --all --ndjson | jq -r .id").stdout.trim().split("\n")).toEqual(ids);
    const table = shell("integ entities list --all | tail -n +2 | awk '{print $1}'").stdout.trim().split("\n");
    expect(table).toEqual(ids);
    const whole = JSON.parse(shell("integ entities list --all --json").stdout);
    expect(whole).toMatchObject({ object: "list", next_page_token: null, has_more: false });
  });

  it("is success for a reader that stops early", () => {
    const { status, stdout } = shell("integ entities list --all --ndjson | head -1 | jq -r .id");
    expect(status).toBe(0);
    expect(stdout.trim()).not.toBe("");
  });

  it("filters by type", () => {
    expect(
      shell("integ entities list --type person --limit 500 --json | jq '[.data[].type] | unique'").stdout,
    ).toContain("person");
  });

  it("retries a 503 and a dropped connection by itself", async () => {
    await service.fault("GET /v1/entities status=503 times=1");
    await service.fault("GET /v1/entities drop=before times=1 after=1");
    const ids = shell("integ entities list --all --json | jq '.data | length'");
    expect([ids.status, ids.stdout.trim()]).toEqual([0, "1234"]);
    await service.calm();
  });

  it("a walk that breaks leaves a document that does not parse, and says where to go on", async () => {
    await service.fault("GET /v1/entities status=500 after=2");
    const { code, stdout, stderr } = await at.integ([
      "entities",
      "list",
      "--all",
      "--limit",
      "100",
      "--json",
      "--retry-for",
      "0",
    ]);
    await service.calm();
    expect(code).toBe(1);
    expect(() => JSON.parse(stdout)).toThrow();
    const failure = JSON.parse(stderr.trim().split("\n").at(-1)!);
    expect(failure.error.hint).toMatch(/--page-token \S+/);
  });

  it.each(["0", "501", "-1", "1.5", "ten", ""])("refuses a limit of %j before anything is sent", async (limit) => {
    const { code, stderr } = await at.integ(["entities", "list", `--limit=${limit}`]);
    expect(code).toBe(2);
    expect(stderr).toContain("1 to 500");
  });

  it("names the parameter that the service does not accept", async () => {
    const { code, stderr } = await at.integ(["entities", "list", "--page-token", "made-up"]);
    expect(code).toBe(1);
    expect(stderr).toContain("page_token");
  });
});

describe("cohorts members", () => {
  it("takes a short page for no end", () => {
    const cohort = service.us.cohort_ids.find((id) => id.endsWith("large"))!;
    const { status, stdout } = shell(`integ cohorts members ${cohort} --all --ndjson | wc -l`);
    expect(status).toBe(0);
    expect(Number(stdout)).toBeGreaterThan(50);
  });

  it("an empty cohort is an empty list", () => {
    const { status, stdout } = shell(
      `integ cohort members ${service.us.cohort_ids.find((id) => id.endsWith("empty"))} --json | jq -c .data`,
    );
    expect([status, stdout.trim()]).toEqual([0, "[]"]);
  });

  it("an id is never a path", async () => {
    const { code } = await at.integ(["cohorts", "members", "../entities"]);
    expect([2, 4]).toContain(code);
  });
});

describe("the sandbox with nothing configured", () => {
  it.skipIf(isOtherBinary("the README's first command, which names bin/integ.js"))(
    "answers the README's first command",
    () => {
      const line = "node bin/integ.js entities list --profile sandbox --json | jq '.data[].display_name'";
      const env = { PATH: at.env.PATH, HOME: at.folder };
      const stdout = execFileSync("bash", ["-o", "pipefail", "-c", line], { cwd: root, env, encoding: "utf8" });
      expect(stdout.trim().split("\n")).toHaveLength(25);
    },
  );

  it("keeps what one command made for the next, in both regions", async () => {
    const own = new Home();
    const status = JSON.parse((await own.integ(["sandbox", "status", "--json"])).stdout);
    const words = [
      "oauth-clients",
      "create",
      "--service-account",
      status.eu.service_account_id,
      "--scope",
      "entity:read",
    ];
    const made = JSON.parse((await own.integ([...words, "-p", "sandbox-eu", "--json"])).stdout);
    expect((await own.integ(["oauth-clients", "get", made.id, "-p", "sandbox-eu"])).code).toBe(0);
    expect((await own.integ(["oauth-clients", "get", made.id, "-p", "sandbox"])).code).toBe(4);
    expect((await own.integ(["sandbox", "reset"])).code).toBe(2);
    expect((await own.integ(["sandbox", "reset", "--yes"])).code).toBe(0);
    expect((await own.integ(["oauth-clients", "get", made.id, "-p", "sandbox-eu"])).code).toBe(4);
    own.remove();
  });
});

describe("every list that is empty", () => {
  const legacy = { INTEG_ORGANIZATION_ID: "11111111-1111-4111-8111-111111111111", INTEG_ACCESS_TOKEN: "t" };
  const lists: readonly (readonly [line: string, said: string])[] = [
    ["entities list", "No entities."],
    ["entities list --all", "No entities."],
    ["cohorts members co_1", "No members."],
    ["keys list", "No keys."],
    ["people search nobody", "No people."],
    [
      "oauth-clients list",
      "No clients in this machine's journal. The API has no list of clients: those made elsewhere are not shown.",
    ],
    [
      "oauth-clients list --offline",
      "No clients in this machine's journal. The API has no list of clients: those made elsewhere are not shown.",
    ],
    ["journal list", "No changes."],
    ["journal list --all", "No changes."],
    ["journal list -p prod", "No changes of profile prod."],
    ["journal recover", "No unfinished changes."],
    ["journal verify", "No findings. The journal is sound."],
    ["keys audit", "No findings. 0 of 0 keys judged; revoked ones are left out."],
  ];

  it.each(lists)("says so in one line: integ %s", async (line, said) => {
    const server = await startListServer(() => envelope([], null));
    const home = new Home({ ...server.env, ...legacy });
    const found: Record<string, string> = {};
    for (const format of ["table", "json", "ndjson", "csv", "yaml"]) {
      const { code, stderr } = await integHere(home, [...line.split(" "), "-o", format]);
      found[format] = `${code} ${stderr}`;
    }
    await server.stop();
    home.remove();
    const isDocument = line === "keys audit";
    for (const format of ["table", "ndjson", "csv"]) expect(found[format], format).toBe(`0 note: ${said}\n`);
    for (const format of ["json", "yaml"])
      expect(found[format], format).toBe(
        isDocument ? `0 note: ${said.replace("No findings. ", "")}\n` : `0 note: ${said}\n`,
      );
  });
});

describe("--fields", () => {
  it.each([
    ["entities list --fields id,bogus", 0, 'warning: No entity has the field "bogus".\n'],
    ["entities list --fields bogus", 2, 'No entity has the field "bogus".'],
    ["entities list --fields bogus,nome --all", 2, 'No entity has the fields "bogus", "nome".'],
    ["api /v1/entities --fields data,bogus", 0, 'warning: The result has no field "bogus".\n'],
    ["api /v1/entities --fields bogus", 2, 'The result has no field "bogus".'],
    ["profiles show sandbox --fields nome", 2, 'The result has no field "nome".'],
    ["profiles list --fields nome", 2, 'No profile has the field "nome".'],
  ])("integ %s ends with %i", async (line, code, said) => {
    const server = await startListServer(() => envelope([entity(1), entity(2)], null));
    const home = new Home(server.env);
    for (const format of ["table", "json", "ndjson", "csv", "yaml"]) {
      const ended = await integHere(home, [...line.split(" "), "-o", format]);
      expect(ended.code, format).toBe(code);
      if (code === 0) expect(ended.stderr).toBe(said);
      else expect(ended.stderr.includes(said.replaceAll('"', format.includes("json") ? '\\"' : '"'))).toBe(true);
    }
    await server.stop();
    home.remove();
  });

  it("does not make a failure of what a change made", async () => {
    const home = new Home();
    const words = "oauth-clients create -p sandbox --service-account sa_us_automation --scope entity:read".split(" ");
    const { code, stderr } = await integHere(home, [...words, "--secret-file", "s", "--json", "--fields", "nome"]);
    expect([code, stderr]).toEqual([0, expect.stringContaining('warning: The result has no field "nome".')]);
    const recovered = await integHere(home, ["journal", "recover", "-p", "sandbox", "--fields", "nome"]);
    expect(recovered.code).toBe(0);
    home.remove();
  });
});
