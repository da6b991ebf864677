import { describe, expect, it } from "vitest";
import type { Found } from "../../../src/secrets/destination.ts";
import type { StoreFacts } from "../../../src/secrets/store.ts";
import { failureOf } from "../profiles/a-profile.ts";
import { canary } from "./a-secret.ts";
import type { Answer, Answers } from "./store-script.ts";
import { absent, address, at, gets, name, ok, patch, patches, posts, replace, server, vault } from "./vault-script.ts";

const found = { is: "text", text: "old", version: "3" } as const;
const busy: Answer = { status: 500, body: {} };
const old = at(3, { key: "old", other: "kept" });
const written = at(4, { key: canary, other: "kept" });
const isKnown = "GET /v1/auth/token/lookup-self";

describe("a patch", () => {
  it("sends the one field with the version that was read, and the secret is masked", async () => {
    const { store, lines, bodies, requests } = vault({ [patches]: [ok] });
    await store.write(canary, patch, found);
    expect([lines, bodies]).toEqual([[patches], [{ options: { cas: 3 }, data: { key: canary } }]]);
    expect(requests[0]).toMatchObject({
      baseUrl: server,
      headers: { "content-type": "application/merge-patch+json" },
      secrets: ["s.token", canary],
    });
  });

  it.each<[string, Answers, readonly string[], readonly number[]]>([
    ["that is lost after it took effect", { [patches]: ["lost"], [gets]: [written] }, [patches, gets], []],
    ["that is lost before it took effect", { [patches]: ["lost", ok], [gets]: [old] }, [patches, gets, patches], [300]],
    ["that returns an error", { [patches]: [busy, ok], [gets]: [old] }, [patches, gets, patches], [300]],
    ["that returns an error after it took effect", { [patches]: [busy], [gets]: [written] }, [patches, gets], []],
    [
      "whose success is unread",
      { [patches]: [{ status: 200, text: "<html>" }], [gets]: [written] },
      [patches, gets],
      [],
    ],
    [
      "that succeeds at last",
      { [patches]: ["lost", busy, busy, "lost", ok], [gets]: [old] },
      [patches, gets, patches, gets, patches, gets, patches, gets, patches],
      [300, 600, 1200, 2400],
    ],
  ])("%s", async (_what, answers, lines, slept) => {
    const script = vault(answers);
    expect(await script.store.write(canary, patch, found)).toBe(true);
    expect([script.lines, script.slept]).toEqual([lines, slept]);
  });

  const five = Array.from({ length: 5 }, () => [patches, gets]).flat();
  const answered = (status: number): string => `${name} cannot be written: the server responded with ${status}.`;
  const noAnswer = `Vault at ${server} gave no response: the connection was cut.`;
  const hour = { status: 429, headers: { "retry-after": "3600" } };
  const [denied, limited] = ["permission denied: it cannot be written.", "the server limits the rate of requests."];
  const once = [patches, gets];
  it.each<[string, Answer | "lost", string, string, readonly string[]]>([
    ["never gets a response", "lost", "unreachable", noAnswer, five],
    ["returns an error each time", busy, "unreachable", answered(500), five],
    ["is refused", { status: 400 }, "usage", answered(400), once],
    ["is redirected", { status: 300 }, "unreachable", answered(300), once],
    ["lacks the permission", { status: 403 }, "auth", `${name}: ${denied}`, [...once, isKnown]],
    ["must wait for an hour", hour, "rate_limited", `${name}: ${limited}`, once],
  ])("that %s fails", async (_what, answer, kind, message, lines) => {
    const script = vault({ [patches]: [answer], [gets]: [old], [isKnown]: [ok] });
    await expect(script.store.write(canary, patch, found)).rejects.toMatchObject({ kind, message });
    expect(script.lines).toEqual(lines);
  });
});

describe("a version that someone else wrote meanwhile is not overwritten", () => {
  it.each<[string, Answers, StoreFacts]>([
    ["by a patch", { [patches]: ["lost"], [gets]: [at(5, { key: "theirs" })] }, patch],
    ["by a patch of a deleted secret", { [patches]: [{ status: 404 }], [gets]: [absent] }, patch],
    ["by a replacement", { [gets]: [at(4, { key: "theirs" })] }, replace],
  ])("%s", async (_what, answers, facts) => {
    expect(await vault(answers).store.write(canary, facts, found)).toBe(false);
  });

  it("by a patch of an empty secret: other fields may have appeared", async () => {
    const script = vault({ [gets]: [at(4, { other: "theirs" })] });
    expect(await script.store.write(canary, patch, { is: "absent", version: "3" })).toBe(false);
    expect(script.lines).toEqual([gets]);
  });
});

describe("a replacement", () => {
  it("keeps the other fields, with the version that was read", async () => {
    const { store, lines, bodies, requests } = vault({ [gets]: [old], [posts]: [ok] });
    await store.write(canary, replace, found);
    expect([lines, bodies]).toEqual([
      [gets, posts],
      [undefined, { options: { cas: 3 }, data: { key: canary, other: "kept" } }],
    ]);
    expect(requests[1]?.headers["content-type"]).toBe("application/json");
  });

  it("of an empty secret adds only the field", async () => {
    const { store, bodies } = vault({ [gets]: [absent], [posts]: [ok] });
    await store.write(canary, replace, { is: "absent", version: "0" });
    expect(bodies).toEqual([undefined, { options: { cas: 0 }, data: { key: canary } }]);
  });

  it.each<[string, readonly Answer[], readonly string[]]>([
    ["is there already", [written], [gets]],
    ["is there already, in the version that was read", [at(3, { key: canary })], [gets]],
    ["is there when it is tried again", [old, old, written], [gets, posts, gets, gets]],
  ])("that %s is not sent again", async (_what, states, lines) => {
    const script = vault({ [gets]: states, [posts]: [busy] });
    expect(await script.store.write(canary, replace, found)).toBe(true);
    expect(script.lines).toEqual(lines);
  });

  it.each<[string, Answer, string, string]>([
    ["a list in the field", at(3, { key: ["a"] }), "usage", ": the field key of secret/app is not a string."],
    [
      "a number that a rewrite could change",
      { status: 200, text: '{"data":{"data":{"n":12345678901234567890},"metadata":{"version":3}}}' },
      "usage",
      ": secret/app contains a number that a rewrite could change.",
    ],
  ])("of %s is never sent", async (_what, state, kind, words) => {
    const script = vault({ [gets]: [state], [posts]: [ok] });
    expect(await failureOf(() => script.store.write(canary, replace, found))).toMatchObject({
      kind,
      message: name + words,
    });
    expect(script.lines).toEqual([gets]);
  });
});

describe("a look", () => {
  it.each<[string, Answer, Found]>([
    ["a text", at(1, { key: canary }), { is: "text", text: canary, version: "1" }],
    ["an empty text", at(1, { key: "" }), { is: "text", text: "", version: "1" }],
    ["another field", at(1, { other: canary }), { is: "absent", version: "1" }],
    ["a field named like an object method", at(1, {}), { is: "absent", version: "1" }],
    ["a deleted version", at(1, null), { is: "absent", version: "1" }],
    ["nothing", absent, { is: "absent", version: "0" }],
  ])("finds %s", async (_what, state, expected) => {
    const { store, lines } = vault({ [gets]: [state] });
    expect([await store.look(patch), lines, store.address]).toEqual([expected, [gets], address]);
  });

  it.each([5, [canary]])("refuses %j, which is not a text", async (value) => {
    expect((await failureOf(() => vault({ [gets]: [at(1, { key: value })] }).store.look(patch))).kind).toBe("usage");
  });
});
