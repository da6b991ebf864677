import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { Failure } from "../../../src/errors.ts";
import { vaultOfFile } from "../../support/vault-server.ts";
import { closeConnections, setUp, endOf, prepared } from "./a-store.ts";

const vault = await vaultOfFile();
const folder = mkdtempSync(join(tmpdir(), "integ-vault-"));
afterEach(() => {
  closeConnections();
  vault.calm();
  vault.isSealed = false;
  vault.secrets.clear();
});
afterAll(() => rmSync(folder, { recursive: true }));

const to = "vault:secret/apps/ci#client_secret";
const name = `--secret-to ${to}`;
const all = ["create", "read", "update", "patch"];

async function failureOf(env: Readonly<Record<string, string | undefined>> = {}): Promise<Failure> {
  const given = { VAULT_ADDR: vault.origin, VAULT_TOKEN: vault.token(...all), ...env };
  const error: unknown = await prepared(setUp(given), to).catch((reason: unknown) => reason);
  if (error instanceof Failure) return error;
  throw new Error("it did not fail", { cause: error });
}

describe("a read that Vault refuses", () => {
  it.each([
    [400, "usage"],
    [404, "usage"],
    [405, "usage"],
    [401, "unreachable"],
    [406, "unreachable"],
    [409, "unreachable"],
  ])("with %i is %s", async (status, kind) => {
    vault.plan(/mounts/, { status, body: { errors: ["as Vault says it"] } }, 9);
    const failure = await failureOf();
    expect([failure.kind, failure.details.problem]).toEqual([kind, { status }]);
    expect(failure.message).toMatch(new RegExp(` cannot .*: the server responded with ${status}\\.$`));
  });

  it("with 403 names the cause: the token or its policy", async () => {
    vault.plan(/mounts/, { status: 403, body: { errors: ["permission denied"] } });
    const denied = await failureOf();
    expect(denied).toMatchObject({ kind: "auth", details: { problem: { status: 403 } } });
    expect(denied.message).toContain("permission denied");
    expect(denied.details.hint).toContain("vault token capabilities");
    vault.plan(/mounts/, { status: 403, body: { errors: ["permission denied"] } });
    vault.plan(/lookup-self/, { status: 403, body: { errors: ["bad token"] } });
    const unknown = await failureOf();
    expect(unknown.message).toContain(": the token is not accepted: it cannot ");
    expect(unknown.details.hint).toContain("Renew the login (vault login)");
  });

  it("with 429 is a limit, with 503 a seal if the body says so", async () => {
    vault.plan(/mounts/, { status: 429, headers: { "retry-after": "3600" } }, 9);
    expect(await failureOf()).toMatchObject({
      kind: "rate_limited",
      message: `${name}: the server limits the rate of requests.`,
    });
    vault.calm();
    vault.plan(/mounts/, { status: 503 }, 99);
    expect((await failureOf()).message).toContain("the server responded with 503");
    vault.calm();
    vault.isSealed = true;
    expect(await failureOf()).toMatchObject({
      kind: "usage",
      message: `${name}: the server is sealed.`,
      details: { hint: expect.stringContaining("vault operator unseal") },
    });
  });
});

describe("the token", () => {
  const given = (env: Readonly<Record<string, string | undefined>>): Promise<string> =>
    endOf(() => prepared(setUp({ VAULT_ADDR: vault.origin, ...env }), to));
  const file = (label: string, text: string): string => {
    const path = join(folder, label);
    writeFileSync(path, text);
    return path;
  };

  it("comes from the environment, then from the named file, then from the home", async () => {
    const [good, bad] = [vault.token(...all), "s.none"];
    writeFileSync(join(folder, ".vault-token"), `${good}\n`);
    expect(await given({ VAULT_TOKEN: good, VAULT_TOKEN_FILE: file("bad", bad), HOME: folder })).toBe("delivered");
    expect(await given({ VAULT_TOKEN_FILE: file("good", ` ${good}\n`), HOME: "/nowhere" })).toBe("delivered");
    expect(await given({ HOME: folder })).toBe("delivered");
    expect(await given({ VAULT_TOKEN_FILE: file("bad", bad), HOME: folder })).toMatch(/^auth: .*not accepted/);
  });

  it.each<[string, () => Readonly<Record<string, string | undefined>>, RegExp]>([
    ["in no file", () => ({ HOME: "/nowhere" }), /^auth: .* has no token\.$/],
    ["without a home", () => ({}), /^auth: .* has no token\.$/],
    ["in an empty file", () => ({ VAULT_TOKEN_FILE: file("empty", "\n") }), /^auth: .* has no token\.$/],
    ["in a named file that is missing", () => ({ VAULT_TOKEN_FILE: join(folder, "absent") }), /the Vault token/],
    ["of two words", () => ({ VAULT_TOKEN_FILE: file("two", "a b") }), /^auth: .*two contains more than a token\.$/],
    ["of two lines", () => ({ VAULT_TOKEN_FILE: file("lines", "a\nb") }), /contains more than a token/],
    ["with a control character", () => ({ VAULT_TOKEN_FILE: file("bell", "a\u0007b") }), /contains more than a token/],
  ])("%s is not used", async (_what, env, words) => {
    expect(await given(env())).toMatch(words);
    expect(vault.log).toEqual([]);
  });

  it("is not looked up without a server's address", async () => {
    const failure = await failureOf({ VAULT_ADDR: undefined });
    expect(failure).toMatchObject({ kind: "usage", message: `${name} needs VAULT_ADDR.` });
    expect(failure.details.hint).toMatch(/^Set VAULT_ADDR, like https:\/\//);
  });
});
