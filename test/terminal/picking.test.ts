import { readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { readJournal } from "../support/journal-file.ts";
import { Home } from "../support/program.ts";
import { type Service, creationWords, startService } from "../support/service.ts";
import { Session } from "./session.ts";

const down = "\u001b[B";
const up = "\u001b[A";
const cancelKeys = [
  ["Ctrl-C", "\u0003", 130],
  ["Ctrl-D", "\u0004", 130],
  ["Escape", "\u001b", 130],
] as const;

interface Client {
  readonly id: string;
  readonly service_account_id: string;
  readonly scopes: readonly string[];
  readonly status: string;
}

let service: Service;
let home: Home;

beforeEach(() => {
  home = new Home(service.env);
});
afterEach(async () => {
  await service.calm();
  home.remove();
});

/** Each describe block has its own service, because an account has at most 20 clients (§8). */
function withService(): void {
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.stop());
}

const session = (words: readonly string[], more: { env?: Record<string, string>; columns?: number } = {}): Session =>
  new Session(words, { home, ...more });

const clients = async (): Promise<Client[]> => (await service.control("GET", "/oauth_clients")) as Client[];
const journal = () => readJournal(home.path("state", "journal.ndjson"));

async function newest(): Promise<Client> {
  const { resource_id } = journal().at(-1)!;
  return (await clients()).find(({ id }) => id === resource_id)!;
}

async function createClient(account: string, ...scopes: string[]): Promise<string> {
  const flags = ["--service-account", account, ...scopes.flatMap((scope) => ["--scope", scope]), "--new", "--json"];
  const { stdout, stderr, code } = await home.integ(["oauth-clients", "create", ...flags]);
  expect(code, stderr).toBe(0);
  return (JSON.parse(stdout) as Client).id;
}

async function attemptCreation(account: string, ...scopes: string[]): Promise<string> {
  await service.fault("POST /v1/oauth_clients status=500 times=1");
  const flags = ["--service-account", account, ...scopes.flatMap((scope) => ["--scope", scope]), "--retry-for", "0"];
  expect((await home.integ(["oauth-clients", "create", ...flags])).code).toBe(7);
  return journal().at(-1)!.id;
}

const create = ["oauth-clients", "create", "--new", "--secret-file", "picked.secret"];

