import { createServer, type Server } from "node:http";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { Ended, Home } from "../support/program.ts";
import { creationWords, homeOfFile, homeOfTest, serviceOfFile } from "../support/service.ts";

const service = await serviceOfFile();
const at = homeOfFile({ ...service.env, INTEG_ACCESS_TOKEN: service.us.access_token });

afterEach(() => service.calm());

async function created(home: Home): Promise<string> {
  const { stdout } = await home.integ(creationWords(service, "--json", "--new"));
  return (JSON.parse(stdout) as { id: string }).id;
}

async function requests(): Promise<{ method: string; path: string }[]> {
  return ((await service.control("GET")) as { requests: { method: string; path: string }[] }).requests;
}

describe("api", () => {
  it("reads any endpoint of both contracts", async () => {
    const v1 = await at.integ(["api", "/v1/entities", "-f", "limit=2", "--json"]);
    expect(JSON.parse(v1.stdout).data).toHaveLength(2);
    const legacy = await at.integ(["api", "/api/v1/access-keys", "--json"]);
    expect(legacy.code).toBe(0);
  });

  it("builds a body from -f or --input, and says that the change is not in the journal", async () => {
    const words = ["api", "/v1/oauth_clients", "-X", "POST", "-H", "Idempotency-Key: by-hand-1"];
    writeFileSync(
      at.path("body.json"),
      JSON.stringify({ service_account_id: service.us.service_account_id, scopes: ["entity:read"] }),
    );
    const posted = await at.integ([...words, "--input", "body.json", "--json"]);
    expect(posted.code).toBe(0);
    expect(posted.stderr).toContain("not in the journal");
    const fields = ["-f", `service_account_id=${service.us.service_account_id}`, "-F", 'scopes=["entity:read"]'];
    const again = await at.integ([...words, ...fields, "--json"]);
    expect(JSON.parse(again.stdout).id).toBe(JSON.parse(posted.stdout).id);
  });

  it("--debug shows the attempt number of each exchange, and of each creation under its key", async () => {
    const tries = async (words: string[]): Promise<unknown[][]> => {
      const { code, stderr } = await at.integ([...words, "--debug", "--json"]);
      expect(code, stderr).toBe(0);
      const events = [...stderr.matchAll(/^debug: (.*)$/gm)].map(
        ([, line]) => JSON.parse(line!) as { kind: string; attempt: number; status?: number },
      );
      return events.map(({ kind, attempt, status }) => [kind, attempt, status]);
    };
    await service.fault("GET /v1/entities status=503 times=2");
    const read = await tries(["entities", "list", "--limit", "2"]);
    expect(read.filter(([kind]) => kind === "response")).toEqual([
      ["response", 1, 503],
      ["response", 2, 503],
      ["response", 3, 200],
    ]);
    await service.fault("POST /v1/oauth_clients drop=before times=1");
    const created = await tries(creationWords(service));
    expect(created).toEqual([
      ["request", 1, undefined],
      ["broken", 1, undefined],
      ["request", 2, undefined],
      ["response", 2, expect.any(Number)],
    ]);
  });

  it("--paginate gets all pages, --include shows the response headers", async () => {
    const rows = await at.integ(["api", "/v1/entities", "--paginate", "--ndjson"]);
    expect(rows.stdout.trim().split("\n")).toHaveLength(120);
    for (const [format, heading] of [
      ["table", /^ID +OBJECT +TYPE /],
      ["csv", /^id,object,type,/],
    ] as const) {
      const shown = await at.integ(["api", "/v1/entities?limit=50", "--paginate", "-o", format]);
      const [first, ...lines] = shown.stdout.trim().split("\n");
      expect(first).toMatch(heading);
      expect(lines).toHaveLength(120);
      expect(lines[119]).toContain("@example.com");
    }
    const { stdout } = await at.integ(["api", "/v1/entities?limit=1", "--include"]);
    expect(stdout).toMatch(/^HTTP 200\n/);
    expect(stdout).toMatch(/^request-id: /m);
  });

  it("a change refused by the rate limit is repeated only within --retry-for", async () => {
    await service.fault("DELETE /v1/oauth_clients/* status=429 retry-after=1 times=1");
    const words = ["api", "/v1/oauth_clients/oac_1", "-X", "DELETE"];
    expect((await at.integ(words)).code).toBe(4);
    expect((await requests()).filter(({ method }) => method === "DELETE")).toHaveLength(2);
    await service.fault("DELETE /v1/oauth_clients/* status=429 retry-after=1 times=1");
    expect((await at.integ([...words, "--retry-for", "0"])).code).toBe(6);
  });

  it("sends a change once, whatever its outcome", async () => {
    await service.fault("DELETE /v1/oauth_clients/* status=503");
    const { code } = await at.integ(["api", "/v1/oauth_clients/oac_1", "-X", "DELETE"]);
    expect(code).toBe(7);
    expect((await requests()).filter(({ method }) => method === "DELETE")).toHaveLength(1);
  });
});

