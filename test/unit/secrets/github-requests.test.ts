import { generateKeyPairSync } from "node:crypto";
import { describe, expect, it } from "vitest";
import { open } from "../../../src/secrets/github-store.ts";
import type { Store } from "../../../src/secrets/store.ts";
import type { Found } from "../../../src/secrets/destination.ts";
import { failureOf } from "../profiles/a-profile.ts";
import { canary } from "./a-secret.ts";
import { type Answer, type Answers, type Script, scripted } from "./store-script.ts";

const server = "https://api.github.com";
const env = { GH_TOKEN: "ghp_token", GH_ENTERPRISE_TOKEN: "ghe_token" };
const address = "my-org/my-repo#NAME";
const name = `--secret-to github:${address}`;

const repository = "GET /repos/my-org/my-repo";
const gets = "GET /repos/my-org/my-repo/actions/secrets/NAME";
const getsKey = "GET /repos/my-org/my-repo/actions/secrets/public-key";
const puts = "PUT /repos/my-org/my-repo/actions/secrets/NAME";

const date = "Sat, 03 Jan 2026 10:00:00 GMT";
const ok: Answer = { status: 200, body: {} };
const absent: Answer = { status: 404 };
const created: Answer = { status: 201, headers: { date } };
const replaced: Answer = { status: 204, headers: { date } };
const busy: Answer = { status: 500, body: {} };
const { x: point = "" } = generateKeyPairSync("x25519").publicKey.export({ format: "jwk" });
const publicKey = Buffer.from(point, "base64url").toString("base64");

function key(id: string): Answer {
  return { status: 200, body: { key_id: id, key: publicKey } };
}

function changed(time: string): Answer {
  return { status: 200, body: { name: "NAME", updated_at: time } };
}

const before = changed("2026-01-02T00:00:00Z");
const now = changed("2026-01-03T10:00:00Z");

interface Opened extends Script {
  readonly store: Store;
}

function github(answers: Answers, more: Readonly<Record<string, string | undefined>> = {}, text = address): Opened {
  const planned = { [repository]: [ok], [getsKey]: [key("1")], [gets]: [absent], ...answers };
  const script = scripted(planned, { ...env, ...more });
  return Object.assign(script, { store: open(text, script.tools) });
}

