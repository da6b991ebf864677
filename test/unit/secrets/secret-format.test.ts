import { execFileSync } from "node:child_process";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SecretFormat } from "../../../src/secrets/destination.ts";
import {
  checkSecretFormat,
  checkSecretNames,
  isComplete,
  parseSecret,
  renderSecret,
} from "../../../src/secrets/secret-format.ts";
import { failureOf } from "../profiles/a-profile.ts";
import { client, delivery, key } from "./a-secret.ts";

const { origin } = delivery;
const everyFormat: readonly SecretFormat[] = [
  "raw",
  "line",
  "json",
  "json-string",
  "env",
  "env:ID=client_id,TOKEN=secret",
  'template:{"token":"{secret}","again":"{secret}","id":"{id}"}',
];

describe("renderSecret", () => {
  it.each([
    ["raw", client, "canary-8f2e6b"],
    ["line", client, "canary-8f2e6b\n"],
    ["json", client, '{"client_id":"cid_1","client_secret":"canary-8f2e6b"}\n'],
    ["json", key, '{"id":"key_1","secret":"canary-8f2e6b"}\n'],
    ["json-string", client, '"canary-8f2e6b"'],
    ["env", client, "INTEG_CLIENT_ID=cid_1\nINTEG_CLIENT_SECRET=canary-8f2e6b\n"],
    ["env", key, "INTEG_API_KEY=canary-8f2e6b\n"],
    [
      "env:CLIENT_ID=client_id,A=secret,ACCOUNT=service_account",
      client,
      "CLIENT_ID=cid_1\nA=canary-8f2e6b\nACCOUNT=sa_1\n",
    ],
    [
      "template:{secret}|{client_id}|{id}|{service_account}|{profile}|{region}|{entry}|{other}|{}|{secret",
      client,
      "canary-8f2e6b|cid_1|oc_1|sa_1|prod|eu|6k2f9|{other}|{}|{secret",
    ],
  ] as const)("%s of %o", (as, secret, text) => {
    expect(renderSecret(secret, as, origin)).toBe(text);
  });

  it("half a character is never changed silently: only JSON can write it", () => {
    const secret = "canary-\uD800";
    for (const as of everyFormat.filter((format) => !format.startsWith("json")))
      expect(() => renderSecret({ ...key, secret }, as, origin)).toThrow("lone surrogate");
    expect(JSON.parse(renderSecret({ ...key, secret }, "json", origin))).toMatchObject({ secret });
    expect(JSON.parse(renderSecret({ ...key, secret }, "json-string", origin))).toBe(secret);
  });

  it("env: a shell reads exactly the value, and runs none of it", () => {
    const nasty = fc.string({ unit: fc.constantFrom(..."a'\"\\$`!;&|<>() *?~#=é\n\t"), minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(nasty, (secret) => {
        const lines = renderSecret({ ...key, secret }, "env", origin);
        const script = `${lines}printf %s "$INTEG_API_KEY"`;
        expect(execFileSync("/bin/sh", ["-c", script], { encoding: "utf8" })).toBe(secret);
      }),
      { numRuns: 60 },
    );
  });

  it("every secret can be read back from every format", () => {
    const text = fc.string({ unit: fc.constantFrom(..."ab$&{}'\"\\|.*(=é"), minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(text, fc.constantFrom(...everyFormat), (secret, as) => {
        expect(parseSecret(renderSecret({ ...client, secret }, as, origin), as)).toBe(secret);
      }),
    );
  });
});

describe("isWhole", () => {
  it("distinguishes a complete text from every prefix; formats without an end rely on the file's length", () => {
    for (const as of everyFormat) {
      for (const secret of [client, key]) {
        const text = renderSecret(secret, as, origin);
        const hasEnd = ["line", "json", "json-string", "env"].includes(as);
        expect([isComplete(text, as, true), isComplete(text, as, false)]).toEqual([true, hasEnd]);
        for (let length = 0; length < text.length; length++)
          expect(isComplete(text.slice(0, length), as, false)).toBe(false);
        expect(isComplete(`${text.slice(0, 3)}\0${text.slice(4)}`, as, true)).toBe(false);
      }
    }
  });
});

describe("a typed format", () => {
  it("is a known word, env with names, or a template", () => {
    for (const as of ["raw", "line", "json", "json-string", "env", "template:a{secret}"])
      expect(checkSecretFormat(as)).toBe(as);
    expect(checkSecretNames("A=secret, B=client_id")).toBe("env:A=secret,B=client_id");
  });

  it.each(["yaml", "", "template:", "template:{client_id}", "env:A=secret"])("is never %j", async (text) => {
    expect((await failureOf(() => checkSecretFormat(text))).kind).toBe("usage");
  });

  it.each([
    "",
    "A",
    "A=",
    "=secret",
    "A=token",
    "1A=secret",
    "A B=secret",
    "A=client_id",
    "A=secret,A=id",
    "A=secret,",
  ])("has no names in %j", async (text) => {
    expect((await failureOf(() => checkSecretNames(text))).kind).toBe("usage");
  });
});

describe("a text found after a crash", () => {
  it.each<[SecretFormat, boolean, string, boolean]>([
    ["raw", true, "s", true],
    ["raw", false, "s", false],
    ["raw", true, "", false],
    ["raw", true, "s\0", false],
    ["line", false, "s\n", true],
    ["line", true, "s", false],
    ["line", true, "\n", false],
    ["line", true, "s\nt\n", false],
    ["line", true, "s\n\n", false],
    ["json", false, '{"id":"k","secret":"s"}\n', true],
    ["json", true, '{"id":"k","secret":"s"}', false],
    ["json", true, '{"id":"k"\n', false],
    ["json", true, '{"id":"k"}\n{"id":"k"}\n', false],
    ["json-string", false, '"s"', true],
    ["json-string", true, '"s', false],
    ["env", false, "INTEG_CLIENT_ID=c\nINTEG_CLIENT_SECRET=s\n", true],
    ["env", false, "INTEG_API_KEY=s\n", true],
    ["env", true, "INTEG_CLIENT_ID=c\n", false],
    ["env", true, "INTEG_CLIENT_SECRET=\n", false],
    ["env", true, "INTEG_CLIENT_SECRET=s", false],
    ["env", true, "XINTEG_CLIENT_SECRET=s\n", false],
    ["env:A=secret", true, "A=s\n", true],
    ["env:A=secret", false, "A=s\n", false],
    ["env:A=secret", true, "A=s", false],
    ["template:{secret}", true, "s", true],
    ["template:{secret}", false, "s", false],
  ])("%s, cut to its length: %s: %j", (as, cut, text, whole) => {
    expect(isComplete(text, as, cut)).toBe(whole);
  });

  it.each<[SecretFormat, string, string | undefined]>([
    ["raw", "s\n", "s"],
    ["line", "s", "s"],
    ["json-string", "7", undefined],
    ["json", '{"client_secret":"s"}', "s"],
    ["json", '{"secret":"s"}', "s"],
    ["json", '{"secret":7}', undefined],
    ["env", "INTEG_CLIENT_ID=c\nINTEG_CLIENT_SECRET=s\n", "s"],
    ["env", "INTEG_API_KEY='a'\\''b'\n", "a'b"],
    ["env", "OTHER=s\n", undefined],
    ["env:A=secret", "A=s\n", "s"],
    ["env:A=secret", "INTEG_API_KEY=s\n", undefined],
    ["template:<{id}|{secret}|{secret}>", "<x|s|s>", "s"],
    ["template:<{id}|{secret}|{secret}>", "<x|s|t>", undefined],
    ["template:{other}{secret}.", "{other}s.", "s"],
    ["template:{other}{secret}.", "xs.", undefined],
    ["template:a.{secret}", "axs", undefined],
  ])("%s of %j is read", (as, text, secret) => {
    expect(parseSecret(text, as)).toBe(secret);
  });
});

it.each([
  ["yaml", "Choose one of raw, line, json, json-string, env or template:<text>."],
  ["templat:{secret}", "Choose one of raw, line, json, json-string, env or template:<text>."],
  ["", "Choose one of"],
])("%j is not a format", async (text, hint) => {
  expect((await failureOf(() => checkSecretFormat(text))).details.hint).toContain(hint);
});

it.each([
  ["a", "Use the fields secret, client_id, id, service_account, profile, region, entry: "],
  ["=secret", "Use the fields"],
  ["A=", "Use the fields"],
  ["A=other", "Use the fields"],
  ["1A=secret", "Use the fields"],
])("%j names no variable", async (text, hint) => {
  expect((await failureOf(() => checkSecretNames(text))).details.hint).toContain(hint);
});

it("unknown values are left out of env, unless they are requested by name", () => {
  const none = { ...client, clientId: undefined };
  expect(renderSecret(none, "env", origin)).toBe("INTEG_CLIENT_SECRET=canary-8f2e6b\n");
  expect(renderSecret(none, "env:ID=client_id,A=secret", origin)).toBe("ID=''\nA=canary-8f2e6b\n");
  expect(renderSecret(none, "template:{client_id}{secret}", { ...origin, serviceAccount: undefined })).toBe(
    "canary-8f2e6b",
  );
});
