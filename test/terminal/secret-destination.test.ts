import { readFileSync, writeFileSync } from "node:fs";
import { stripVTControlCharacters } from "node:util";
import { afterEach, describe, expect, it } from "vitest";
import { storeKinds } from "../../src/secrets/destination.ts";
import { Account } from "../support/account.ts";
import { readJournal } from "../support/journal-file.ts";
import { Home } from "../support/program.ts";
import { creationWords, homeOfTest, serviceOfFile, tokenEnv } from "../support/service.ts";
import { vaultOfFile } from "../support/vault-server.ts";
import { Session } from "./session.ts";

const service = await serviceOfFile();
const account = new Account(service);
const vault = await vaultOfFile();
let at: Home;

afterEach(() => account.clear());

function session(words: readonly string[]): Session {
  return new Session(words, { home: at });
}

function home(): Home {
  at = homeOfTest({ ...tokenEnv(service), VAULT_ADDR: vault.origin, VAULT_TOKEN: vault.root });
  return at;
}

const creation = (): string[] => creationWords(service);
const question = /Where does the secret go\?[^]*file[^]*command[^]*vault[^]*github[^]*k8s[^]*keychain[^]*screen/;
const wordsOf = ({ written }: Session): string => stripVTControlCharacters(written).replaceAll(/[\s│]+/g, " ");
const down = "\u001b[B";
const secret = /sbx_us_\w*cs_\w+/;

describe("a creation asks for the secret's destination", () => {
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
  ])("and delivers to a %s", async (_what, keys, next, answer, stored) => {
    home();
    const dialog = session(creation());
    await dialog.answer(question, keys);
    await dialog.answer(next, answer);
    expect(await dialog.ended, dialog.written).toBe(0);
    const [client] = await account.live();
    expect(await account.opens(client!.client_id!, stored())).toBe(true);
    expect(dialog.written).not.toContain(stored());
  });

  it("and shows the secret once on the screen, with a note", async () => {
    home();
    const dialog = session(creation());
    await dialog.answer(question, `${down.repeat(Object.keys(storeKinds).length + 2)}\r`);
    expect(await dialog.ended, dialog.written).toBe(0);
    expect(dialog.written).toMatch(secret);
    expect(dialog.written).toContain("The secret is shown once");
  });

  it("and creates nothing if the question is canceled", async () => {
    home();
    const dialog = session(creation());
    await dialog.answer(question, "\u0003");
    expect(await dialog.ended).toBe(130);
    expect(await account.live()).toEqual([]);
  });

  it("but not with a named destination, a dry run or --no-input", async () => {
    home();
    for (const words of [["--secret-file", "named"], ["--dry-run"], ["--no-input", "--new"]]) {
      const dialog = session([...creation(), ...words]);
      expect(await dialog.ended, dialog.written).toBe(0);
      expect(dialog.written).not.toContain("Where does the secret go");
    }
  });
});

