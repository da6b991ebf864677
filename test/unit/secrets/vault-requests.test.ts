import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { open } from "../../../src/secrets/vault-store.ts";
import { temporaryFolder } from "../../support/bundle-driver.ts";
import { failureOf } from "../profiles/a-profile.ts";
import { type Answer, type Answers, scripted } from "./store-script.ts";
import {
  address,
  asksMount,
  asksRights,
  at,
  absent,
  env,
  facts,
  gets,
  name,
  ok,
  patch,
  rights,
  server,
  token,
  vault,
} from "./vault-script.ts";

const inexact = '{"data":{"data":{"n":1.0},"metadata":{"version":1}}}';

describe("before anything is sent", () => {
  it("the record names the server and the namespace", async () => {
    const { store, lines } = vault({});
    expect([store.address, await store.check(), lines]).toEqual([address, { server, namespace: "root" }, []]);
    const inside = vault({}, { VAULT_NAMESPACE: "/admin/team/" });
    expect(await inside.store.check()).toEqual({ server, namespace: "admin/team" });
  });

  it("a token is needed", async () => {
    expect(await failureOf(() => vault({}, { VAULT_TOKEN: undefined }).store.check())).toEqual({
      kind: "auth",
      message: `${name} has no token.`,
      details: { hint: "Set VAULT_TOKEN or VAULT_TOKEN_FILE, or log in with vault login." },
    });
  });

  it("the named certificate authorities are needed", async () => {
    const path = join(temporaryFolder(), "ca.pem");
    expect(await failureOf(() => vault({}, { VAULT_CACERT: path }).store.check())).toMatchObject({
      kind: "usage",
      message: `Cannot read VAULT_CACERT ${path}: no such file or folder.`,
    });
    writeFileSync(path, "the authorities");
    const { store, trusted } = vault({ [gets]: [absent] }, { VAULT_CACERT: path });
    expect([await store.look(patch), trusted]).toEqual([{ is: "absent", version: "0" }, ["the authorities"]]);
  });

  it.each(["app#key", "#key", "a#", "secret/app#", "secret//app#key", "secret/../app#key", "secret/a\u0007#key"])(
    "%j is invalid",
    async (text) => {
      expect(await failureOf(() => open(text, scripted({}, env).tools))).toEqual({
        kind: "usage",
        message: `Invalid --secret-to "vault:${text}": it is not vault:<mount>/<path>#<field>.`,
        details: { hint: "Write it like --secret-to vault:secret/my-app#client_secret." },
      });
    },
  );
});

