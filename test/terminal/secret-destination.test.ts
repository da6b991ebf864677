// At a terminal a command that yields a secret asks where it should go; the screen is one of the answers, and a rotation to it
// leaves the old credential time.
import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { readJournal } from "../support/journal-file.ts";
import { Home } from "../support/program.ts";
import { startService, type Service } from "../support/service.ts";
import { startVault, type VaultServer } from "../support/vault-server.ts";
import { Session } from "./session.ts";

let service: Service;
let account: Account;
let vault: VaultServer;
let at: Home;

beforeAll(async () => {
  [service, vault] = await Promise.all([startService(), startVault()]);
  account = new Account(service);
});
afterEach(async () => {
  at.remove();
  await account.clear();
});
afterAll(async () => {
  await Promise.all([service.stop(), vault.close()]);
});

function session(words: readonly string[]): Session {
  return new Session(words, { home: at });
}

function home(): Home {
  at = new Home({
    ...service.env,
    INTEG_ACCESS_TOKEN: service.us.access_token,
    INTEG_TOKEN_ENDPOINT: service.us.token_endpoint,
    INTEG_ORGANIZATION_ID: service.us.organization_id,
    VAULT_ADDR: vault.origin,
    VAULT_TOKEN: vault.root,
  });
  return at;
}

const creation = (): string[] =>
  `oauth-clients create --service-account ${service.us.service_account_id} --scope entity:read`.split(" ");
const question = /Where does the secret go\?[^]*file[^]*command[^]*vault[^]*github[^]*k8s[^]*keychain[^]*screen/;
const down = "\u001b[B";
const secret = /sbx_us_\w*cs_\w+/;

describe("a creation asks where the secret goes", () => {
  it.each<[string, string, RegExp, string, () => string]>([
    ["file", "\r", /Path of the new file/, "asked.secret\r", () => readFileSync(at.path("asked.secret"), "utf8")],
    ["command", `${down}\r`, /Command/, "cat > taken\r", () => readFileSync(at.path("taken"), "utf8")],
    [
      "store",
      `${down}${down}\r`,
      /Address \(vault:<mount>\/<path>#<field>\)/,
      "secret/asked#key\r",
      () => String(vault.current("secret/asked")?.key),
    ],
  ])("a %s", async (_what, keys, next, answer, stored) => {
    home();
    const asked = session(creation());
    await asked.answer(question, keys);
    await asked.answer(next, answer);
    expect(await asked.ended, asked.written).toBe(0);
    const [client] = await account.live();
    expect(await account.opens(client!.client_id!, stored())).toBe(true);
    expect(asked.written).not.toContain(stored());
  });

  it("the screen: once, and it says so", async () => {
    home();
    const asked = session(creation());
    await asked.answer(question, `${down.repeat(6)}\r`);
    expect(await asked.ended, asked.written).toBe(0);
    expect(asked.written).toMatch(secret);
    expect(asked.written).toContain("The secret is shown once");
  });

  it("and nothing is made where it is called off", async () => {
    home();
    const asked = session(creation());
    await asked.answer(question, "\u0003");
    expect(await asked.ended).toBe(130);
    expect(await account.live()).toEqual([]);
  });

  it("a named destination, a dry run and --no-input are not asked about", async () => {
    home();
    for (const words of [["--secret-file", "named"], ["--dry-run"], ["--no-input", "--new"]]) {
      const asked = session([...creation(), ...words]);
      expect(await asked.ended, asked.written).toBe(0);
      expect(asked.written).not.toContain("Where does the secret go");
    }
  });
});

describe("a rotation", () => {
  it("to the screen leaves the old client for 24 hours, says when it goes, and how to end that early", async () => {
    home();
    const old = await account.make(["entity:read"]);
    const asked = session(["oauth-clients", "rotate", old.id]);
    await asked.answer(question, `${down.repeat(6)}\r`);
    await asked.answer(/revoke oac_us_/, "y");
    expect(await asked.ended, asked.written).toBe(0);
    const [rotation] = readJournal(at.path("state", "journal.ndjson"));
    const text = asked.written.replaceAll(/\s+/g, " ");
    expect(text).toMatch(
      new RegExp(`integ journal recover ${rotation!.id} revokes ${old.id} in (?:24 hours|23 hours|1 day)`),
    );
    expect(text).toContain("with --now it does so immediately");
    expect((await account.live()).map(({ id }) => id)).toContain(old.id);
    expect((await at.integ(["journal", "recover", rotation!.id, "--now"])).code).toBe(0);
    expect((await account.live()).map(({ id }) => id)).not.toContain(old.id);
  });

  it("to a file, or with an overlap that is typed, takes what is typed", async () => {
    home();
    const old = await account.make(["entity:read"]);
    const asked = session(["oauth-clients", "rotate", old.id, "--overlap", "0s"]);
    await asked.answer(question, `${down.repeat(6)}\r`);
    await asked.answer(/revoke oac_us_/, "y");
    expect(await asked.ended, asked.written).toBe(0);
    expect((await account.live()).map(({ id }) => id)).not.toContain(old.id);
    const [next] = await account.live();
    const filed = session(["oauth-clients", "rotate", next!.id]);
    await filed.answer(question, "\r");
    await filed.answer(/Path of the new file/, "rotated.secret\r");
    await filed.answer(/revoke oac_us_/, "y");
    expect(await filed.ended, filed.written).toBe(0);
    expect((await account.live()).map(({ id }) => id)).not.toContain(next!.id);
  });
});

describe("the other commands", () => {
  it("keys create and keys rotate ask too", async () => {
    home();
    const made = session(["keys", "create", "--name", "asked", "--expires-in", "30d"]);
    await made.answer(/What may the key do/, "\r");
    await made.answer(question, "\r");
    await made.answer(/Path of the new file/, "key.secret\r");
    expect(await made.ended, made.written).toBe(0);
    const { resource_id: id } = readJournal(at.path("state", "journal.ndjson")).at(-1)!;
    const rotated = session(["keys", "rotate", id!]);
    await rotated.answer(question, `${down}\r`);
    await rotated.answer(/Command/, "cat > rotated\r");
    await rotated.answer(/rotate key \S+ in place\?/, "y");
    expect(await rotated.ended, rotated.written).toBe(0);
    expect(readFileSync(at.path("rotated"), "utf8")).not.toBe(readFileSync(at.path("key.secret"), "utf8"));
  });

  it("a claim asks, unless the entry knows its place", async () => {
    home();
    writeFileSync(at.path("taken"), "mine");
    await at.integ([...creation(), "--secret-command", "exit 1"]);
    const [entry] = readJournal(at.path("state", "journal.ndjson"));
    const asked = session(["journal", "claim", entry!.id]);
    await asked.answer(question, "\r");
    await asked.answer(/Path of the new file/, "claimed.secret\r");
    expect(await asked.ended, asked.written).toBe(0);
    expect(readFileSync(at.path("claimed.secret"), "utf8")).toMatch(secret);
    vault.plan(/^POST .*\/data\//, { status: 403, body: { errors: ["permission denied"] } });
    await at.integ([...creation(), "--new", "--secret-to", "vault:secret/claimed#key"]);
    const kept = readJournal(at.path("state", "journal.ndjson")).find(({ state }) => state === "undelivered");
    const known = session(["journal", "claim", kept!.id]);
    expect(await known.ended, known.written).toBe(0);
    expect(known.written).not.toContain("Where does the secret go");
    expect(String(vault.current("secret/claimed")?.key)).toMatch(secret);
  });
});