describe("a rotation", () => {
  it.each([
    ["", " If the secret is shown on the terminal, the default overlap is 24h, not 0s."],
    [" --overlap 1h", ""],
    [" --keep-old", ""],
  ])("%s as a dry run notes the question of the real run", async (more, overlap) => {
    home();
    const old = await account.make(["entity:read"]);
    const dry = session(`oauth-clients rotate ${old.id} --dry-run${more}`.split(" "));
    expect(await dry.ended, dry.written).toBe(0);
    const note = "Without --dry-run, the command asks where the secret goes.";
    expect(wordsOf(dry)).toContain(`${note}${overlap}`);
    expect(wordsOf(dry).includes("24h")).toBe(overlap !== "");
  });

  it("to the screen keeps the old client for 24 hours, and reports when it is revoked and how to end that early", async () => {
    home();
    const old = await account.make(["entity:read"]);
    const dialog = session(["oauth-clients", "rotate", old.id]);
    await dialog.answer(question, `${down.repeat(Object.keys(storeKinds).length + 2)}\r`);
    await dialog.answer(/leave oac_us_/, "y");
    expect(await dialog.ended, dialog.written).toBe(0);
    const [rotation] = readJournal(at.path("state", "journal.ndjson"));
    const text = dialog.written.replaceAll(/\s+/g, " ");
    expect(text).toMatch(
      new RegExp(
        `run integ journal recover ${rotation!.id} after the overlap, which ends in (?:24 hours|23 hours|1 day)`,
      ),
    );
    expect(text).toContain("to revoke it immediately, add --now");
    expect((await account.live()).map(({ id }) => id)).toContain(old.id);
    expect((await at.integ(["journal", "recover", rotation!.id, "--now"])).code).toBe(0);
    expect((await account.live()).map(({ id }) => id)).not.toContain(old.id);
  });

  const screen = `${down.repeat(Object.keys(storeKinds).length + 2)}\r`;
  const file = "\r";
  const overlaps: readonly [
    what: string,
    words: readonly string[],
    to: string | undefined,
    ending: string,
    code: number,
  ][] = [
    ["the screen", [], screen, "leave <id> working for 24 hours, until integ journal recover revokes it?", 0],
    ["the screen, no overlap", ["--overlap", "0s"], screen, "revoke <id> once the new one works?", 0],
    ["the screen, a short overlap", ["--overlap", "1s"], screen, "revoke <id> 1 second after the new one works?", 0],
    ["a file", [], file, "revoke <id> once the new one works?", 0],
    [
      "a file as the answer, a long overlap",
      ["--overlap", "36h"],
      file,
      "leave <id> working for 36 hours, until integ journal recover revokes it?",
      0,
    ],
    ["a file as an option", ["--secret-file", "rotated.secret"], undefined, "revoke <id> once the new one works?", 0],
    [
      "a store, an overlap",
      ["--secret-to", "vault:secret/rotated#key", "--overlap", "16m"],
      undefined,
      "leave <id> working for 16 minutes, until integ journal recover revokes it?",
      0,
    ],
  ];

  it.each(overlaps)("to %s: the question describes the overlap", async (_what, words, to, ending, code) => {
    home();
    const old = await account.make(["entity:read"]);
    const dialog = session(["oauth-clients", "rotate", old.id, ...words]);
    if (to !== undefined) await dialog.answer(question, to);
    if (to === file) await dialog.answer(/Path of the new file/, "rotated.secret\r");
    await dialog.answer(/with the scopes entity:read[^]*\?/, "y");
    expect(await dialog.ended, dialog.written).toBe(code);
    expect(wordsOf(dialog)).toContain(`with the scopes entity:read, and ${ending.replace("<id>", old.id)}`);
    const isLive = (await account.live()).some(({ id }) => id === old.id);
    expect(isLive).toBe(ending.startsWith("leave"));
    const [rotation] = readJournal(at.path("state", "journal.ndjson")).filter(
      ({ operation }) => operation === "oauth_client.rotate",
    );
    expect(rotation!.state).toBe(isLive ? "waiting" : "done");
  });

  it("of a key by replacement does the same; with --yes it does not ask, and the result describes the overlap", async () => {
    home();
    const words = "keys create --name old --scope * --expires-in 30d --secret-file old.key".split(" ");
    expect((await at.integ(words)).code).toBe(0);
    const { resource_id: id } = readJournal(at.path("state", "journal.ndjson")).at(-1)!;
    const dialog = session(["keys", "rotate", id!, "--by-replacement"]);
    await dialog.answer(question, screen);
    await dialog.answer(/expires [^]*\?/, "n");
    expect(await dialog.ended).toBe(2);
    expect(wordsOf(dialog)).toContain(`and leave ${id} working for 24 hours, until integ journal recover revokes it?`);
    const old = await account.make(["entity:read"]);
    const agreed = session(["oauth-clients", "rotate", old.id, "--yes"]);
    await agreed.answer(question, screen);
    expect(await agreed.ended, agreed.written).toBe(0);
    expect(agreed.written).not.toContain("with the scopes");
    expect(wordsOf(agreed)).toMatch(
      new RegExp(
        `To revoke ${old.id}, run integ journal recover \\S+ after the overlap, which ends in (?:24 hours|23 hours|1 day)`,
      ),
    );
  });
});

describe("other commands", () => {
  it("ask too: keys create and keys rotate", async () => {
    home();
    const created = session(["keys", "create", "--name", "asked", "--expires-in", "30d"]);
    await created.answer(/What may the key do/, "\r");
    await created.answer(question, "\r");
    await created.answer(/Path of the new file/, "key.secret\r");
    expect(await created.ended, created.written).toBe(0);
    const { resource_id: id } = readJournal(at.path("state", "journal.ndjson")).at(-1)!;
    const rotated = session(["keys", "rotate", id!]);
    await rotated.answer(question, `${down}\r`);
    await rotated.answer(/Command/, "cat > rotated\r");
    await rotated.answer(/rotate key \S+ in place\?/, "y");
    expect(await rotated.ended, rotated.written).toBe(0);
    expect(readFileSync(at.path("rotated"), "utf8")).not.toBe(readFileSync(at.path("key.secret"), "utf8"));
  });

  it("ask too: a claim, unless the entry has a destination", async () => {
    home();
    writeFileSync(at.path("taken"), "mine");
    await at.integ([...creation(), "--secret-command", "exit 1"]);
    const [entry] = readJournal(at.path("state", "journal.ndjson"));
    const dialog = session(["journal", "claim", entry!.id]);
    await dialog.answer(question, "\r");
    await dialog.answer(/Path of the new file/, "claimed.secret\r");
    expect(await dialog.ended, dialog.written).toBe(0);
    expect(readFileSync(at.path("claimed.secret"), "utf8")).toMatch(secret);
    vault.plan(/^POST .*\/data\//, { status: 403, body: { errors: ["permission denied"] } });
    await at.integ([...creation(), "--new", "--secret-to", "vault:secret/claimed#key"]);
    const kept = readJournal(at.path("state", "journal.ndjson")).find(({ state }) => state === "undelivered");
    const withDestination = session(["journal", "claim", kept!.id]);
    expect(await withDestination.ended, withDestination.written).toBe(0);
    expect(withDestination.written).not.toContain("Where does the secret go");
    expect(String(vault.current("secret/claimed")?.key)).toMatch(secret);
  });
});
