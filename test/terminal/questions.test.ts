// At a terminal: questions for what is missing, hidden secrets, a confirmation before anything goes, and EOF is not a yes.
import { spawn } from "@lydell/node-pty";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Home, program } from "../support/program.ts";
import { startService, type Service } from "../support/service.ts";

let service: Service;
let at: Home;

beforeAll(async () => {
  service = await startService();
  at = new Home(service.env);
});

afterAll(async () => {
  at.remove();
  await service.stop();
});

/** A program at a terminal: waits for what it shows, types, and says how it ended. */
class Session {
  shown = "";
  readonly ended: Promise<number>;
  readonly #pty: ReturnType<typeof spawn>;

  constructor(words: readonly string[], env: Readonly<Record<string, string>> = {}) {
    this.#pty = spawn(program[0], [...program.slice(1), ...words], {
      cols: 120,
      rows: 40,
      cwd: at.folder,
      env: { ...at.env, TERM: "xterm-256color", ...env },
    });
    this.#pty.onData((text) => (this.shown += text));
    this.ended = new Promise((done) => this.#pty.onExit(({ exitCode }) => done(exitCode)));
  }

  async answer(question: RegExp, keys: string): Promise<void> {
    for (let tries = 0; !question.test(this.shown); tries++) {
      if (tries > 400) throw new Error(`no ${question} in: ${this.shown}`);
      await new Promise((done) => setTimeout(done, 25));
    }
    this.shown = "";
    this.#pty.write(keys);
  }
}

async function clientCount(): Promise<number> {
  return ((await service.control("GET", "/oauth_clients")) as unknown[]).length;
}

describe("questions", () => {
  it("asks for what is missing, and remembers what was used before", async () => {
    const first = new Session(["oauth-clients", "create", "--secret-file", "asked.secret"]);
    await first.answer(/Service account/, `${service.us.service_account_id}\r`);
    await first.answer(/Scopes/, "entity:read organization:read\r");
    expect(await first.ended).toBe(0);
    const second = new Session(["oauth-clients", "create", "--new", "--secret-file", "again.secret"]);
    await second.answer(/used before: sa_us_automation/, "\u0003");
    expect(await second.ended).toBe(130);
  });

  it("asks again after Enter on an empty answer, and after scopes that are none", async () => {
    const session = new Session(["oauth-clients", "create", "--new", "--secret-file", "insisted.secret"]);
    await session.answer(/Service account/, "\r");
    await session.answer(/An answer is needed/, `${service.us.service_account_id}\r`);
    await session.answer(/Scopes/, "\r");
    await session.answer(/An answer is needed/, " ,\r");
    await session.answer(/At least one scope/, "\u007f\u007fentity:read\r");
    expect(await session.ended).toBe(0);
  });

  it("says what will be made, as whom and where, before it is made", async () => {
    const flags = ["--service-account", service.us.service_account_id, "--scope", "entity:read", "--new"];
    const client = new Session(["oauth-clients", "create", ...flags, "--secret-file", "planned.secret"]);
    expect(await client.ended).toBe(0);
    expect(client.shown).toContain(
      `Profile env (us): creates a client of ${service.us.service_account_id} with entity:read.`,
    );
    expect(client.shown.indexOf("creates a client")).toBeLessThan(client.shown.indexOf("oac_us_"));
    const key = new Session(["keys", "create", "--name", "planned", "--secret-file", "planned-key.secret"], {
      INTEG_ACCESS_TOKEN: service.us.access_token,
      INTEG_ORGANIZATION_ID: service.us.organization_id,
    });
    expect(await key.ended).toBe(0);
    expect(key.shown).toContain('Profile env (us): creates the key "planned" (full access; expires never).');
  });

  it("names profile and region in the question before a rotation", async () => {
    const flags = ["--service-account", service.us.service_account_id, "--scope", "entity:read", "--new", "--json"];
    const { id } = JSON.parse((await at.integ(["oauth-clients", "create", ...flags])).stdout) as { id: string };
    const session = new Session(["oauth-clients", "rotate", id, "--secret-file", "rotated.secret"]);
    await session.answer(/Profile env \(us\): create a client with the scopes entity:read/, "n");
    expect(await session.ended).toBe(2);
  });

  it("hides a secret that is typed", async () => {
    const session = new Session(["profiles", "add", "typed", "--region", "us", "--base-url", service.us.base_url]);
    await session.answer(/API key/, `${service.us.api_key}\r`);
    expect(await session.ended).toBe(0);
    expect(session.shown).not.toContain(service.us.api_key);
  });

  it.each([
    ["the end of the input", "\u0004"],
    ["Ctrl-C", "\u0003"],
    ["Enter, which takes the safe answer", "\r"],
    ["no", "n"],
  ])("%s is no yes to a revocation", async (_what, keys) => {
    const words = [
      "oauth-clients",
      "create",
      "--service-account",
      service.us.service_account_id,
      "--scope",
      "entity:read",
      "--json",
    ];
    const { id } = JSON.parse((await at.integ([...words, "--new"])).stdout) as { id: string };
    const session = new Session(["oauth-clients", "revoke", id]);
    await session.answer(/Revoke client/, keys);
    expect(await session.ended).not.toBe(0);
    const { stdout } = await at.integ(["oauth-clients", "get", id, "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({ status: "active" });
  });

  it.each([
    ["--no-input", ["--no-input"], {}],
    ["CI", [], { CI: "true" }],
    ["INTEG_NO_INPUT", [], { INTEG_NO_INPUT: "1" }],
  ])("never asks with %s", async (_what, flags, env) => {
    const before = await clientCount();
    const session = new Session(["oauth-clients", "create", ...flags], env);
    expect(await session.ended).toBe(2);
    expect(await clientCount()).toBe(before);
  });
});
