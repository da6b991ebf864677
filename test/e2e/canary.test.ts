import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { readJournal } from "../support/journal-file.ts";
import { type Ended, type Home, isOtherBinary } from "../support/program.ts";
import type { Exchange, HostileResponse } from "../support/recording-relay.ts";
import { creationWords } from "../support/service.ts";
import { killedAt } from "../support/strace.ts";
import { type Allowed, canariesOfTests, type CanaryWorld } from "./canary-world.ts";
import { isFull } from "../support/sample.ts";
import { isMissing } from "../support/tools.mjs";

const tests = canariesOfTests();
let world: CanaryWorld;
beforeAll(() => {
  ({ world } = tests);
});

async function ends(code: number, home: Home, words: readonly string[], allowed: Allowed = {}): Promise<Ended> {
  const ended = await world.run(home, words, allowed);
  expect(ended.code, `integ ${words.join(" ")}\n${ended.stderr}`).toBe(code);
  return ended;
}

function createWords(...more: string[]): string[] {
  return creationWords(world.service, "--json", ...more);
}

function undeliveredIn(home: Home): string {
  return readJournal(home.path("state", "journal.ndjson")).findLast(({ state }) => state === "undelivered")!.id;
}

const files = [
  ["raw", "out/raw"],
  ["json", "out/json"],
  ["env", "out/env"],
] as const;

describe("canary secrets of OAuth clients", () => {
  it("reach each destination in each format, and no other place", async () => {
    const home = world.home(world.env);
    await ends(0, home, createWords(), { stdout: ["client secret"] });
    await ends(0, home, createWords(), { stdout: ["client secret"], env: { GITHUB_ACTIONS: "true" } });
    for (const [format, file] of files) {
      await ends(0, home, createWords("--secret-file", file, "--secret-format", format));
      const taker = world.spy(
        "taker",
        `umask 077; tee '${home.path(`${file}.taken`)}'; cat '${home.path(`${file}.taken`)}' >&2`,
      );
      await ends(0, home, createWords("--secret-command", taker, "--secret-format", format));
    }
    await ends(
      0,
      home,
      ["profiles", "add", "target", ...world.address, "--token-endpoint", endpoint(), "--api-key-stdin"],
      {
        input: world.service.us.second_api_key,
      },
    );
    await ends(0, home, createWords("--secret-profile", "target"));
    await ends(0, home, ["oauth-clients", "token", "--from-profile", "-p", "target", "--json"], {
      stdout: ["bearer token"],
    });
    await ends(0, home, ["entities", "list", "-p", "target"]);
    await ends(0, home, ["profiles", "show", "target", "--json"]);
  });

  it("stay kept after the destination fails, until they are claimed", async () => {
    const home = world.home(world.env);
    const broken = world.spy("broken", "cat >&2; echo no >&2; exit 3");
    for (const to of [["--secret-file", "out/claimed"], ["--secret-command", "cat > /dev/null"], []]) {
      await ends(12, home, createWords("--secret-command", broken, "--new"));
      const entry = undeliveredIn(home);
      await ends(0, home, ["journal", "show", entry, "--json"]);
      await ends(12, home, ["journal", "recover", entry]);
      await ends(0, home, ["journal", "claim", entry, ...to], { stdout: to.length === 0 ? ["client secret"] : [] });
    }
    expect(world.leftovers(home)).toEqual([]);
  });

  it("leave no trace when they are lost, replaced, recovered and rotated", async () => {
    const home = world.home(world.env);
    await world.service.fault("POST /v1/oauth_clients drop=after times=1");
    await ends(9, home, createWords("--secret-file", "out/a"));
    await ends(0, home, ["journal", "recover", "--replace-lost-secret", "--json"]);
    await world.service.fault("POST /v1/oauth_clients secret=withheld times=1");
    const created = await ends(0, home, createWords("--secret-file", "out/b", "--replace-lost-secret"));
    await world.service.fault("POST /v1/oauth_clients drop=before times=1");
    await ends(7, home, createWords("--secret-file", "out/c", "--retry-for", "0"));
    await ends(0, home, ["journal", "recover"]);
    const { id } = JSON.parse(created.stdout) as { id: string };
    await ends(0, home, ["oauth-clients", "rotate", id, "--secret-file", "out/d", "--secret-format", "json"]);
    await ends(0, home, ["oauth-clients", "list", "--json"]);
    await ends(0, home, ["journal", "list", "--all", "--json"]);
    await ends(0, home, ["journal", "verify"]);
    expect(world.leftovers(home)).toEqual([]);
  });

  it("leave no trace when they are read from standard input and exchanged for a token", async () => {
    const home = world.home(world.env);
    const client = await world.account.make(["entity:read"]);
    world.canaries.add("client secret", client.client_secret);
    const words = ["oauth-clients", "token", "--client-id", client.client_id, "--client-secret-stdin", "--json"];
    await ends(0, home, words, { input: client.client_secret, stdout: ["bearer token"] });
    world.canaries.add("client secret", "a-secret-that-nobody-gave/to+anyone=");
    await ends(3, home, words, { input: "a-secret-that-nobody-gave/to+anyone=" });
  });
});

