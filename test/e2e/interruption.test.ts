// These tests send signals with kill(). Those of test/terminal/ send Ctrl-C from a terminal.
import type { ChildProcess } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { readJournal, type ReadEntry } from "../support/journal-file.ts";
import { ended, type Ended, Home, until } from "../support/program.ts";
import { relayOfFile } from "../support/recording-relay.ts";
import { creationWords, homeOfTest, serviceOfFile, tokenEnv } from "../support/service.ts";

type Signal = "SIGINT" | "SIGTERM" | "SIGHUP";
const signals: readonly [Signal, number][] = [
  ["SIGINT", 130],
  ["SIGTERM", 143],
  ["SIGHUP", 143],
];
/** integ stops in the same way for each signal, so some tests send only one. */
const first = signals.slice(0, 1);

const service = await serviceOfFile();
const account = new Account(service);
const relay = await relayOfFile(service.us.base_url);
let home: Home;

afterEach(async () => {
  relay.calm();
  await account.clear();
});

function openHome(env: Readonly<Record<string, string>> = {}): Home {
  home = homeOfTest({
    ...tokenEnv(service),
    INTEG_BASE_URL: relay.through(service.us.base_url),
    INTEG_TOKEN_ENDPOINT: relay.through(service.us.token_endpoint),
    ...env,
  });
  return home;
}

async function interrupt({ child, stderr }: Running, signal: Signal): Promise<void> {
  child.kill(signal);
  await until("the first signal", () => stderr().includes("Ctrl-C again to exit immediately"));
}

interface Running {
  readonly child: ChildProcess;
  readonly end: Promise<Ended>;
  readonly stderr: () => string;
}

function start(words: readonly string[]): Running {
  const child = home.start(words);
  let stderr = "";
  child.stderr!.on("data", (text) => (stderr += String(text)));
  return { child, end: ended(child), stderr: () => stderr };
}

function createWords(...more: string[]): string[] {
  return creationWords(service, "--json", "--secret-file", "a.secret", ...more);
}

function entries(): ReadEntry[] {
  return readJournal(home.path("state", "journal.ndjson"));
}

function hasRecorded(status: number): boolean {
  const path = home.path("state", "journal.ndjson");
  return existsSync(path) && readFileSync(path, "utf8").includes(`"status":${status}`);
}

async function isSecretValid(file = "a.secret"): Promise<boolean> {
  const secret = readFileSync(home.path(file), "utf8").trim();
  for (const { client_id } of await account.live())
    if (client_id !== null && (await account.opens(client_id, secret))) return true;
  return false;
}

async function expectRecovery(code = 0): Promise<void> {
  const recovered = await home.integ(["journal", "recover", "--replace-lost-secret"]);
  expect(recovered.code, recovered.stderr).toBe(code);
  expect((await account.live()).length).toBe(1);
  expect(await isSecretValid()).toBe(true);
}

it("a process suspended past its time limit reads the response that arrived during the pause, and delivers its secret", async () => {
  openHome();
  const hold = relay.hold(/^POST .*oauth_clients/);
  const run = start(createWords("--timeout", "2s", "--retry-for", "0"));
  await hold.arrived;
  run.child.kill("SIGSTOP");
  hold.letGo();
  await new Promise((done) => setTimeout(done, 2500));
  run.child.kill("SIGCONT");
  expect(await run.end).toMatchObject({ code: 0 });
  expect(entries()).toMatchObject([{ state: "done", attempts: 1 }]);
  expect(await isSecretValid()).toBe(true);
});

describe.each(first)("%s once during a request", (signal) => {
  it("waits for the response, delivers the secret, and exits with 0", async () => {
    openHome();
    const hold = relay.hold(/^POST .*oauth_clients/);
    const run = start(createWords());
    await hold.arrived;
    await interrupt(run, signal);
    hold.letGo();
    expect(await run.end).toMatchObject({ code: 0 });
    expect(entries()).toMatchObject([{ state: "done", attempts: 1 }]);
    expect(await isSecretValid()).toBe(true);
  });

  it("does not retry a response of unknown outcome: exit 7", async () => {
    openHome();
    await service.fault("POST /v1/oauth_clients status=503 effect=kept times=1");
    const hold = relay.hold(/^POST .*oauth_clients/);
    const run = start(createWords());
    await hold.arrived;
    await interrupt(run, signal);
    hold.letGo();
    const { code, stderr } = await run.end;
    expect(code, stderr).toBe(7);
    expect(entries()).toMatchObject([{ state: "unknown", attempts: 1 }]);
    expect(stderr).toContain(`integ journal recover ${entries()[0]!.id}`);
    await expectRecovery();
  });
});

