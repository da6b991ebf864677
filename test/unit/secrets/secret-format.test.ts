import { execFileSync } from "node:child_process";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkSecretFormat, isWhole, renderSecret } from "../../../src/secrets/secret-format.ts";
import { failureOf } from "../profiles/a-profile.ts";
import { client, key } from "./a-secret.ts";

describe("renderSecret", () => {
  it.each([
    ["raw", client, "canary-8f2e6b\n"],
    ["json", client, '{"client_id":"cid_1","client_secret":"canary-8f2e6b"}\n'],
    ["json", key, '{"id":"key_1","secret":"canary-8f2e6b"}\n'],
    ["env", client, "INTEG_CLIENT_ID=cid_1\nINTEG_CLIENT_SECRET=canary-8f2e6b\n"],
    ["env", key, "INTEG_API_KEY=canary-8f2e6b\n"],
  ] as const)("%s of %o", (format, secret, text) => {
    expect(renderSecret(secret, format)).toBe(text);
  });

  it("half a character is never changed without a word: only JSON can write it", () => {
    const secret = "canary-\uD800";
    for (const format of ["raw", "env"] as const)
      expect(() => renderSecret({ ...key, secret }, format)).toThrow("lone surrogate");
    expect(JSON.parse(renderSecret({ ...key, secret }, "json"))).toMatchObject({ secret });
  });

  it("env: a shell reads back exactly what was given, and runs none of it", () => {
    const nasty = fc.string({ unit: fc.constantFrom(..."a'\"\\$`!;&|<>() *?~#=é\n\t"), minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(nasty, (secret) => {
        const lines = renderSecret({ ...key, secret }, "env");
        const script = `${lines}printf %s "$INTEG_API_KEY"`;
        expect(execFileSync("/bin/sh", ["-c", script], { encoding: "utf8" })).toBe(secret);
      }),
      { numRuns: 60 },
    );
  });
});

describe("isWhole", () => {
  it("knows a whole text from every beginning of it, in every format", () => {
    for (const format of ["raw", "json", "env"] as const) {
      for (const secret of [client, key]) {
        const text = renderSecret(secret, format);
        expect(isWhole(text, format)).toBe(true);
        for (let length = 0; length < text.length; length++) expect(isWhole(text.slice(0, length), format)).toBe(false);
        expect(isWhole(`${text.slice(0, 3)}\0${text.slice(4)}`, format)).toBe(false);
      }
    }
  });
});

describe("checkSecretFormat", () => {
  it("takes the three, raw by default", async () => {
    expect([undefined, "raw", "json", "env"].map(checkSecretFormat)).toEqual(["raw", "raw", "json", "env"]);
    expect((await failureOf(() => checkSecretFormat("yaml"))).kind).toBe("usage");
  });
});