function endpoint(): string {
  return world.relay.through(world.service.us.token_endpoint);
}

describe("canary secrets of profiles", () => {
  it("are kept in a 0600 file or left in the person's own place", async () => {
    const home = world.home();
    const { us } = world.service;
    const exchange = ["--access-token-endpoint", world.relay.through(us.access_token_endpoint)];
    const asUser = ["--api-key-stdin", "--basic-style", "key-as-user"];
    await ends(0, home, ["profiles", "add", "key", ...world.address, "--api-key-stdin", ...exchange], {
      input: us.access_key_secret,
    });
    await ends(0, home, ["profiles", "add", "user", ...world.address, ...asUser], { input: us.second_api_key });
    const printer = world.spy("printer", `cat '${world.ownFile("API key", us.api_key)}'`);
    const answerer = world.spy("answerer", `cat > /dev/null; cat '${world.ownFile("bearer token", us.access_token)}'`);
    const commands = ["--api-key-command", printer, "--access-token-command", answerer];
    await ends(0, home, ["profiles", "add", "command", "--no-verify", ...world.address, ...commands]);
    const client = await world.account.make(["entity:read"]);
    const oauth = ["--client-id", client.client_id, "--token-endpoint", endpoint()];
    const secretPrinter = world.spy("secret-printer", `cat '${world.ownFile("client secret", client.client_secret)}'`);
    await ends(0, home, ["profiles", "add", "oauth", ...world.address, ...oauth, "--client-secret-stdin"], {
      input: client.client_secret,
    });
    const posted = [...oauth, "--client-auth", "client_secret_post", "--client-secret-command", secretPrinter];
    await ends(0, home, ["profiles", "add", "posted", ...world.address, ...posted]);
    for (const profile of ["user", "command", "oauth", "posted"])
      await ends(0, home, ["entities", "list", "-p", profile, "--json"]);
    for (const profile of ["key", "command"]) await ends(0, home, ["keys", "list", "-p", profile, "--json"]);
    for (const profile of ["key", "oauth"]) await world.run(home, ["doctor", "-p", profile, "-o", "json"]);
    await ends(0, home, ["profiles", "list", "--json"]);
    await ends(0, home, ["profiles", "edit", "user", "--base-url", "https://elsewhere.example"]);
    await ends(0, home, ["profiles", "remove", "oauth", "--yes"]);
  });

  it("are not quoted in errors, whether typed, piped or malformed", async () => {
    const home = world.home();
    const { us } = world.service;
    await ends(2, home, ["profiles", "add", "x", ...world.address, `--api-key=${us.api_key}`]);
    await ends(2, home, ["profiles", "add", "x", ...world.address, "--api-key", us.api_key]);
    await ends(2, home, ["profiles", "add", "x", ...world.address, "--api-key-stdin", us.api_key]);
    await ends(2, home, ["profiles", "add", "x", ...world.address, "--api-key-stdin"], {
      input: `${us.api_key}\n${us.second_api_key}`,
    });
    const printer = world.spy("two-lines", `cat '${world.ownFile("API key", us.api_key)}'; exit 4`);
    await ends(0, home, ["profiles", "add", "failing", "--no-verify", ...world.address, "--api-key-command", printer]);
    await ends(3, home, ["entities", "list", "-p", "failing"]);
    await ends(0, home, ["profiles", "add", "kept", ...world.address, "--api-key-stdin"], { input: us.api_key });
    const { profiles } = JSON.parse(readFileSync(home.path("config", "profiles.json"), "utf8")) as {
      profiles: { name: string; credential: { ref?: string } }[];
    };
    const kept = profiles.find(({ name }) => name === "kept")!.credential.ref;
    writeFileSync(home.path("config", "credentials", `${kept}.json`), us.api_key);
    await ends(3, home, ["entities", "list", "-p", "kept"]);
    await ends(2, home, ["entities", "list"], { env: { ...world.env, INTEG_API_KEY: `${us.api_key}\n` } });
  });
});

