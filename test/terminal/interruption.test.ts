// At a keyboard, the terminal sends Ctrl-C to the program and to every command that it runs.
import { spawn } from "@lydell/node-pty";
import { existsSync, readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { readJournal, type ReadEntry } from "../support/journal-file.ts";
import { Home, program } from "../support/program.ts";
import { relayOfFile } from "../support/recording-relay.ts";
import { creationWords, homeOfTest, serviceOfFile } from "../support/service.ts";

const ctrlC = "\u0003";
const again = /Ctrl-C again to exit immediately/;

const service = await serviceOfFile();
const account = new Account(service);
const relay = await relayOfFile(service.us.base_url);
let home: Home;

beforeEach(() => {
  const token_endpoint = relay.through(service.us.token_endpoint);
  const base_url = relay.through(service.us.base_url);
  home = homeOfTest({ ...service.env, INTEG_BASE_URL: base_url, INTEG_TOKEN_ENDPOINT: token_endpoint });
});

afterEach(async () => {
  relay.calm();
  await account.clear();
});

interface Session {
  press(keys: string): void;
  until(what: string, isTrue: () => boolean): Promise<void>;
  shown(): string;
  readonly ended: Promise<{ exitCode: number; signal?: number }>;
}

function start(words: readonly string[]): Session {
  const pty = spawn(program[0], [...program.slice(1), ...words], {
    cols: 120,
    rows: 40,
    cwd: home.folder,
    env: { ...home.env, TERM: "xterm-256color" },
  });
  let shown = "";
  pty.onData((text) => (shown += text));
  return {
    press: (keys) => pty.write(keys),
    shown: () => shown,
    async until(what, isTrue) {
      for (let tries = 0; !isTrue(); tries += 1) {
        if (tries > 1500) throw new Error(`waited in vain for ${what}: ${shown}`);
        await new Promise((done) => setTimeout(done, 20));
      }
    },
    ended: new Promise((done) => pty.onExit(done)),
  };
}

function entries(): ReadEntry[] {
  return readJournal(home.path("state", "journal.ndjson"));
}

async function isSecretValid(): Promise<boolean> {
  const secret = readFileSync(home.path("a.secret"), "utf8").trim();
  for (const { client_id } of await account.live())
    if (client_id !== null && (await account.opens(client_id, secret))) return true;
  return false;
}

describe("Ctrl-C at a terminal", () => {
  it("ends the person's command while it reads the secret: integ keeps the secret, exit 12", async () => {
    const session = start(creationWords(service, "--secret-command", "touch started; sleep 300; cat > /dev/null"));
    await session.until("the command", () => existsSync(home.path("started")));
    session.press(ctrlC);
    expect(await session.ended, session.shown()).toMatchObject({ exitCode: 12 });
    const [entry] = entries();
    expect(entry).toMatchObject({ state: "undelivered" });
    const claimed = await home.integ(["journal", "claim", entry!.id, "--secret-file", "a.secret"]);
    expect(claimed.code, claimed.stderr).toBe(0);
    expect(await isSecretValid()).toBe(true);
  });

  it("pressed twice ends a command that ignores it and has not read the secret", async () => {
    const late = "trap '' INT; read answer < /dev/tty; echo $answer > started; sleep 2; cat > late";
    const session = start(creationWords(service, "--secret-command", late));
    await session.until("the delivery", () => entries()[0]?.resource_id !== undefined && entries()[0]?.attempts === 1);
    session.press("asked\r");
    await session.until("the command", () => existsSync(home.path("started")));
    session.press(ctrlC);
    await session.until("the wait", () => again.test(session.shown()));
    session.press(ctrlC);
    expect(await session.ended, session.shown()).toMatchObject({ exitCode: 12 });
    await new Promise((done) => setTimeout(done, 2500));
    expect([existsSync(home.path("late")), readFileSync(home.path("started"), "utf8")]).toEqual([false, "asked\n"]);
  });

  // No response arrives and no attempt times out: only the pressed key ends the command.
  it.each([
    ["a page", []],
    ["a walk", ["--all"]],
    ["up to --max rows", ["--max", "700"]],
  ])("during a list ends it without delay, 130: %s", async (_what, more) => {
    const hold = relay.hold(/^GET .*entities/);
    const session = start(["entities", "list", ...more, "--timeout", "10m"]);
    await hold.arrived;
    session.press(ctrlC);
    expect(await session.ended, session.shown()).toMatchObject({ exitCode: 130 });
    hold.letGo();
  });
});
