// Lists from the command line: one page, the whole walk, the formats, and real jq at the end of a real pipe.
import { execFileSync, spawnSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Home, isOtherBinary, root } from "../support/program.ts";
import { startService, type Service } from "../support/service.ts";

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
