import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { Team } from "../support/administrators.ts";
import { recordFigure } from "../support/figures.mjs";
import { PostgresServer } from "../support/postgres.ts";
import { type Ended, Home } from "../support/program.ts";
import { type Service, startService } from "../support/service.ts";
import { isMissing } from "../support/tools.mjs";

let server: PostgresServer;
let service: Service;
let account: Account;

const names = ["a", "b", "c", "d", "e"];
const words = ["apply", "--yes", "--json", "-q"];

function policyText(scopes = "entity:read", profile?: string): string {
  const items = names.map(
    (name) =>
      `  ${name}:\n    service_account: ${service.us.service_account_id}\n    scopes: [${scopes}]\n    rotate: { every: 60d, overlap: 0s }\n    secret: { file: ${name}.json, format: json }\n`,
  );
  const head = profile === undefined ? "" : `profile: ${profile}\n`;
  return `version: 1\nid: pol_of_this_test\n${head}unmanaged: ignore\noauth_clients:\n${items.join("")}`;
}

const resultsIn = ({ stdout }: Ended): string[] =>
  stdout === "" ? [] : (JSON.parse(stdout) as { data: { result: string }[] }).data.map(({ result }) => result);

/** Each item must have one active client, whose secret is in one of the homes. @returns violations */
async function faultsIn(homes: readonly Home[]): Promise<string[]> {
  const faults: string[] = [];
  const live = new Set((await account.live()).map(({ client_id }) => client_id));
  if (live.size !== names.length) faults.push(`${live.size} live clients of ${names.length} items`);
  for (const name of names) {
    const secrets = homes
      .map((home) => home.path(`${name}.json`))
      .filter((path) => existsSync(path))
      .map((path) => JSON.parse(readFileSync(path, "utf8")) as { client_id: string; client_secret: string });
    const [current, ...more] = secrets.filter(({ client_id }) => live.has(client_id));
    if (current === undefined || more.length > 0) faults.push(`${name} has ${more.length + (current ? 1 : 0)} secrets`);
    else if (!(await account.opens(current.client_id, current.client_secret))) faults.push(`${name} opens nothing`);
  }
  return faults;
}

describe.skipIf(isMissing("PostgreSQL"))("policies on a team's journal", () => {
  beforeAll(async () => {
    [server, service] = await Promise.all([PostgresServer.start(), startService()]);
    account = new Account(service);
  });
  afterAll(async () => {
    await service?.stop();
    await server?.remove();
  });
  beforeEach(() => account.clear());

  it("eight simultaneous runs create and rotate each item once", { timeout: 300_000 }, async () => {
    const team = await Team.of(server, service);
    const home = team.home({ ...service.env, INTEG_TOKEN_ENDPOINT: service.us.token_endpoint });
    const creations = (await account.creations()).length;
    for (const [round, scopes] of ["entity:read", "entity:read, organization:read"].entries()) {
      writeFileSync(home.path("integ.yaml"), policyText(scopes));
      const ends = await Promise.all(
        Array.from({ length: 8 }, () => home.spawned([...words, "--retry-for", "10s"], { timeoutMs: 120_000 })),
      );
      expect(ends.map(({ code, stderr }) => ({ code, stderr }))).toEqual(ends.map(() => ({ code: 0, stderr: "" })));
      expect((await account.creations()).length - creations).toBe((round + 1) * names.length);
      expect(await faultsIn([home])).toEqual([]);
      const results = ends.flatMap(resultsIn);
      expect(results.filter((result) => result === "done")).toHaveLength(names.length);
      expect(results.filter((result) => !["done", "elsewhere", "none"].includes(result))).toEqual([]);
    }
    expect((await home.integ(["journal", "verify"])).code).toBe(0);
    recordFigure("eight applies", { runs: 16, items: names.length, "driven twice": 0, wrong: 0 }, "a team's journal");
  });

  it.each([[undefined], ["work"]])(
    "another administrator finishes the work of the first, the policy's profile %s",
    async (profile) => {
      const team = await Team.of(server, service);
      const ada = await team.administrator();
      const eve = await team.administrator({ name: "work" });
      writeFileSync(ada.path("integ.yaml"), policyText());
      writeFileSync(eve.path("integ.yaml"), policyText("entity:read", profile));
      await service.fault("POST /v1/oauth_clients times=5 drop=after");
      expect((await ada.integ([...words, "--retry-for", "0"])).code).not.toBe(0);
      await service.calm();
      const finished = await eve.integ(words);
      expect({ code: finished.code, stderr: finished.stderr }).toEqual({ code: 0, stderr: "" });
      expect(resultsIn(finished)).toEqual(names.map(() => "done"));
      expect(await faultsIn([ada, eve])).toEqual([]);
      expect(new Set(resultsIn(await eve.integ(words)))).toEqual(new Set(["none"]));
      // Someone may use the secrets in the other machine's files, so they do not move without consent.
      const left = await ada.integ(words);
      expect(left.code, left.stderr).toBe(10);
      expect(new Set(resultsIn(left))).toEqual(new Set(["left"]));
      expect(await faultsIn([ada, eve])).toEqual([]);
    },
  );
});