describe("canary secrets of access keys", () => {
  it("reach each destination by creation, rotation and replacement", async () => {
    const home = world.home();
    const { us } = world.service;
    const exchange = ["--access-token-endpoint", world.relay.through(us.access_token_endpoint)];
    const first = await ends(
      0,
      world.home({ ...world.env, INTEG_ACCESS_TOKEN: us.access_token }),
      ["keys", "create", "--name", "own", "--json"],
      {
        stdout: ["access key secret"],
      },
    );
    const own = JSON.parse(first.stdout) as { id: string; secret: string };
    const add = ["profiles", "add", "p", ...world.address, "--api-key-stdin", "--api-key-id", own.id, ...exchange];
    await ends(0, home, add, { input: own.secret });
    for (const [format, file] of files) {
      await ends(0, home, ["keys", "create", "--name", format, "--secret-file", file, "--secret-format", format]);
      const taker = world.spy("taker", `umask 077; cat > '${home.path(`${file}.taken`)}'`);
      const to = ["--secret-command", taker, "--secret-format", format];
      await ends(0, home, ["keys", "create", "--name", `${format}-2`, ...to]);
    }
    const created = await ends(0, home, ["keys", "create", "--name", "last", "--secret-file", "out/key", "--json"]);
    const { id } = JSON.parse(created.stdout) as { id: string };
    await ends(0, home, ["keys", "rotate", id, "--yes", "--secret-file", "out/rotated"]);
    await ends(0, home, ["keys", "rotate", id, "--by-replacement", "--secret-file", "out/replaced"]);
    await ends(0, home, ["keys", "rotate", own.id, "--yes", "--update-profile"]);
    await ends(12, home, ["keys", "create", "--name", "kept", "--secret-command", "exit 1"]);
    const claimTo = ["--secret-format", "env", "--secret-file", "out/claimed"];
    await ends(0, home, ["journal", "claim", undeliveredIn(home), ...claimTo]);
    await ends(0, home, ["keys", "list", "--json"]);
    await ends(0, home, ["people", "search", "a", "--json"]);
    expect(world.leftovers(home)).toEqual([]);
  });
});

describe("canary secrets of any endpoint", () => {
  it("are shown only if the response is the command's result", async () => {
    const home = world.home({ ...world.env, INTEG_ACCESS_TOKEN: world.service.us.access_token });
    const body = JSON.stringify({ service_account_id: world.service.us.service_account_id, scopes: ["entity:read"] });
    await ends(0, home, ["api", "/v1/entities", "-f", "limit=1", "--include"]);
    await ends(0, home, ["api", "/api/v1/access-keys", "--json"]);
    await ends(0, home, ["api", "/v1/oauth_clients", "--input", "-", "-H", "Idempotency-Key: canary-1"], {
      input: body,
      stdout: ["client secret"],
    });
    await ends(2, home, ["api", "/v1/entities", "-H", `Authorization: Bearer ${world.service.us.access_token}`]);
  });
});

/**
 * A response whose text fields repeat the request's credentials and a created secret, and whose headers repeat a credential.
 */
function echo(status: number): (heard: Exchange) => HostileResponse {
  return ({ credentials, answer }) => {
    const echoed = `you sent ${credentials.join(" and ")}`;
    const secret = /"(?:client_secret|secret)":"([^"]+)"/.exec(answer)?.[1];
    const one = credentials[0] ?? "none";
    return {
      status,
      headers: { "request-id": one.slice(0, 180), "retry-after": one.slice(0, 180) },
      body: JSON.stringify({
        type: `https://docs.example/${one}`,
        title: echoed,
        code: one,
        param: one,
        detail: `${echoed} ${"x".repeat(1900)} ${echoed}, ${secret === undefined ? "nothing" : `and made ${secret}`}`,
        ...(secret === undefined ? {} : { client_secret: secret, secret }),
      }),
    };
  };
}