describe.each(first)("%s twice during a request", (signal) => {
  it("exits without delay, the outcome unknown: exit 7", async () => {
    openHome();
    const hold = relay.hold(/^POST .*oauth_clients/);
    const run = start(createWords());
    await hold.arrived;
    await interrupt(run, signal);
    run.child.kill(signal);
    const { code, stderr } = await run.end;
    hold.letGo();
    expect(code, stderr).toBe(7);
    expect(entries()).toMatchObject([{ state: "unknown", attempts: 1 }]);
    expect(stderr).toContain(entries()[0]!.id);
    await expectRecovery();
  });
});

it("a response that does not arrive within seconds of the first signal: exit 7", async () => {
  openHome();
  const hold = relay.hold(/^POST .*oauth_clients/);
  const run = start(createWords());
  await hold.arrived;
  await interrupt(run, "SIGINT");
  const { code } = await run.end;
  hold.letGo();
  expect(code).toBe(7);
  await expectRecovery();
});

describe.each(signals)("%s between attempts", (signal, interrupted) => {
  it("after 429, the entry keeps its key, and the exit code is the signal's", async () => {
    openHome();
    await service.fault("POST /v1/oauth_clients status=429 retry-after=60 times=1");
    const run = start(createWords("--retry-for", "5m"));
    await until("the wait", () => hasRecorded(429));
    run.child.kill(signal);
    expect(await run.end).toMatchObject({ code: interrupted });
    expect(entries()).toMatchObject([{ state: "open", attempts: 1 }]);
    expect(await account.live()).toEqual([]);
    expect(existsSync(home.path("a.secret"))).toBe(false);
  });

  it("in a read, it exits without delay", async () => {
    openHome();
    const hold = relay.hold(/^GET .*entities/);
    const run = start(["entities", "list"]);
    await hold.arrived;
    run.child.kill(signal);
    expect(await run.end).toMatchObject({ code: interrupted, stdout: "" });
    hold.letGo();
  });
});

describe.each(signals)("%s while the keys are listed", (signal, interrupted) => {
  const policy =
    "version: 1\nid: pol_04dea76e76f3a978\naccess_keys:\n  ci: { type: service_account, scopes: ['*'], secret: { file: k } }\n";
  const all = ["report --out r.html", "report --json", "status", "plan --out p.json", "policy init", "doctor"];
  it.each(signal === "SIGINT" ? all : all.slice(0, 1))("integ %s writes nothing", async (line) => {
    openHome();
    if (line.startsWith("plan")) writeFileSync(home.path("integ.yaml"), policy);
    const hold = relay.hold(/^GET .*access-keys/);
    const run = start(line.split(" "));
    await hold.arrived;
    const before = readdirSync(home.folder);
    run.child.kill(signal);
    const { code, stdout, stderr } = await run.end;
    hold.letGo();
    expect([code, stdout], stderr).toEqual([interrupted, ""]);
    expect(readdirSync(home.folder)).toEqual(before);
  });
});

it.each(["report --out r.html", "policy init", "doctor"])(
  "an interrupted --api-key-command of integ %s is not a missing credential: exit 130",
  async (line) => {
    openHome({ INTEG_BASE_URL: "", INTEG_API_KEY: "", INTEG_TOKEN_ENDPOINT: "", INTEG_ACCESS_TOKEN: "" });
    const { base_url, organization_id, access_token_endpoint } = service.us;
    const legacy = ["--organization-id", organization_id, "--access-token-endpoint", access_token_endpoint];
    const words = ["profiles", "add", "p", "--no-verify", "--region", "us", "--base-url", base_url, ...legacy];
    const hang = `: > '${home.path("begun")}'; exec sleep 300`;
    const added = await home.integ([...words, "--api-key-command", hang]);
    expect(added.code, added.stderr).toBe(0);
    const run = start([...line.split(" "), "-p", "p"]);
    await until("the command", () => existsSync(home.path("begun")));
    run.child.kill("SIGINT");
    const { code, stderr } = await run.end;
    expect(code, stderr).toBe(130);
    for (const file of ["r.html", "integ.yaml"]) expect(existsSync(home.path(file))).toBe(false);
  },
);

describe.each(first)("%s between attempts", (signal, interrupted) => {
  it("after a request of unknown outcome: exit 7", async () => {
    openHome();
    await service.fault("POST /v1/oauth_clients status=503 effect=kept retry-after=5 times=1");
    const run = start(createWords("--retry-for", "5m"));
    await until("the wait", () => hasRecorded(503));
    run.child.kill(signal);
    expect(await run.end).toMatchObject({ code: 7 });
    expect(entries()).toMatchObject([{ state: "unknown", attempts: 1 }]);
    await expectRecovery();
  });

  it("while a client is pending, the entry stays pending", async () => {
    openHome();
    await service.fault("POST /v1/oauth_clients pending=1000 times=1");
    const run = start(createWords("--wait", "10m"));
    await until("the wait", () => entries()[0]?.state === "pending");
    run.child.kill(signal);
    const { code, stderr } = await run.end;
    expect(code, stderr).toBe(interrupted);
    expect(entries()).toMatchObject([{ state: "pending" }]);
    expect(stderr).toContain(`integ journal recover ${entries()[0]!.id}`);
  });
});