describe("GitHub's address", () => {
  it.each<[Readonly<Record<string, string | undefined>>, string]>([
    [{}, "https://api.github.com"],
    [{ GITHUB_API_URL: "https://github.example/api/v3/" }, "https://github.example/api/v3"],
    [{ GH_HOST: "GitHub.com" }, "https://api.github.com"],
    [{ GH_HOST: "acme.ghe.com", GITHUB_API_URL: "https://other" }, "https://api.acme.ghe.com"],
    [{ GH_HOST: "github.example:8443" }, "https://github.example:8443/api/v3"],
  ])("of %j is %s", async (more, expected) => {
    const { store, lines } = github({}, more);
    expect([store.address, await store.check(), lines]).toEqual([address, { server: expected }, []]);
  });

  it.each<[Readonly<Record<string, string | undefined>>, string, string, object]>([
    [
      { GH_TOKEN: undefined },
      "auth",
      `${name} has no token.`,
      { hint: 'Set GH_TOKEN, for example with export GH_TOKEN="$(gh auth token)".' },
    ],
    [
      { GH_HOST: "github.example.com", GH_ENTERPRISE_TOKEN: undefined, GITHUB_TOKEN: "ghs_other" },
      "auth",
      `${name} has no token.`,
      {
        meaning: "Only github.com and hosts at ghe.com get GH_TOKEN and GITHUB_TOKEN.",
        hint: 'Set GH_ENTERPRISE_TOKEN, for example with export GH_ENTERPRISE_TOKEN="$(gh auth token --hostname github.example.com)".',
      },
    ],
    [
      { GITHUB_API_URL: "github" },
      "usage",
      "Invalid GITHUB_API_URL: it is not an http address.",
      { hint: "Write it like https://api.github.com." },
    ],
    [
      { GH_HOST: "a/b" },
      "usage",
      "Invalid GH_HOST: it is not the name of a host.",
      { hint: "Set GH_HOST to a name, like github.example.com." },
    ],
    [
      { GH_HOST: "github.example:99999" },
      "usage",
      "Invalid GH_HOST: it is not an http address.",
      { hint: "Write it like https://github.example.com/api/v3." },
    ],
  ])("with %j is an error", async (more, kind, message, details) => {
    expect(await failureOf(() => github({}, more).store.check())).toEqual({ kind, message, details });
  });

  /** integ chooses its token as gh does: https://cli.github.com/manual/gh_help_environment. */
  it.each<[string, Readonly<Record<string, string | undefined>>, string]>([
    ["github.com", {}, "ghp_token"],
    ["github.com", { GH_TOKEN: undefined, GITHUB_TOKEN: "ghs_other" }, "ghs_other"],
    ["a host at ghe.com", { GH_HOST: "acme.ghe.com" }, "ghp_token"],
    ["the API of github.com by its address", { GITHUB_API_URL: "https://api.github.com" }, "ghp_token"],
    ["an enterprise host", { GH_HOST: "github.example" }, "ghe_token"],
    [
      "an enterprise host",
      { GH_HOST: "github.example", GH_ENTERPRISE_TOKEN: undefined, GITHUB_ENTERPRISE_TOKEN: "ghe_other" },
      "ghe_other",
    ],
    ["an enterprise host that is like github.com", { GH_HOST: "api.github.com.example" }, "ghe_token"],
    ["the API of another host by its address", { GITHUB_API_URL: "https://github.example/api/v3" }, "ghe_token"],
  ])("only gets its own token: %s, %j", async (_what, more, token) => {
    const { store, requests } = github({}, more);
    await store.prepare({});
    expect(requests.map(({ headers }) => headers.authorization)).toEqual(
      Array.from({ length: 2 }, () => `Bearer ${token}`),
    );
  });

  const none = {
    meaning:
      "A name has letters, digits and underscores, and does not begin with a digit or GITHUB_. Behind an organization's secret there may be ?visibility=all, ?visibility=private or ?repositories=<name>,<name>.",
    hint: "Write it like --secret-to github:my-org/my-repo#CLIENT_SECRET.",
  };
  it.each(["a/b", "a/#N", "/b#N", "a/b#", "a/.#N", "a/..#N", "a/b#1N", "a/b#GitHub_N", "a/b@#N", "a/b@\u0007#N"])(
    "%j is invalid",
    async (text) => {
      expect(await failureOf(() => github({}, {}, text))).toEqual({
        kind: "usage",
        message: `Invalid --secret-to "github:${text}": it is not github:<owner>/<repo>[@<environment>]#<NAME> or github:org/<organization>#<NAME>.`,
        details: none,
      });
    },
  );

  it.each(["a/b.#N", "a/.b#N", "a/...#N", "A/B@EU#n1", "a/b#XGITHUB_N", "a/b@.x#N"])("%j is valid", (text) => {
    expect(github({}, {}, text).store.address).toBe(text.toLowerCase().replace(/#.*/, (end) => end.toUpperCase()));
  });
});

describe("preparing", () => {
  it("requests the repository, its key and the secret", async () => {
    const { store, lines } = github({});
    expect([await store.prepare({}), lines]).toEqual([{}, [repository, getsKey]]);
  });

  it("requests the environment too, if there is one", async () => {
    const at = "/repos/my-org/my-repo/environments/eu%2Fwest";
    const answers = {
      [`GET ${at}`]: [ok],
      [`GET ${at}/secrets/public-key`]: [key("1")],
    };
    const { store, lines } = github(answers, {}, "my-org/my-repo@EU/West#name");
    expect([await store.prepare({}), lines]).toEqual([{}, [repository, ...Object.keys(answers)]]);
  });

  it.each([".", ".."])("refuses the environment %j, which no URL can contain", async (environment) => {
    const { store, lines } = github({}, {}, `my-org/my-repo@${environment}#NAME`);
    expect(await failureOf(() => store.prepare({}))).toEqual({
      kind: "usage",
      message: `Invalid environment "${environment}".`,
      details: { hint: "Give the id as the API shows it." },
    });
    expect(lines).toEqual([repository]);
  });

  const shown = (body: object): Answer => ({ status: 200, body });
  const noKey = ": GitHub's public key is not one.";
  it.each<[string, Answers, string, string]>([
    ["an invalid key", { [getsKey]: [shown({ key_id: "1", key: "AAAA" })] }, "unreachable", noKey],
    ["a key without an id", { [getsKey]: [shown({ key: publicKey })] }, "unreachable", noKey],
    [
      "no key",
      { [getsKey]: [absent] },
      "auth",
      ": permission denied: it cannot be encrypted: GitHub does not give the public key.",
    ],
    ["no repository", { [repository]: [absent] }, "usage", ": the repository my-org/my-repo is not found."],
    [
      "an archive",
      { [repository]: [shown({ archived: true })] },
      "usage",
      ": the repository is archived, and takes no secret.",
    ],
    [
      "a reader's token",
      { [repository]: [shown({ permissions: { push: false } })] },
      "auth",
      ": the token may not write to the repository.",
    ],
  ])("fails after %s", async (_what, answers, kind, words) => {
    expect(await failureOf(() => github(answers).store.prepare({}))).toMatchObject({ kind, message: name + words });
  });
});

function foundIn(answers: Answers): Found {
  const [first] = answers[gets] ?? [absent];
  const { updated_at: version } = typeof first === "object" ? ((first.body ?? {}) as { updated_at?: string }) : {};
  return version === undefined ? { is: "absent" } : { is: "hidden", version };
}

describe("looking at the secret", () => {
  it("returns that it is absent, or unreadable with a version", async () => {
    expect(await github({ [gets]: [absent] }).store.look({})).toEqual({ is: "absent" });
    expect(await github({ [gets]: [before] }).store.look({})).toMatchObject({ is: "hidden" });
  });

  it.each<[string, Answer]>([
    ["a secret without a time", ok],
    ["a time in a refusal", { ...now, status: 410 }],
  ])("fails after %s", async (_what, answer) => {
    expect((await failureOf(() => github({ [gets]: [answer] }).store.look({}))).message).toContain(
      "cannot be looked at",
    );
  });

  it("a secret that changed after the check is not overwritten", async () => {
    const { store, lines } = github({ [gets]: [now] });
    expect(await store.write(canary, {}, { is: "absent" })).toBe(false);
    expect(lines).not.toContain(puts);
  });
});

describe("writing", () => {
  it.each<[string, Answers]>([
    ["created", { [puts]: [created], [gets]: [absent, now] }],
    ["replacing another", { [puts]: [replaced], [gets]: [before, now] }],
    ["with a clock 10 s slow", { [puts]: [replaced], [gets]: [before, changed("2026-01-03T09:59:50Z")] }],
    ["without a time in the response", { [puts]: [{ status: 204 }], [gets]: [before] }],
  ])("%s is shown as changed", async (_what, answers) => {
    const { store, lines, bodies, requests } = github(answers);
    expect([await store.write(canary, {}, foundIn(answers)), lines]).toMatchObject([
      { is: "hidden" },
      [getsKey, gets, puts, gets],
    ]);
    const { encrypted_value: sealed, ...others } = bodies[2] as { encrypted_value: string; key_id: string };
    expect([others, Buffer.from(sealed, "base64").length]).toEqual([{ key_id: "1" }, 48 + canary.length]);
    expect(requests[2]).toMatchObject({ baseUrl: server, secrets: ["ghp_token", canary] });
  });

  const [lost, again] = [
    [puts, gets],
    [puts, gets, puts],
  ];
  it.each<[string, Answers, readonly string[], readonly number[]]>([
    ["is lost after it took effect", { [puts]: ["lost"], [gets]: [before, now] }, lost, []],
    ["returns an error after it took effect", { [puts]: [busy], [gets]: [before, now] }, lost, []],
    ["times out after it took effect", { [puts]: [{ status: 408 }], [gets]: [before, now] }, lost, []],
    [
      "is lost before it took effect",
      { [puts]: ["lost", replaced], [gets]: [before, before, now] },
      [...again, gets],
      [300],
    ],
    ["is limited", { [puts]: [{ status: 429 }, replaced], [gets]: [before, now] }, [puts, puts, gets], [300]],
    [
      "has an old key",
      { [puts]: [{ status: 422 }, replaced], [getsKey]: [key("1"), key("2")], [gets]: [before, now] },
      [puts, getsKey, puts, gets],
      [],
    ],
    [
      "succeeds at last",
      { [puts]: ["lost", busy, "lost", busy, created], [gets]: [absent, absent, absent, absent, absent, now] },
      [...lost, ...lost, ...lost, ...lost, puts, gets],
      [300, 600, 1200, 2400],
    ],
  ])("that %s is done", async (_what, answers, sent, slept) => {
    const script = github(answers);
    expect(await script.store.write(canary, {}, foundIn(answers))).toMatchObject({ is: "hidden" });
    expect([script.lines, script.slept]).toEqual([[getsKey, gets, ...sent], slept]);
  });

  it("encrypts for the key at that time", async () => {
    const keys = { [getsKey]: [key("1"), key("2")] };
    const { store, bodies } = github({ [puts]: [{ status: 422 }, replaced], [gets]: [before, now], ...keys });
    await store.write(canary, {}, foundIn({ [gets]: [before] }));
    expect(bodies.filter((body) => body !== undefined)).toMatchObject([{ key_id: "1" }, { key_id: "2" }]);
  });

  const waits = [300, 600, 1200, 2400];
  const five = Array.from({ length: 5 }, () => lost).flat();
  const answered = (status: number): string => `${name} cannot be written: GitHub answered ${status}.`;
  const noAnswer = `GitHub at ${server} gave no response: the connection was cut.`;
  const redirected = `GitHub at ${server} responded with a redirect (307), which integ does not follow.`;
  const unchanged = `${name}: GitHub took the secret, and does not show it as changed.`;
  const hour = { status: 429, headers: { "retry-after": "3600" } };
  const keys = ["1", "2", "3", "4", "5", "6"].map(key);
  const older = changed("2026-01-03T09:59:49Z");
  it.each<[string, Answers, kind: string, message: string, sent?: readonly string[], slept?: readonly number[]]>([
    ["is always lost", { [puts]: ["lost"] }, "unreachable", noAnswer, five, waits],
    [
      "is lost, and cannot be looked for",
      { [puts]: ["lost"], [gets]: [before, "lost"] },
      "unreachable",
      noAnswer,
      [puts, gets, gets, gets, gets, gets],
      waits,
    ],
    ["always returns an error", { [puts]: [busy] }, "unreachable", answered(500), five, waits],
    [
      "always has an old key",
      { [puts]: [{ status: 422 }], [getsKey]: keys },
      "usage",
      answered(422),
      [puts, getsKey, puts, getsKey, puts, getsKey, puts, getsKey, puts],
    ],
    ["is refused with its key", { [puts]: [{ status: 422 }] }, "usage", answered(422), [puts, getsKey]],
    ["is refused", { [puts]: [{ status: 400 }] }, "usage", answered(400)],
    ["is not seen", { [puts]: [{ status: 404 }] }, "auth", `${name}: permission denied: it cannot be written.`],
    ["is not allowed", { [puts]: [{ status: 405 }] }, "usage", answered(405)],
    ["is redirected", { [puts]: [{ status: 307 }] }, "usage", redirected],
    ["must wait for an hour", { [puts]: [hour] }, "rate_limited", `${name}: GitHub limits the rate of requests.`],
    ["is not shown", { [puts]: [created] }, "undelivered", unchanged, [puts, gets]],
    ["is shown as older", { [puts]: [replaced], [gets]: [before, older] }, "undelivered", unchanged, [puts, gets]],
  ])("that %s fails", async (_what, answers, kind, message, sent = [puts], slept = []) => {
    const script = github(answers);
    await expect(script.store.write(canary, {}, foundIn(answers))).rejects.toMatchObject({ kind, message });
    expect([script.lines, script.slept]).toEqual([[getsKey, gets, ...sent], slept]);
  });
});
