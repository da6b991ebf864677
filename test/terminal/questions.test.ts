// At a terminal nothing is sent before a confirmation, and the end of the input is not a yes.
import { existsSync } from "node:fs";
import xterm from "@xterm/headless";
import { describe, expect, it } from "vitest";
import { creationWords, homeOfFile, homeOfTest, serviceOfFile } from "../support/service.ts";
import { Session } from "./session.ts";

const service = await serviceOfFile();
const at = homeOfFile(service.env);

const session = (words: readonly string[], env: Readonly<Record<string, string>> = {}): Session =>
  new Session(words, { home: at, env });

async function createClient(): Promise<string> {
  const { stdout } = await at.integ(creationWords(service, "--json", "--new"));
  return (JSON.parse(stdout) as { id: string }).id;
}

describe("questions", () => {
  it("asks for missing values, and offers earlier ones", async () => {
    const first = session(["oauth-clients", "create", "--secret-file", "asked.secret"]);
    await first.answer(/Service account/, `${service.us.service_account_id}\r`);
    await first.answer(/Scopes/, "entity:read organization:read\r");
    expect(await first.ended).toBe(0);
    const second = session(["oauth-clients", "create", "--new", "--secret-file", "again.secret"]);
    await second.answer(/sa_us_automation \(last used/, "\u0003");
    expect(await second.ended).toBe(130);
  });

  it.each([
    "keys create",
    "keys revoke",
    "keys rotate",
    "oauth-clients create",
    "oauth-clients revoke oac_1",
    "oauth-clients rotate",
  ])("finds before the first question of integ %s that the profile cannot be used", async (line) => {
    const home = homeOfTest({});
    const { base_url, organization_id, access_token_endpoint } = service.us;
    const address = ["--region", "us", "--base-url", base_url, "--organization-id", organization_id];
    const key = ["--api-key-command", "exit 1", "--access-token-endpoint", access_token_endpoint];
    const added = await home.integ(["profiles", "add", "locked", "--no-verify", ...address, ...key]);
    expect(added.code, added.stderr).toBe(0);
    for (const [profile, code, words] of [
      ["nope", 2, 'Profile "nope" not found'],
      ["locked", 3, "The --api-key-command of profile locked failed"],
    ] as const) {
      const dialog = new Session([...line.split(" "), "-p", profile], { home });
      await dialog.seen(/Error: |◆/);
      expect(dialog.shown).not.toContain("◆");
      expect(dialog.shown).toContain(words);
      expect(await dialog.ended).toBe(code);
    }
    if (!line.startsWith("oauth-clients revoke")) return;
    const dry = new Session([...line.split(" "), "--dry-run", "-p", "locked"], { home });
    expect(await dry.ended, dry.written).toBe(0);
  });

  it("redraws a question after a resize, also where the reflow has moved its first row off the screen", async () => {
    const env = { INTEG_ACCESS_TOKEN: service.us.access_token };
    const words = ["keys", "create", "--name", "x", "--type", "service_account", "--expires-in", "90d"];
    const dialog = new Session([...words, "--secret-file", "k.secret"], { home: at, columns: 80, env });
    const screen = new xterm.Terminal({ cols: 80, rows: 40, convertEol: true, allowProposedApi: true });
    const draw = async (): Promise<void> => {
      await new Promise((done) => setTimeout(done, 300));
      await new Promise<void>((done) => screen.write(dialog.written, done));
      dialog.written = "";
    };
    await dialog.seen(/└/);
    await draw();
    screen.resize(40, 40);
    // tmux scrolls like this on a resize, to keep the number of rows below the cursor.
    screen.write("\u001b[S\u001b[A");
    dialog.resize(40);
    await draw();
    dialog.type("\u001b[B");
    await draw();
    const lines = Array.from({ length: 40 }, (_line, y) => screen.buffer.active.getLine(y)?.translateToString(true));
    expect(lines.filter((line) => line?.includes("push-ingest"))).toEqual(["│  ○ push-ingest:* (push data,"]);
    dialog.type("\u0003");
    expect(await dialog.ended).toBe(130);
  });

  it("explains a lost response before it asks what to do; Ctrl-C at the question sends nothing", async () => {
    await service.fault("POST /v1/oauth_clients drop=after times=1");
    const lost = await at.integ(creationWords(service, "--new", "--secret-file", "lost.secret", "--retry-for", "0"));
    expect(lost.code).toBe(7);
    const [, id = ""] = /integ journal recover (\w+)/.exec(lost.stderr) ?? [];
    for (const [env, question] of [
      [{}, /● No/],
      [{ TERM: "dumb" }, /\(default: no\)/],
    ] as const) {
      const dialog = session(["journal", "recover", id], env);
      await dialog.seen(question);
      expect(dialog.shown).toMatch(/The creation was sent and took effect: the client oac_us_\w+\s+exists\.[^]*\?/);
      dialog.type("\u0003");
      expect(await dialog.ended).toBe(130);
      expect(dialog.shown).toContain("Nothing was sent after the question.");
    }
    await service.calm();
  });

  it("shows what will be created, as which profile and where, before the request", async () => {
    const client = session(creationWords(service, "--new", "--secret-file", "planned.secret"));
    expect(await client.ended).toBe(0);
    expect(client.shown).toContain(
      `Profile env (us): integ creates a client of ${service.us.service_account_id} with entity:read.`,
    );
    expect(client.shown.indexOf("creates a client")).toBeLessThan(client.shown.indexOf("oac_us_"));
    const key = session(["keys", "create", "--name", "planned", "--secret-file", "planned-key.secret"], {
      INTEG_ACCESS_TOKEN: service.us.access_token,
      INTEG_ORGANIZATION_ID: service.us.organization_id,
    });
    await key.answer(/What may the key do\?/, "\u001b[B\r");
    await key.answer(/How long is it valid\?/, "\u001b[A\r");
    expect(await key.ended).toBe(0);
    expect(key.shown).toContain('Profile env (us): integ creates the key "planned" (full access; expires never).');
  });

  it.each([["trust"], ["move", "--to", "elsewhere.ndjson"]])(
    "journal %s signs no entry that changed after it was shown",
    async (verb, ...more) => {
      const [from, here] = [homeOfTest(service.env), homeOfTest(service.env)];
      await from.integ(creationWords(service, "--new", "--secret-command", "exit 1"));
      await from.integ(["journal", "export", "--out", here.path("export")]);
      await here.integ(["journal", "import", "export"]);
      const listed = await here.integ(["journal", "list", "--json"]);
      const [{ id }] = (JSON.parse(listed.stdout) as { data: [{ id: string }] }).data;
      const dialog = new Session(["journal", verb, ...(verb === "trust" ? [id] : more)], { home: here });
      await dialog.seen(/its secret goes to .*Trust /s);
      expect((await here.integ(["journal", "forget", id, "--yes"])).code).toBe(0);
      await dialog.answer(/Trust /, "y");
      expect(await dialog.ended, dialog.written).toBe(5);
      expect(dialog.written).toContain(`The entry ${id} is not as it was shown`);
      const after = await here.integ(["journal", "list", "--all"]);
      expect(after.stderr).toContain(`The entry ${id} is untrusted`);
      expect(after.stderr).not.toContain("were moved");
    },
  );

  it("names profile and region in the question before a rotation", async () => {
    const id = await createClient();
    const dialog = session(["oauth-clients", "rotate", id, "--secret-file", "rotated.secret"]);
    await dialog.answer(/Profile env \(us\): create a client with the scopes entity:read/, "n");
    expect(await dialog.ended).toBe(2);
  });

  it("asks for every property of a profile, and repeats a question after an invalid answer", async () => {
    const env = { INTEG_BASE_URL: "", INTEG_API_KEY: "", INTEG_CONFIG_DIR: at.path("asked-for") };
    const dialog = session(["profiles", "add"], env);
    await dialog.answer(/Name of the profile/, "sandbox\r");
    await dialog.answer(/"sandbox" is a reserved profile name/, `${"\u007f".repeat(7)}mine\r`);
    await dialog.answer(/● us.*○ eu/s, "\u001b[B\r");
    await dialog.answer(/Base URL/, "ftp://x\r");
    await dialog.answer(/Invalid base URL: it must begin/, `${"\u007f".repeat(7)}${service.eu.base_url}\r`);
    await dialog.answer(/API key/, `${service.eu.api_key}\r`);
    expect(await dialog.ended, dialog.written).toBe(0);
    expect(dialog.written).toMatch(
      /accepts the credential \(eu, .*Without questions: integ profiles add mine --region eu --base-url http\S+\s/s,
    );
    const again = session(["profiles", "add", "--region", "us", "--base-url", service.us.base_url], env);
    await again.answer(/Name of the profile/, "mine\r");
    await again.answer(/Profile "mine" already exists/, `${"\u007f".repeat(4)}other\r`);
    await again.answer(/API key/, "wrong\r");
    await again.answer(/although its credential is refused/, "\u0003");
    expect(await again.ended).toBe(130);
    const { data } = JSON.parse((await at.integ(["profiles", "list", "--json"], { env })).stdout) as {
      data: unknown[];
    };
    const mine = { name: "mine", region: "eu", base_url: service.eu.base_url };
    expect(data.slice(0, 2)).toMatchObject([mine, { name: "sandbox" }]);
  });

  it.each([
    ["a terminal", {}],
    ["a dumb terminal", { TERM: "dumb" }],
    ["a terminal without color", { NO_COLOR: "1" }],
  ])("hides a typed secret on %s", async (what, env) => {
    const name = what.replaceAll(" ", "-");
    const dialog = session(["profiles", "add", name, "--region", "us", "--base-url", service.us.base_url], env);
    await dialog.answer(/API key/, `${service.us.api_key}\r`);
    expect(await dialog.ended).toBe(0);
    expect(dialog.written).not.toContain(service.us.api_key);
    expect(
      (await at.integ(["profiles", "show", name, "--json"], { env: { INTEG_BASE_URL: "", INTEG_API_KEY: "" } })).code,
    ).toBe(0);
  });

  it.each(["xterm", "dumb"])("stores nothing and exits as usual if the terminal (%s) closes", async (TERM) => {
    const env = { INTEG_CONFIG_DIR: at.path("closed"), TERM };
    const dialog = session(["profiles", "add", "a", "--region", "us", "--base-url", service.us.base_url], env);
    await dialog.seen(/API key/);
    dialog.close();
    // For a process that a signal killed, the code would be 0.
    expect([130, 143]).toContain(await dialog.ended);
    expect(existsSync(at.path("closed"))).toBe(false);
  });

  let activeClient: string | undefined;
  /** All tests of a refused revocation share one client, because an account has at most 20 clients (§8). */
  const sharedClient = async (): Promise<string> => (activeClient ??= await createClient());
  const statusOf = async (id: string): Promise<string> => {
    const { stdout } = await at.integ(["oauth-clients", "get", id, "--json"]);
    return (JSON.parse(stdout) as { status: string }).status;
  };

  it("an audit revokes no client that was enabled while its question was open", async () => {
    const id = await createClient();
    await service.control("POST", `/oauth_clients/${id}`, { status: "disabled" });
    const dialog = session(["oauth-clients", "audit", "--fix"]);
    await dialog.seen(/audit|revoke/i);
    await service.control("POST", `/oauth_clients/${id}`, { status: "active" });
    await dialog.answer(/: revoke/, "y");
    expect(await dialog.ended).not.toBe(0);
    expect(dialog.written).toContain(`${id} has changed since the question`);
    expect(await statusOf(id)).toBe("active");
    await at.integ(["oauth-clients", "revoke", id, "--yes"]);
  });

  it.each([
    ["Ctrl-D", "\u0004", 130],
    ["Ctrl-C", "\u0003", 130],
    ["Escape", "\u001b", 130],
    ["Enter, which takes the safe answer", "\r", 2],
    ["no", "n", 2],
    ["no, with letters of vim before it", "hjklln", 2],
    ["letters of vim and Enter", "hljk\r", 2],
  ])("%s is not a yes to a revocation", async (_what, keys, code) => {
    const id = await sharedClient();
    const dialog = session(["oauth-clients", "revoke", id]);
    await dialog.answer(/Revoke client/, keys);
    expect(await dialog.ended, dialog.written).toBe(code);
    expect(dialog.written).toContain(code === 130 ? "Canceled" : "the answer was no");
    expect(await statusOf(id)).toBe("active");
  });

  it.each([
    ["y", "n", 2],
    ["yes\r", "\u001b", 130],
    ["\u001b[D\r", "n", 2],
  ])("keys typed before the question (%j) do not answer it", async (ahead, answer, code) => {
    const id = await sharedClient();
    const dialog = session(["oauth-clients", "revoke", id]);
    dialog.type(ahead);
    await dialog.answer(/Revoke client/, answer);
    expect(await dialog.ended, dialog.written).toBe(code);
    expect(await statusOf(id)).toBe("active");
  });
});