describe("preparing", () => {
  it("requests the engine, the rights and the existing secret, with the token and the namespace", async () => {
    const answers = { [asksRights]: [rights("read", "patch")], [gets]: [at(3, { other: "kept" })] };
    const script = vault(answers, { VAULT_NAMESPACE: "admin" });
    const found = await script.store.prepare({ ...facts, namespace: "admin" });
    expect(found).toEqual({ mount: "secret/", method: "patch" });
    expect(script.lines).toEqual([asksMount, asksRights, gets]);
    expect(script.bodies).toEqual([undefined, { paths: ["secret/data/app"] }, undefined]);
    const headers = {
      accept: "application/json",
      "x-vault-token": token,
      "x-vault-request": "true",
      "x-vault-namespace": "admin",
    };
    expect(script.requests.map((request) => request.headers)).toEqual([
      headers,
      { ...headers, "content-type": "application/json" },
      headers,
    ]);
  });

  const mayWrite = "may not write there";
  it.each<[string, readonly string[], Answer, string]>([
    ["nothing there", ["create", "read"], absent, "replace"],
    ["nothing there, patch too", ["create", "read", "patch"], absent, "patch"],
    ["nothing there, only update", ["read", "update"], absent, mayWrite],
    ["deleted there", ["read", "update"], at(2, null), "replace"],
    ["deleted there, only create", ["create", "read"], at(2, null), mayWrite],
    ["a text there", ["read", "update"], at(2, { key: "old" }), "replace"],
    ["a text there, patch", ["read", "patch"], at(2, { key: "old" }), "patch"],
    ["a text there, only create", ["create", "read"], at(2, { key: "old" }), mayWrite],
    ["all rights of root", ["root"], absent, "replace"],
    ["no right to read", ["create", "update", "patch"], absent, "may not read there"],
  ])("%s, with the rights %j", async (_what, names, current, expected) => {
    const { store } = vault({ [asksRights]: [rights(...names)], [gets]: [current] });
    if (!expected.startsWith("may")) expect(await store.prepare(facts)).toEqual({ mount: "secret/", method: expected });
    else
      expect(await failureOf(() => store.prepare(facts))).toEqual({
        kind: "auth",
        message: `${name}: the token ${expected}.`,
        details: {
          meaning: "The secret is written over the version that was read, and read back.",
          hint: "Give the token's policy the capabilities read, create and patch on secret/data/app.",
        },
      });
  });

  it.each<[string, Answer, boolean]>([
    [
      "under data and at the top level",
      { status: 200, body: { data: { "secret/data/app": ["root"] }, "secret/data/app": [] } },
      true,
    ],
    ["only under data", rights("root"), true],
    ["only at the top level", { status: 200, body: { "secret/data/app": ["root"] } }, true],
    ["as a text", { status: 200, body: { data: { "secret/data/app": "root" } } }, false],
    ["of another path", { status: 200, body: { data: { "secret/data/other": ["root"] } } }, false],
    ["nowhere", { status: 200, body: {} }, false],
  ])("accepts rights %s", async (_what, named, isAllowed) => {
    const { store } = vault({ [asksRights]: [named], [gets]: [absent] });
    if (isAllowed) expect(await store.prepare(facts)).toEqual({ mount: "secret/", method: "replace" });
    else expect((await failureOf(() => store.prepare(facts))).message).toBe(`${name}: the token may not read there.`);
  });

  const mount = (path: string, version = "2", type = "kv"): Answers => ({
    [asksMount]: [{ status: 200, body: { data: { path, type, options: { version } } } }],
  });
  const shows = (current: Answer): Answers => ({ [asksRights]: [rights("root")], [gets]: [current] });
  const refused = " cannot be asked for its permissions: the server responded with 400.";
  const noEngine = ": the server does not say which engine is mounted there.";
  const otherEngine = ": secret/ is not a KV engine of version 2.";
  const otherResponse = ": the server's response is not one of KV version 2.";
  const data = (data: unknown, version: unknown = 1): Answer => ({
    status: 200,
    body: { data: { data, metadata: { version } } },
  });
  it.each<[string, Answers, string, string]>([
    ["unknown rights", { [asksRights]: [{ status: 400 }] }, "usage", refused],
    ["a mount elsewhere", mount("other/"), "usage", noEngine],
    ["a mount without a path", { [asksMount]: [ok] }, "usage", noEngine],
    ["another version", mount("secret/", "1"), "usage", otherEngine],
    ["another engine", mount("secret/", "2", "pki"), "usage", otherEngine],
    ["a path that is the mount", mount("secret/app/"), "usage", " names the mount and no secret in it."],
    ["a response of another engine", shows(ok), "unreachable", otherResponse],
    ["a version that is not a number", shows(data({}, "1")), "unreachable", otherResponse],
    ["fields that are a list", shows(data(["a"])), "unreachable", otherResponse],
    ["fields that are a text", shows(data("a")), "unreachable", otherResponse],
    [
      "a field that is not a text",
      shows(at(1, { key: { deep: 1 } })),
      "usage",
      ": the field key of secret/app is not a string.",
    ],
    [
      "a number that a rewrite could change",
      shows({ status: 200, text: inexact }),
      "usage",
      ": secret/app contains a number that a rewrite could change.",
    ],
  ])("fails after %s", async (_what, answers, kind, words) => {
    expect(await failureOf(() => vault(answers).store.prepare(facts))).toMatchObject({
      kind,
      message: name + words,
    });
  });
});