describe("spec", () => {
  it("shows the published document, and finds no drift in it", async () => {
    const shown = JSON.parse((await at.integ(["spec", "show", "--json"])).stdout);
    expect(shown).toMatchObject({
      openapi: expect.stringMatching(/^3\.1/),
      info: { "x-contract-version": "2026-07-01" },
    });
    expect((await at.integ(["spec", "check"])).code).toBe(0);
    expect((await at.integ(["spec", "check", "--contract-version", "2026-07-01"])).code).toBe(0);
    expect((await at.integ(["spec", "show", "--contract-version", "1999-01-01"])).code).toBe(4);
  });

  it("compares the document of the requests' version", async () => {
    for (const verb of ["show", "check"]) {
      expect((await at.integ(["spec", verb, "--service-version", "2026-07-01"])).code).toBe(0);
      expect((await at.integ(["spec", verb, "--service-version", "2026-10-01"])).code).toBe(4);
      expect((await at.integ(["spec", verb], { env: { INTEG_SERVICE_VERSION: "2026-10-01" } })).code).toBe(4);
      const both = ["--service-version", "2026-10-01", "--contract-version", "2026-07-01"];
      const { code, stderr } = await at.integ(["spec", verb, ...both]);
      expect([code, stderr.includes("2026-10-01"), stderr.includes("2026-07-01")]).toEqual([2, true, true]);
    }
  });

  it("ends with 10 and the name if an operation, a parameter or the version is missing; an addition is not drift", async () => {
    // oxlint-disable-next-line no-explicit-any
    const published: any = JSON.parse((await at.integ(["spec", "show", "--json"])).stdout);
    const drifted = structuredClone(published);
    drifted.info["x-contract-version"] = "2027-01-01";
    delete drifted.paths["/v1/entities"];
    const { code, stdout } = await checkAgainst(drifted);
    expect(code).toBe(10);
    expect(stdout).toContain("GET /v1/entities");
    expect(stdout).toContain("2027-01-01");
    for (const [change, missingName] of [
      [
        (d: typeof published) => delete d.components.schemas.OAuthClientReceipt.properties.client_secret,
        "client_secret",
      ],
      [(d: typeof published) => (d.components.schemas.Entity.properties.id = { type: "integer" }), "data[].id"],
      [(d: typeof published) => delete d.components.securitySchemes.apiKey, "HTTP Basic"],
    ] as const) {
      const other = structuredClone(published);
      change(other);
      const drift = await checkAgainst(other);
      expect([drift.code, drift.stdout.includes(missingName)], drift.stdout).toEqual([10, true]);
    }
    const extended = structuredClone(published);
    extended.components.schemas.Entity.properties.phone = { type: "string" };
    extended.paths["/v1/groups"] = { get: { "x-lifecycle-stage": "preview", responses: { 200: { description: "" } } } };
    const added = await checkAgainst(extended);
    expect(added.code).toBe(0);
    expect(added.stdout).toContain("/v1/groups");
    expect(added.stdout).toContain("data[].phone");
  });
});

async function checkAgainst(document: unknown): Promise<Ended> {
  const server: Server = createServer((_request, response) =>
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(document)),
  );
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  const ended = await at.integ(["spec", "check", "--json"], { env: { INTEG_BASE_URL: `http://127.0.0.1:${port}` } });
  server.close();
  return ended;
}