describe("canary secrets that a response repeats", () => {
  const once = ["--retry-for", "0"];

  const statuses = isFull ? [400, 401, 403, 404, 409, 422, 429, 500, 502, 503] : [401, 409, 500];

  it.each(statuses)("with status %d leak nowhere", async (status) => {
    const home = world.home({ ...world.env, INTEG_ACCESS_TOKEN: world.service.us.access_token });
    world.relay.answer(/./, echo(status));
    for (const format of ["table", "json"]) {
      await world.run(home, ["entities", "list", ...once, "-o", format]);
      await world.run(home, [...createWords("--secret-file", `out/${format}`, "--new"), ...once, "-o", format]);
      const key = ["keys", "create", "--name", "echoed", "--new", "--secret-file", `out/${format}2`];
      await world.run(home, [...key, ...once, "-o", format]);
    }
    const client = await world.account.make(["entity:read"]);
    world.canaries.add("client secret", client.client_secret);
    const token = ["oauth-clients", "token", "--client-id", client.client_id, "--client-secret-stdin", ...once];
    await world.run(home, token, { input: client.client_secret });
    await ends(0, home, ["journal", "list", "--all", "--json"]);
    await ends(0, home, ["journal", "verify"]);
  });

  it.each([
    ["the token endpoint", "access-tokens"],
    ["a body that is not JSON", "."],
  ])("from %s leak nowhere", async (_what, path) => {
    const home = world.home();
    const { us } = world.service;
    const exchange = ["--access-token-endpoint", world.relay.through(us.access_token_endpoint)];
    await ends(0, home, ["profiles", "add", "p", ...world.address, "--api-key-stdin", ...exchange], {
      input: us.access_key_secret,
    });
    world.relay.answer(new RegExp(path), (heard) =>
      path === "." ? { status: 200, body: `${heard.credentials.join(" ")} {` } : echo(401)(heard),
    );
    expect((await world.run(home, ["keys", "list", ...once])).code).not.toBe(0);
    expect((await world.run(home, ["keys", "create", "--name", "n", "--secret-file", "out/n", ...once])).code).not.toBe(
      0,
    );
    expect(
      (await world.run(home, ["keys", "create", "--name", "m", "--secret-file", "out/n", ...once, "--json"])).code,
    ).not.toBe(0);
  });

  it("in a response after the time limit leak nowhere", async () => {
    const home = world.home(world.env);
    await world.service.fault("POST /v1/oauth_clients latency=3s times=1");
    await ends(7, home, [...createWords("--secret-file", "out/late"), "--timeout", "500ms", ...once]);
    await world.run(home, ["journal", "recover", "--replace-lost-secret"]);
  });
});

describe("canary secrets of a run that is killed or crashes", () => {
  const points: readonly (readonly [string, number])[] = [
    ...[9, 10, 11, 12, 13].map((nth) => ["fsync", nth] as const),
    ["ftruncate", 3],
    ["link", 4],
  ];

  it.skipIf(isMissing("strace"))("are only in the destination's reserved file after a kill", async () => {
    let reserved = 0;
    for (const [call, nth] of points) {
      const home = world.home(world.env);
      const words = createWords("--secret-file", "out/killed");
      await world.run(home, words, { under: killedAt({ call, nth, text: "" }) });
      reserved += world.leftovers(home).some((file) => readFileSync(home.path(file), "utf8").includes("sbx_us_cs_"))
        ? 1
        : 0;
      await world.run(home, ["journal", "recover", "--replace-lost-secret"]);
      expect(world.leftovers(home)).toEqual([]);
    }
    expect(reserved, "no kill left a secret in a reserved file").toBeGreaterThan(0);
  });

  // The executable ignores NODE_OPTIONS.
  it.skipIf(isOtherBinary("a bug that a test puts into the program"))("are in no stack trace", async () => {
    const home = world.home(world.env);
    const bug = world.tool("bug.cjs");
    writeFileSync(
      bug,
      `const fs = require("node:fs"); const link = fs.linkSync;
       fs.linkSync = (from, to) => { if (String(to).includes("/out/")) throw new TypeError("a bug"); return link(from, to); };`,
    );
    for (const format of ["table", "json"]) {
      const words = [...createWords("--new", "--secret-file", join("out", format)), "-o", format];
      const ended = await world.run(home, words, { env: { NODE_OPTIONS: `--require ${bug}` } });
      expect(ended.code, ended.stderr).not.toBe(0);
      await world.run(home, ["journal", "recover"]);
    }
  });
});

it("a misplaced canary is detected in every form", () => {
  const home = world.home();
  const key = world.service.us.api_key;
  const forms: [string, string][] = [
    ["tmp/raw", key],
    ["tmp/basic", Buffer.from(`apikey:${key}`).toString("base64")],
    ["cache/user", Buffer.from(`${key}:`).toString("base64")],
    ["tmp/hex", Buffer.from(key).toString("hex")],
    ["tmp/torn", key.slice(0, -4)],
  ];
  world.plant(home, "out/allowed", key);
  for (const [file, text] of forms) {
    world.plant(home, file, `before ${text} after`);
  }
  const found = world.canaries.searchFiles(home.folder, (file) => file.startsWith("out/"));
  const where = new Set(found.map(({ place }) => place));
  expect([...where].sort()).toEqual(["cache/user", "tmp/basic", "tmp/hex", "tmp/raw", "tmp/torn"]);
  expect(world.canaries.search("stdout", key)).toMatchObject([{ role: "API key", form: "as it is" }]);
});