describe.each(first)("%s during a rotation", (signal, interrupted) => {
  it("while the new client is created: its secret is delivered, the old one works, recovery finishes", async () => {
    openHome();
    const old = await account.make(["entity:read"]);
    const hold = relay.hold(/^POST .*oauth_clients/);
    const run = start(["oauth-clients", "rotate", old.id, "--secret-file", "a.secret"]);
    await hold.arrived;
    await interrupt(run, signal);
    hold.letGo();
    const { code, stderr } = await run.end;
    expect(code, stderr).toBe(interrupted);
    expect(await isSecretValid()).toBe(true);
    expect((await account.live()).map(({ id }) => id)).toContain(old.id);
    expect(entries()).toMatchObject([{ operation: "oauth_client.rotate", state: "pending" }, { state: "done" }]);
    expect(stderr).toContain(`integ journal recover ${entries()[0]!.id}`);
    await expectRecovery();
  });

  it("during the overlap: both clients stay active, and the entry keeps waiting", async () => {
    openHome();
    const old = await account.make(["entity:read"]);
    const run = start(["oauth-clients", "rotate", old.id, "--secret-file", "a.secret", "--overlap", "10m"]);
    await until("the overlap", () => entries()[0]?.state === "waiting");
    run.child.kill(signal);
    const { code, stderr } = await run.end;
    expect(code, stderr).toBe(interrupted);
    expect((await account.live()).length).toBe(2);
    expect(entries()[0]).toMatchObject({ operation: "oauth_client.rotate", state: "waiting" });
  });
});

describe.each(first)("%s during a recovery", (signal) => {
  it("finishes the entries in progress, starts no others, and leaves those unknown: exit 7", async () => {
    openHome();
    // More entries than integ recovers at the same time.
    const files = ["a", "b", "c", "d", "e", "f"].map((name) => `${name}.secret`);
    for (const file of files) {
      await service.fault("POST /v1/oauth_clients drop=before times=1");
      const words = [...createWords().slice(0, -1), file, "--new", "--retry-for", "0"];
      expect((await home.integ(words)).code).toBe(7);
    }
    // Holds all four concurrent requests: if one entry ended, the next entry would start before the signal.
    const hold = relay.hold(/^POST .*oauth_clients/, 4);
    const run = start(["journal", "recover"]);
    await hold.arrived;
    await interrupt(run, signal);
    hold.letGo();
    const { code, stderr } = await run.end;
    expect(code, stderr).toBe(7);
    const states = entries().map(({ state, attempts }) => (state === "unknown" ? `${state}, ${attempts}` : state));
    expect(new Set(states.slice(0, 4))).toEqual(new Set(["done"]));
    expect(states.slice(4)).toEqual(["unknown, 1", "unknown, 1"]);
    const again = await home.integ(["journal", "recover"]);
    expect(again.code, again.stderr).toBe(0);
    for (const file of files) expect(await isSecretValid(file)).toBe(true);
    expect((await account.live()).length).toBe(files.length);
  });
});

describe("a person's command that hangs", () => {
  it("--secret-command: the second Ctrl-C ends it, and the secret is kept: exit 12", async () => {
    openHome();
    writeFileSync(
      home.path("hang.sh"),
      `trap '' INT TERM; cat > /dev/null; : > '${home.path("begun")}'; sleep 300 & wait; sleep 300\n`,
    );
    const run = start(
      createWords()
        .slice(0, -2)
        .concat("--secret-command", `sh '${home.path("hang.sh")}'`),
    );
    await until("the command", () => existsSync(home.path("begun")));
    await interrupt(run, "SIGINT");
    run.child.kill("SIGINT");
    const { code, stderr } = await run.end;
    expect(code, stderr).toBe(12);
    expect(entries()).toMatchObject([{ state: "undelivered" }]);
    const claimed = await home.integ(["journal", "claim", entries()[0]!.id, "--secret-file", "a.secret"]);
    expect(claimed.code, claimed.stderr).toBe(0);
    expect(await isSecretValid()).toBe(true);
  });

  it.each(first)("--api-key-command: the first %s ends it, and nothing is sent", async (signal, interrupted) => {
    openHome({ INTEG_BASE_URL: "", INTEG_API_KEY: "", INTEG_TOKEN_ENDPOINT: "", INTEG_ACCESS_TOKEN: "" });
    const words = ["profiles", "add", "p", "--no-verify", "--region", "us", "--base-url", service.us.base_url];
    const added = await home.integ([...words, "--api-key-command", `: > '${home.path("begun")}'; exec sleep 300`]);
    expect(added.code, added.stderr).toBe(0);
    const run = start(["entities", "list", "-p", "p"]);
    await until("the command", () => existsSync(home.path("begun")));
    run.child.kill(signal);
    const { code, stderr } = await run.end;
    expect(code, stderr).toBe(interrupted);
    expect(stderr).not.toContain("did not finish within");
  });
});
