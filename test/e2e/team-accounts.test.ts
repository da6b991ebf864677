// In a team's journal, `--profile` selects the entries of the profile's account, whatever name each machine gives the profile.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Team } from "../support/administrators.ts";
import { PostgresServer } from "../support/postgres.ts";
import type { Home } from "../support/program.ts";
import { creationWords, type Service, startService } from "../support/service.ts";
import { isMissing } from "../support/tools.mjs";

let server: PostgresServer;
let service: Service;

interface Row {
  readonly id: string;
  readonly region: string;
  readonly profile: string;
  readonly state: string;
}

async function rows(home: Home, ...words: string[]): Promise<Row[]> {
  const { stdout, stderr, code } = await home.integ(["journal", "list", "--json", ...words]);
  expect(code, stderr).toBe(0);
  return (JSON.parse(stdout) as { data: Row[] }).data;
}

const regionsIn = (selected: readonly Row[]): string[] => selected.map(({ region }) => region);

async function begin(home: Home, region: "us" | "eu"): Promise<void> {
  const body = JSON.stringify({ fault: "POST /v1/oauth_clients drop=before times=1" });
  const headers = { "content-type": "application/json" };
  expect((await fetch(service[region].control_url, { method: "POST", headers, body })).ok).toBe(true);
  const { code, stderr } = await home.integ(creationWords({ us: service[region] }, "--retry-for", "0"));
  expect(code, stderr).toBe(7);
}

describe.skipIf(isMissing("PostgreSQL"))("profiles of a team", () => {
  beforeAll(async () => {
    [server, service] = await Promise.all([PostgresServer.start(), startService()]);
  });
  afterAll(async () => {
    await service?.stop();
    await server?.remove();
  });

  it("--profile lists and recovers its account's entries, whatever the profile was called when they were requested", async () => {
    const team = await Team.of(server, service);
    const ada = await team.administrator({ name: "prod", region: "us" });
    const bob = await team.administrator({ name: "prod", region: "eu" });
    const eve = await team.administrator({ name: "prod", region: "eu" });
    await team.addProfile(eve, { name: "work", region: "us" });
    await begin(ada, "us");
    await begin(bob, "eu");

    expect(regionsIn(await rows(eve))).toEqual(["eu", "us"]);
    expect(regionsIn(await rows(eve, "-p", "prod"))).toEqual(["eu"]);
    expect(regionsIn(await rows(eve, "-p", "work", "--all"))).toEqual(["us"]);
    const status = await eve.integ(["status", "-p", "work", "--json"]);
    const topics = (JSON.parse(status.stdout) as { data: { topic: string; name: string }[] }).data;
    expect(topics.filter(({ topic }) => topic === "journal")).toHaveLength(1);

    const recovered = await eve.integ(["journal", "recover", "-p", "work", "--json"]);
    expect(recovered.code, recovered.stderr).toBe(0);
    expect(regionsIn((JSON.parse(recovered.stdout) as { data: Row[] }).data)).toEqual(["us"]);
    expect(await rows(ada, "--all")).toMatchObject([
      { region: "eu", state: "unknown" },
      { region: "us", state: "done", profile: "prod" },
    ]);
    const none = await eve.integ(["journal", "recover", "-p", "work"]);
    expect([none.code, none.stderr + none.stdout]).toEqual([0, expect.stringContaining("No unfinished changes")]);
    expect((await eve.integ(["journal", "recover", "-p", "prod"])).code).toBe(0);
  });

  it("a name that no local profile has selects the entries of that name; an unknown name is refused", async () => {
    const team = await Team.of(server, service);
    const ada = await team.administrator({ name: "prod" });
    const eve = await team.administrator({ name: "work" });
    await begin(ada, "us");
    expect(regionsIn(await rows(eve, "-p", "prod"))).toEqual(["us"]);
    for (const verb of ["list", "recover"]) {
      const mistyped = await eve.integ(["journal", verb, "-p", "prdo"]);
      expect([mistyped.code, mistyped.stderr]).toEqual([2, expect.stringContaining('Profile "prdo" not found')]);
    }
  });

  it("an empty list of clients names the team's journal", async () => {
    const eve = await (await Team.of(server, service)).administrator();
    const listed = await eve.integ(["oauth-clients", "list", "--offline"]);
    expect([listed.code, listed.stderr + listed.stdout]).toEqual([0, expect.stringContaining("the team's journal")]);
  });

  it("a runner's work without an organization is finished with its variables, which the message names", async () => {
    const team = await Team.of(server, service);
    const { base_url, api_key } = service.us;
    const runner = team.home({ INTEG_REGION: "us", INTEG_BASE_URL: base_url, INTEG_API_KEY: api_key });
    const eve = await team.administrator();
    await begin(runner, "us");
    const refused = await eve.integ(["journal", "recover", "-o", "json"]);
    const { error } = JSON.parse(refused.stderr.trim().split("\n").at(-1) ?? "") as { error: Record<string, string> };
    expect(refused.code, refused.stderr).toBe(7);
    expect(error.message).toContain(`(${base_url}, without an organization)`);
    expect(error.hint).toBe(
      `Set INTEG_BASE_URL=${base_url} INTEG_REGION=us and INTEG_API_KEY, and leave INTEG_ORGANIZATION_ID unset.`,
    );
    const variables = Object.fromEntries([...error.hint!.matchAll(/(INTEG_\w+)=(\S+)/g)].map(([, ...pair]) => pair));
    const env = { ...(variables as Record<string, string>), INTEG_API_KEY: api_key };
    const recovered = await eve.integ(["journal", "recover"], { env });
    expect(recovered.code, recovered.stderr).toBe(0);
  });

  it("a message names what this machine lacks to finish an entry, instead of a step that would fail", async () => {
    const team = await Team.of(server, service);
    const key = service.us.access_key_secret;
    const ada = await team.administrator({ key });
    const eve = await team.administrator({ name: "work", key, isWithoutBearer: true });
    await service.fault("POST /api/v1/access-keys drop=before times=1");
    const words = ["keys", "create", "--name", "k", "--secret-file", "s", "--retry-for", "0"];
    expect((await ada.integ(words)).code).toBe(7);
    const listed = await eve.integ(["journal", "list", "--json"]);
    expect(JSON.parse(listed.stdout)).toMatchObject({
      data: [{ state: "unknown", next_step: "integ help profiles edit" }],
    });
    expect(listed.stderr).toContain("Profile work");
    expect(listed.stderr).toContain("bearer token");
    const status = await eve.integ(["status", "--json"]);
    expect(status.stdout).not.toContain("integ journal recover");
    expect(JSON.stringify(await rows(ada))).toContain("integ journal recover");
  });

  it("a removed profile leaves its unfinished work to other profiles of the account", async () => {
    const ada = await (await Team.of(server, service)).administrator();
    await begin(ada, "us");
    const removed = await ada.integ(["profiles", "remove", "prod", "--yes"]);
    expect([removed.code, removed.stderr]).toEqual([0, expect.stringContaining("here or on another machine")]);
  });
});