describe("doctor", () => {
  it("reports a file in place of the state folder, and continues", async () => {
    const home = homeOfTest();
    writeFileSync(home.path("state-file"), "mine");
    const env = { INTEG_STATE_DIR: home.path("state-file") };
    const { code, stdout } = await home.integ(["doctor", "-p", "sandbox", "--json"], { env });
    const rows = (JSON.parse(stdout) as { data: { check: string; status: string; message: string; next: string }[] })
      .data;
    expect(code).toBe(10);
    expect(rows.find(({ check }) => check === "service")).toMatchObject({
      status: expect.stringMatching(/problem|warning/),
    });
    expect(rows.find(({ check }) => check === "file modes")).toMatchObject({
      status: "problem",
      message: "~/state-file is a file, not a folder",
      hint: "Set INTEG_STATE_DIR to a folder.",
    });
  });

  it("counts a common cause of many failed checks as one problem", async () => {
    const { code, stdout, stderr } = await at.integ(["doctor", "-p", "nobody", "--json"]);
    expect([code, stderr.includes("1 problem was found")]).toEqual([10, true]);
    const rows = (JSON.parse(stdout) as { data: { check: string; status: string; message: string }[] }).data;
    expect(rows.filter(({ status }) => status === "problem").map(({ check }) => check)).toEqual(["profile"]);
    const skipped = rows.filter(({ message }) => message === "not checked: profile has a problem");
    const dependent = "credential store, service, permissions, legacy contract, token endpoint, issuer, contract";
    expect(skipped.map(({ check }) => check)).toEqual(dependent.split(", "));
    const table = (await at.integ(["doctor", "-p", "nobody"])).stdout;
    expect(table.match(/profile has a problem/g)).toHaveLength(1);
    expect(table).toContain(" credential store, service, permissions, ");
  });

  it.each([
    ["no profile", []],
    ["a profile that is not found", ["-p", "nobody"]],
  ])("%s: the other rows refer to the one with the next step", async (_what, words) => {
    const bare = { INTEG_CONFIG_DIR: at.path("bare-config"), INTEG_STATE_DIR: at.path("bare-state") };
    const none = { INTEG_REGION: "", INTEG_BASE_URL: "", INTEG_API_KEY: "", INTEG_PROFILE: "", INTEG_ACCESS_TOKEN: "" };
    const { code, stdout } = await at.integ(["doctor", ...words, "--json"], { env: { ...bare, ...none } });
    const rows = (JSON.parse(stdout) as { data: { message: string; hint: string | null; next: string | null }[] }).data;
    const isOther = ({ message }: { message: string }): boolean => message === "not checked: profile has a problem";
    expect([code, rows.filter((row) => !isOther(row) && (row.hint ?? row.next) !== null).length]).toEqual([10, 1]);
    if (words.length === 0) expect(rows[0]!.message).toContain("add --profile sandbox to the command");
    const others = rows.filter(isOther).map(({ hint, next }) => `${hint} ${next}`);
    expect(others).toEqual(Array(7).fill('Correct the failed check "profile" first. null'));
  });

  it("finds no problem, and its output is safe to paste", async () => {
    const { code, stdout } = await at.integ(["doctor", "--json"]);
    expect(code).toBe(0);
    const rows = JSON.parse(stdout).data as { check: string; status: string }[];
    expect(rows.filter(({ status }) => status === "problem")).toEqual([]);
    for (const check of "profile,address,service,clock,contract,journal,unfinished changes,file modes".split(","))
      expect(rows.map((row) => row.check)).toContain(check);
    expect(stdout).not.toContain(service.us.api_key);
  });

  interface Row {
    readonly profile?: string | null;
    readonly check: string;
    readonly status: string;
    readonly message: string;
    readonly next: string | null;
    readonly hint: string | null;
  }

  async function diagnosis(
    words: string[] = [],
    env: Record<string, string> = {},
  ): Promise<{ code: number | null; rows: Row[] }> {
    const own = homeOfTest(at.env);
    const folders = { INTEG_STATE_DIR: own.path("state"), INTEG_CONFIG_DIR: own.path("config") };
    const { code, stdout } = await own.integ(["doctor", "--json", ...words], { env: { ...env, ...folders } });
    const { data: rows }: { data: Row[] } = JSON.parse(stdout);
    for (const { check, status, next, hint } of rows) {
      if (status !== "ok") expect(next ?? hint, check).toBeTruthy();
      // Without INTEG_BASE_URL, there is no profile `env` to show.
      expect(next ?? "", check).not.toMatch(/integ doctor|profiles show env/);
    }
    return { code, rows };
  }

  const read = "permission entity:read";
  const manage = "permission service_account:manage";
  const manageRow = async (own: Home): Promise<Row | undefined> => {
    const { data }: { data: Row[] } = JSON.parse((await own.integ(["doctor", "--json"])).stdout);
    return data.find(({ check }) => check === manage);
  };
  it.each<[string, string[], Record<string, string>, number, Record<string, string>]>([
    ["every permission", [], {}, 0, { service: "ok", [read]: "ok", [manage]: "ok", "legacy contract": "ok" }],
    ["a key that may not read", ["GET /v1/entities status=403"], {}, 0, { [read]: "warning", [manage]: "ok" }],
    ["a key that reads only", ["GET /v1/oauth_clients/* status=403"], {}, 0, { [read]: "ok", [manage]: "warning" }],
    [
      "a key without permissions",
      ["GET /v1/entities status=403", "GET /v1/oauth_clients/* status=403"],
      {},
      10,
      { service: "ok", [read]: "problem", [manage]: "problem", contract: "ok" },
    ],
    [
      "a rejected credential",
      ["GET /v1/entities status=401"],
      {},
      10,
      { service: "problem", permissions: "warning", contract: "ok" },
    ],
    ["an invalid bearer token", [], { INTEG_ACCESS_TOKEN: "nobody" }, 10, { "legacy contract": "problem" }],
    [
      "another organization's id",
      [],
      { INTEG_ORGANIZATION_ID: "00000000-0000-4000-8000-000000000000" },
      10,
      { service: "ok", "legacy contract": "problem" },
    ],
    ["no bearer token", [], { INTEG_ACCESS_TOKEN: "" }, 0, { "legacy contract": "warning" }],
    ["no organization id", [], { INTEG_ORGANIZATION_ID: "" }, 0, { organization: "warning" }],
    ["a token endpoint", [], { INTEG_TOKEN_ENDPOINT: "{token}" }, 0, { "token endpoint": "ok" }],
    [
      "no token endpoint there",
      [],
      { INTEG_TOKEN_ENDPOINT: "{base}/v1/entities" },
      10,
      { "token endpoint": "problem" },
    ],
    [
      "OAuth client credentials",
      [],
      { INTEG_API_KEY: "", INTEG_CLIENT_ID: "c", INTEG_CLIENT_SECRET: "s", INTEG_TOKEN_ENDPOINT: "{token}" },
      10,
      { service: "problem", "token endpoint": "problem", contract: "ok" },
    ],
  ])("%s: each permission is checked separately", async (_what, faults, env, exit, expected) => {
    for (const fault of faults) await service.fault(fault);
    const filled = Object.entries(env).map(([name, value]) => [
      name,
      value.replace("{base}", service.us.base_url).replace("{token}", service.us.token_endpoint),
    ]);
    const { code, rows } = await diagnosis([], Object.fromEntries(filled));
    const seen = Object.fromEntries(
      Object.keys(expected).map((check) => [check, rows.find((row) => row.check === check)?.status]),
    );
    expect([seen, code], JSON.stringify(rows)).toEqual([expected, exit]);
  });

  it("a missing permission is a problem if a change of the profile needed it", async () => {
    const own = homeOfTest(service.env);
    await own.integ(creationWords(service, "--json"));
    await service.fault("GET /v1/oauth_clients/* status=403");
    expect((await own.integ(["doctor", "--json"])).code).toBe(10);
    expect(await manageRow(own)).toMatchObject({ status: "problem" });
  });

  it("explains what 404 leaves open, and checks a client that integ created if there is one", async () => {
    const own = homeOfTest(service.env);
    expect(await manageRow(own)).toMatchObject({
      status: "ok",
      message: expect.stringContaining("it is not known whether OAuth access is enabled"),
    });
    await own.integ(creationWords(service, "--json"));
    expect(await manageRow(own)).toMatchObject({ status: "ok", message: "granted" });
    await service.control("POST", "/organization", { oauth_enabled: false });
    expect(await manageRow(own)).toMatchObject({
      status: "warning",
      message: expect.stringMatching(/^not known: the service does not find client oac_\w+ of the journal/),
      hint: expect.stringContaining("OAuth access"),
    });
    await service.control("POST", "/organization", { oauth_enabled: true });
  });

  it("checks the newest client that is not revoked", async () => {
    const own = homeOfTest(service.env);
    const [old, last] = [await created(own), await created(own)];
    await service.fault(`GET /v1/oauth_clients/${old} status=404`);
    expect(await manageRow(own)).toMatchObject({ status: "ok", message: "granted" });
    expect((await own.integ(["oauth-clients", "revoke", last, "--yes"])).code).toBe(0);
    expect(await manageRow(own)).toMatchObject({
      status: "warning",
      message: expect.stringContaining(`client ${old} of`),
    });
  });

  it("sends one request and waits 5 s at most: for a closed port and a silent server", async () => {
    const silent = createServer(() => {});
    await new Promise<void>((done) => silent.listen(0, "127.0.0.1", done));
    const { port } = silent.address() as AddressInfo;
    for (const [address, limitMs] of [
      ["http://127.0.0.1:1", 5000],
      [`http://127.0.0.1:${port}`, 10_000],
    ] as const) {
      const began = Date.now();
      const { code, rows } = await diagnosis([], { INTEG_BASE_URL: address });
      expect([code, rows.filter(({ status }) => status === "problem").map(({ check }) => check)]).toEqual([
        10,
        ["service"],
      ]);
      expect(Date.now() - began).toBeLessThan(limitMs);
    }
    silent.closeAllConnections();
    silent.close();
  });

  it("--all-profiles: checks each stored profile, and the machine once", async () => {
    const own = homeOfTest();
    for (const [name, region] of [
      ["one", service.us],
      ["two", service.eu],
    ] as const) {
      const where = ["--region", name === "one" ? "us" : "eu", "--base-url", region.base_url];
      await own.integ(["profiles", "add", name, "--no-verify", ...where, "--api-key-stdin"], {
        input: service.us.api_key,
      });
    }
    const { code, stdout } = await own.integ(["doctor", "--all-profiles", "--json"]);
    const { data }: { data: Row[] } = JSON.parse(stdout);
    const both = await own.integ(["doctor", "--all-profiles", "-p", "one"]);
    expect([code, both.code]).toEqual([10, 2]);
    expect(stdout).not.toContain("chosen by");
    const services = data.filter(({ check }) => check === "service");
    expect(services.map(({ profile, status }) => [profile, status])).toEqual([
      ["one", "ok"],
      ["two", "problem"],
    ]);
    expect(services[1]!.next).toContain("integ profiles edit two --api-key-stdin");
    expect(data.filter(({ check }) => check === "journal").map(({ profile }) => profile)).toEqual([null]);
  });

  it("shows no path of the user's home, and its commands work unchanged", async () => {
    const own = homeOfTest(service.env);
    mkdirSync(own.path("state"));
    chmodSync(own.path("state"), 0o755);
    writeFileSync(own.path("state", "journal.ndjson"), "no journal\n".repeat(2));
    const { code, stdout } = await own.integ(["doctor", "--json"]);
    expect(code).toBe(10);
    expect(stdout).not.toContain(own.folder);
    const rows = JSON.parse(stdout).data as { check: string; message: string; next: string }[];
    expect(rows.find(({ check }) => check === "journal")?.message).toContain("~/state/journal.ndjson");
    const { next } = rows.find(({ check, message }) => check === "file modes" && message.includes("~/state"))!;
    expect(spawnSync("sh", ["-c", next], { env: own.env }).status).toBe(0);
    expect(statSync(own.path("state")).mode & 0o777).toBe(0o700);
  });

  it("reports a secret without a profile, left by a crash, and its removal; one that is being saved is ignored", async () => {
    const own = homeOfTest();
    const words = ["profiles", "add", "p", "--region", "us", "--base-url", service.us.base_url, "--api-key-stdin"];
    expect((await own.integ(words, { input: service.us.api_key })).code).toBe(0);
    const [named] = readdirSync(own.path("config", "credentials"));
    const stray = own.path("config", "credentials", "it's stray.json");
    writeFileSync(stray, "{}", { mode: 0o600 });
    const kept = async (): Promise<{ status: string; next: string | null }> => {
      const { code, stdout } = await own.integ(["doctor", "--json"]);
      expect(code).toBe(0);
      return JSON.parse(stdout).data.find(({ check }: { check: string }) => check === "stored secrets");
    };
    expect(await kept()).toMatchObject({ status: "ok" });
    for (const file of [stray, own.path("config", "credentials", named!)]) utimesSync(file, 1, 1);
    const { status, next } = await kept();
    expect(status).toBe("warning");
    expect(spawnSync("sh", ["-c", next!], { env: own.env }).status).toBe(0);
    expect(readdirSync(own.path("config", "credentials"))).toEqual([named]);
    expect(await kept()).toMatchObject({ status: "ok", next: null });
  });

  it("names a revoked credential, unfinished work and open folders, each with a next step", async () => {
    const own = homeOfTest(service.env);
    await service.fault("POST /v1/oauth_clients drop=after times=1");
    await own.integ(creationWords(service, "--retry-for", "0", "--secret-file", "s"));
    chmodSync(own.path("state"), 0o755);
    const { code, stdout } = await own.integ(["doctor", "--json"], {
      env: { INTEG_API_KEY: service.us.revoked_api_key },
    });
    expect(code).toBe(10);
    const rows = JSON.parse(stdout).data as {
      check: string;
      status: string;
      message: string;
      next: string | null;
      hint: string | null;
    }[];
    const statusOf = (check: string): string | undefined => rows.find((row) => row.check === check)?.status;
    expect([statusOf("service"), statusOf("unfinished changes"), statusOf("file modes")]).toEqual([
      "problem",
      "warning",
      "problem",
    ]);
    for (const row of rows.filter(({ status }) => status !== "ok"))
      expect(row.next ?? row.hint, row.check).not.toBe(null);
  });
});