describe("a creation", () => {
  withService();

  it("picks the service account with the arrows, and selects scopes with Space", async () => {
    const [own, other] = [service.us.service_account_id, service.us.caller_service_account_id];
    await createClient(own, "entity:read");
    await createClient(own, "organization:read");
    await createClient(other, "entity:read");
    const dialog = session(create);
    // The last used account is first, and the test picks the second.
    await dialog.answer(new RegExp(`● ${other}.*○ ${own}.*○ another…`, "s"), `${down}\r`);
    // The scopes last given to this account are selected initially.
    await dialog.answer(/◼ organization:read \(last used.*◻ entity:read\s.*◻ others…/s, " ");
    await dialog.answer(/◻ organization:read/, down);
    await dialog.answer(/entity:read \(last used/, " ");
    await dialog.answer(/◼ entity:read/, "\r");
    expect(await dialog.ended, dialog.written).toBe(0);
    expect(dialog.written).toContain("1 item selected");
    expect(await newest()).toMatchObject({ service_account_id: own, scopes: ["entity:read"] });
    expect(dialog.written).toContain(`integ creates a client of ${own} with entity:read.`);
  });

  it("takes the last used values with Enter alone, in their original order", async () => {
    const account = service.us.service_account_id;
    await createClient(account, "organization:read", "entity:read");
    const dialog = session(create);
    await dialog.answer(/● sa_us/, "\r");
    await dialog.answer(/◼ organization:read.*◼ entity:read/s, "\r");
    expect(await dialog.ended, dialog.written).toBe(0);
    expect((await newest()).scopes).toEqual(["organization:read", "entity:read"]);
  });

  it("accepts typed values that are not in the list, next to picked ones", async () => {
    await attemptCreation("sa_elsewhere", "entity:read");
    const dialog = session(create);
    await dialog.answer(/● sa_elsewhere/, up);
    await dialog.answer(/● another…/, "\r");
    await dialog.answer(/◆ {2}Service account/, `${service.us.service_account_id}\r`);
    // This account never got a scope, so no scope is selected. An empty selection is not accepted.
    await dialog.answer(/◻ entity:read/, "\r");
    await dialog.answer(/select at least one/, " ");
    await dialog.answer(/◼ entity:read/, `${down} `);
    await dialog.answer(/◼ others…/, "\r");
    await dialog.answer(/with spaces between/, "organization:read entity:read\r");
    expect(await dialog.ended, dialog.written).toBe(0);
    expect(await newest()).toMatchObject({
      service_account_id: service.us.service_account_id,
      scopes: ["entity:read", "organization:read"],
    });
  });

  it("filters a long list by typing, and never filters out the entry for other input", async () => {
    for (let n = 10; n < 22; n += 1) await attemptCreation(`sa_number_${n}`, "entity:read");
    const dialog = session(create);
    await dialog.answer(/Search:.*● sa_number_21.*sa_number_14/s, "_12");
    await dialog.answer(/● sa_number_12.*another…/s, "zzz");
    await dialog.answer(/● another…/, "\r");
    await dialog.answer(/◆ {2}Service account/, `${service.us.service_account_id}\r`);
    await dialog.answer(/◻ entity:read/, " \r");
    expect(await dialog.ended, dialog.written).toBe(0);
    expect((await newest()).service_account_id).toBe(service.us.service_account_id);
    expect((await dialog.screen()).lines.join("\n")).not.toContain("sa_number_10");
  });

  it.each(cancelKeys)("%s in a list is not an answer: nothing is sent or recorded", async (_way, key, code) => {
    await createClient(service.us.service_account_id, "entity:read");
    const before = [(await clients()).length, readFileSync(home.path("state", "journal.ndjson"), "utf8")];
    const first = session(create);
    await first.answer(/● sa_us/, key);
    expect(await first.ended).toBe(code);
    const { lines } = await first.screen();
    expect(lines.filter((line) => line.includes("Service account"))).toHaveLength(1);
    expect(lines.join("\n")).not.toMatch(/another…|Enter: confirm/);
    const second = session(create);
    await second.answer(/● sa_us/, "\r");
    await second.answer(/◼ entity:read/, key);
    expect(await second.ended).toBe(code);
    expect(second.written).not.toContain("creates a client");
    expect(second.written).toContain("Canceled");
    expect([(await clients()).length, readFileSync(home.path("state", "journal.ndjson"), "utf8")]).toEqual(before);
  });

  it("shows hostile names as text, and sends the picked one unchanged", async () => {
    const hostile = "sa_\u001b]0;owned\u0007\u202Eevil\n● sa_good";
    await attemptCreation(hostile, "entity:\u001b[2Jread");
    const dialog = session(create);
    await dialog.answer(/sa_\\u\{1b\}\]0;owned\\u\{7\}\\u\{202e\}evil\\u\{a\}● sa_good/, "\r");
    await dialog.answer(/◼ entity:\\u\{1b\}\[2Jread/, "\u0003");
    expect(await dialog.ended).toBe(130);
    expect((await dialog.screen()).effects).toEqual([]);
    const again = session(create);
    await again.answer(/● sa_/, "\r");
    await again.answer(/◼ entity:/, "\r");
    await again.ended;
    expect(JSON.parse(journal().at(-1)!.request_text)).toEqual({
      service_account_id: hostile,
      scopes: ["entity:\u001b[2Jread"],
    });
  });

  it.each([
    ["at 50 columns in color", 50, {}],
    ["at 40 columns", 40, {}],
    ["without color", 80, { NO_COLOR: "1" }],
    ["on a dumb terminal", 80, { TERM: "dumb" }],
  ])("is readable and works %s", async (_what, columns, env) => {
    const account = `sa_${"long_name_".repeat(4)}1`;
    await attemptCreation(account, "entity:read", "organization:read");
    const dialog = session(create, { columns, env });
    const isDrawn = columns === 50;
    if (isDrawn) {
      await dialog.answer(/Enter: confirm.*└/s, "\r");
      // The test sees no colors: the text next to a scope shows the cursor's position.
      await dialog.answer(/entity:read \(last used/, down);
      await dialog.answer(/organization:read \(last used/, " \r");
    } else {
      await dialog.answer(/^Service account.*:\r\n {2}1\. sa_long.* {2}2\. another….*Type a number.*: $/s, "\r");
      await dialog.answer(/Scopes:\r\n {2}1\. entity:read.*\(default: 1 2\): $/s, "1\r");
    }
    await dialog.ended;
    expect(JSON.parse(journal().at(-1)!.request_text)).toEqual({
      service_account_id: account,
      scopes: ["entity:read"],
    });
    // oxlint-disable-next-line no-control-regex
    if (!isDrawn) expect(dialog.written.replaceAll(/\u001b\[[\d;]*m/g, "")).not.toMatch(/\u001b/);
  });
});

describe("a missing argument", () => {
  withService();

  it("is picked: a client to show, and one to revoke, before the usual confirmation", async () => {
    const kept = await createClient(service.us.service_account_id, "entity:read");
    const revokedId = await createClient(service.us.service_account_id, "organization:read");
    const revoking = session(["oauth-clients", "revoke"]);
    await revoking.answer(new RegExp(`● ${revokedId}.*${kept}`, "s"), "\r");
    await revoking.answer(new RegExp(`Revoke client ${revokedId}`), "y");
    expect(await revoking.ended).toBe(0);
    expect(revoking.written).toContain(`Without questions: integ oauth-clients revoke ${revokedId} --yes`);
    const again = session(["oauth-clients", "rotate"]);
    await again.answer(new RegExp(`● ${kept}`), "\u0003");
    expect(await again.ended).toBe(130);
    expect(again.written).not.toContain(revokedId);
    const looking = session(["oauth-clients", "get", "--json"]);
    await looking.answer(new RegExp(`● ${revokedId}.*revoked.*${kept}`, "s"), `${down}\r`);
    expect(await looking.ended).toBe(0);
    expect(looking.shown).toContain(`"id": "${kept}"`);
    expect((await clients()).filter(({ status }) => status === "revoked").map(({ id }) => id)).toContain(revokedId);
  });

  it.each(cancelKeys)("%s at the list revokes nothing", async (_way, key, code) => {
    const id = await createClient(service.us.service_account_id, "entity:read");
    const before = journal().length;
    const dialog = session(["oauth-clients", "revoke", "--yes"]);
    await dialog.answer(new RegExp(`● ${id}`), key);
    expect(await dialog.ended).toBe(code);
    expect((await clients()).find((client) => client.id === id)?.status).toBe("active");
    expect(journal()).toHaveLength(before);
  });

  it("is picked: a journal entry, among valid ones", async () => {
    const done = await createClient(service.us.service_account_id, "entity:read").then(() => journal().at(-1)!.id);
    const unknown = await attemptCreation("sa_elsewhere", "entity:read");
    const showing = session(["journal", "show"]);
    await showing.answer(
      new RegExp(`● ${unknown} \\(oauth_client.create, sa_elsewhere, unknown, profile env, 20.*${done}`, "s"),
      `${down}\r`,
    );
    expect(await showing.ended).toBe(0);
    expect(showing.shown).toMatch(new RegExp(`id +${done}`));
    const forgetting = session(["journal", "forget"]);
    await forgetting.answer(new RegExp(`● ${unknown}`), "\r");
    await forgetting.answer(/Stop tracking the entry/, "y");
    expect(await forgetting.ended).toBe(0);
    expect(forgetting.written).not.toContain(done);
    const { code } = await home.integ(creationWords(service, "--new", "--secret-command", "exit 1"));
    expect(code).toBe(12);
    const kept = journal().at(-1)!.id;
    const claiming = session(["journal", "claim", "--secret-file", "claimed.secret"]);
    await claiming.answer(new RegExp(`● ${kept} \\(oauth_client.create, sa_us_automation, undelivered, `), "\r");
    expect(await claiming.ended, claiming.written).toBe(0);
    expect(claiming.written).not.toContain(done);
    expect(readFileSync(home.path("claimed.secret"), "utf8")).toMatch(/^sbx_us_cs_/);
    expect(journal().find(({ id }) => id === unknown)?.state).toBe("abandoned");
  });

  it("is picked: a key in the service's list that is not revoked", async () => {
    const env = { INTEG_ACCESS_TOKEN: service.us.access_token };
    const { stdout } = await home.integ(["keys", "create", "--name", "picked", "--no-marker", "--json"], { env });
    const { id } = JSON.parse(stdout) as { id: string };
    const dialog = session(["keys", "revoke"], { env });
    const other = new RegExp(
      `● ${id} \\(picked, \\S+, active, created .*\\).*○ ${service.us.access_key_id} \\(.*active`,
      "s",
    );
    await dialog.answer(other, "\r");
    await dialog.answer(new RegExp(`revoke key ${id}`, "i"), "y");
    expect(await dialog.ended, dialog.written).toBe(0);
    const again = session(["keys", "revoke"], { env });
    await again.answer(new RegExp(`● ${service.us.access_key_id} `), "\u0003");
    expect(await again.ended).toBe(130);
    expect(again.written).not.toContain(id);
  });

  it("is picked: a profile, also the acting profile if no default exists; its key is asked for if standard input is the terminal", async () => {
    const add = ["--region", "us", "--base-url", service.us.base_url, "--api-key-stdin"];
    const env = { INTEG_REGION: "", INTEG_BASE_URL: "", INTEG_API_KEY: "", INTEG_ORGANIZATION_ID: "" };
    for (const name of ["one", "two", "three"])
      await home.integ(["profiles", "add", name, ...add], { env, input: service.us.api_key });
    const asked = session(["profiles", "edit", "one", "--api-key-stdin"], { env });
    await asked.answer(/API key/, `${service.us.api_key}\r`);
    expect(await asked.ended, asked.written).toBe(0);
    expect(asked.written).not.toContain("Without questions");
    const using = session(["profiles", "use"], { env });
    await using.answer(/● one .*three.*sandbox-eu/s, `${down}${down}\r`);
    expect(await using.ended).toBe(0);
    const removing = session(["profiles", "remove"], { env });
    await removing.answer(/● one/, `${down}${down}\r`);
    await removing.answer(/Remove the profile/, "y");
    expect(await removing.ended).toBe(0);
    const { stdout } = await home.integ(["profiles", "list", "--json"], { env });
    const { data } = JSON.parse(stdout) as { data: { name: string; default: boolean }[] };
    const [first, second] = data.filter(({ name }) => !name.startsWith("sandbox")).map(({ name }) => name);
    expect(data.some((row) => row.default)).toBe(false);
    const acting = session(["oauth-clients", "list", "--json"], { env });
    await acting.answer(new RegExp(`As which one\\?.*● ${first} .*${second}`, "s"), `${down}\r`);
    expect(await acting.ended, acting.written).toBe(0);
    expect(acting.shown).toContain(`integ profiles use ${second}`);
    const scripted = await home.integ(["oauth-clients", "list"], { env });
    expect(scripted).toMatchObject({ code: 2, stderr: expect.stringContaining("No default profile") });
    // `doctor` diagnoses problems, so it does not ask.
    const doctor = session(["doctor"], { env });
    expect(await doctor.ended).toBe(10);
    expect(doctor.written).toContain("No default profile");
  });

  it("is picked, and its secret typed hidden: a client for a token", async () => {
    const id = await createClient(service.us.service_account_id, "entity:read");
    const { stdout } = await home.integ(["oauth-clients", "get", id, "--json"]);
    const { client_id } = JSON.parse(stdout) as { client_id: string };
    const dialog = session(["oauth-clients", "token"], { env: { INTEG_TOKEN_ENDPOINT: service.us.token_endpoint } });
    await dialog.answer(new RegExp(`● ${client_id} \\(${id}`), "\r");
    await dialog.answer(/client secret/, "not-the-secret\r");
    expect(await dialog.ended, dialog.written).toBe(3);
    expect(dialog.written).not.toContain("not-the-secret");
  });

  it.each([
    ["--no-input", ["--no-input"], {}],
    ["CI", [], { CI: "true" }],
    ["INTEG_NO_INPUT", [], { INTEG_NO_INPUT: "1" }],
  ])("is an error with %s, without a question", async (_what, flags, env) => {
    await createClient(service.us.service_account_id, "entity:read");
    for (const words of [
      ["oauth-clients", "revoke"],
      ["journal", "show"],
      ["profiles", "use"],
    ]) {
      const dialog = session([...words, ...flags], { env });
      expect(await dialog.ended).toBe(2);
      expect(dialog.written).toContain(`<${words[0] === "profiles" ? "name" : "id"}> is missing.`);
      expect(dialog.written).not.toContain("\u001b[?25l");
    }
  });
});
