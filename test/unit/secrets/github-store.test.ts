// Checks that integ encrypts a GitHub Actions secret like libsodium, repeats lost writes, and confirms the secret by the
// time of its change. The server is test/support/github-server.ts, and libsodium decrypts the values that it receives.
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import { Failure } from "../../../src/errors.ts";
import { sealedBox } from "../../../src/secrets/sealed-box.ts";
import { gitHubOfFile } from "../../support/github-server.ts";
import { openSealed } from "../../support/sodium.ts";
import { canary } from "./a-secret.ts";
import { closeConnections, deliver, setUp, endOf, isFound, prepared, type StoreSetup } from "./a-store.ts";
import { isMissing } from "../../support/tools.mjs";

const github = await gitHubOfFile();
afterEach(() => {
  closeConnections();
  github.calm();
  github.forgetSecrets();
  Object.assign(github.repository, { archived: false, push: true });
  github.skewSeconds = 0;
});

const to = "github:my-org/my-repo#CLIENT_SECRET";
const write = /^PUT /;

function at(env: Readonly<Record<string, string | undefined>> = {}): StoreSetup {
  return setUp({ GITHUB_API_URL: github.origin, GH_ENTERPRISE_TOKEN: github.token, ...env });
}

describe.skipIf(isMissing("libsodium"))("a sealed box", () => {
  it("is opened by libsodium with any content, and always differs", () => {
    const { d = "", x = "" } = generateKeyPairSync("x25519").privateKey.export({ format: "jwk" });
    const key = { public: Buffer.from(x, "base64url"), secret: Buffer.from(d, "base64url") };
    const messages = [
      ...Array.from({ length: 200 }, (_, length) => randomBytes(length).toString("hex").slice(0, length)),
      "grüße 🔑 \u0000\n",
      "x".repeat(48 * 1024),
    ];
    const boxes = messages.map((message) => sealedBox(Buffer.from(message), key.public).toString("base64"));
    const named = { public: key.public.toString("base64"), secret: key.secret.toString("base64") };
    expect(openSealed(boxes.map((sealed) => ({ sealed, ...named })))).toEqual(messages);
    expect(sealedBox(Buffer.from("a"), key.public)).not.toEqual(sealedBox(Buffer.from("a"), key.public));
    const [opened] = openSealed([{ ...named, sealed: boxes[9]!, secret: randomBytes(32).toString("base64") }]);
    expect(opened).toBeUndefined();
  });
});

describe.skipIf(isMissing("libsodium")).each([
  ["of a repository", to, "CLIENT_SECRET", "/repos/my-org/my-repo/actions/secrets/CLIENT_SECRET"],
  [
    "of an environment",
    "github:My-Org/my-repo@EU/west#client_secret",
    "eu/west#CLIENT_SECRET",
    "/repos/my-org/my-repo/environments/eu%2Fwest/secrets/CLIENT_SECRET",
  ],
])("a secret %s", (_place, address, name, path) => {
  it("is exactly the secret, encrypted before it is sent", async () => {
    const here = at();
    await deliver(here, await prepared(here, address));
    expect([github.secret(name), github.changes(name)]).toEqual([canary, 1]);
    expect(github.log.filter((line) => write.test(line))).toEqual([`PUT ${path}`]);
    expect(JSON.stringify(github.requests)).not.toContain(canary);
    expect(here.record).toMatchObject({ kind: "store", facts: { server: github.origin } });
    // GitHub shows no secret: integ recognizes its secret by the time of the change, until someone else changes the secret.
    const first = { ...here };
    expect(await isFound(first)).toBe(true);
    github.skewSeconds = 60;
    await deliver(here, await prepared(here, address));
    expect([github.secret(name), github.changes(name)]).toEqual([canary, 2]);
    expect(await isFound(first)).toBe(false);
  });
});

// GitHub's PUT /orgs/{org}/actions/secrets/{secret_name} needs the visibility with each write.
describe.skipIf(isMissing("libsodium"))("a secret of an organization", () => {
  const secret = "github:org/Acme#client_secret";
  const delivered = async (address: string): Promise<unknown> => {
    const here = at();
    await deliver(here, await prepared(here, address));
    expect([github.secret("acme#CLIENT_SECRET"), await isFound(here)]).toEqual([canary, true]);
    expect(here.record).toMatchObject({ kind: "store", to: "github:org/acme#CLIENT_SECRET" });
    return github.access.get("CLIENT_SECRET");
  };

  it("is for its private repositories by default, and keeps its visibility when it is written again", async () => {
    expect(await delivered(secret)).toEqual({ visibility: "private", ids: undefined });
    const selected = { visibility: "selected", ids: Array.from({ length: 3 }, (_, index) => index + 1) };
    for (const access of [{ visibility: "all", ids: undefined }, selected]) {
      github.access.set("CLIENT_SECRET", access);
      expect(await delivered(secret)).toEqual(access);
    }
  });

  it.each([
    ["visibility=all", { visibility: "all", ids: undefined }],
    ["visibility=private", { visibility: "private", ids: undefined }],
    ["repositories=api,web", { visibility: "selected", ids: [11, 12] }],
  ])("has the visibility of %s", async (options, access) => {
    github.access.set("CLIENT_SECRET", { visibility: "selected", ids: [1] });
    expect(await delivered(`${secret}?${options}`)).toEqual(access);
  });

  it.each([
    ["github:org/absent#A", "usage: --secret-to github:org/absent#A: the organization absent is not found."],
    [
      "github:org/acme#A?repositories=api,none",
      "usage: --secret-to github:org/acme#A: the organization has no repository none.",
    ],
    ["github:org/acme#A?visibility=selected", "usage: Invalid --secret-to"],
    ["github:org/acme@production#A", "usage: Invalid --secret-to"],
    ["github:my-org/my-repo#A?visibility=all", "usage: Invalid --secret-to"],
  ])("%s is refused before anything is written", async (address, words) => {
    expect(await endOf(() => prepared(at(), address))).toContain(words);
    expect(github.log.filter((line) => write.test(line))).toEqual([]);
  });
});

it("a secret that someone removed, and whose write was lost, is written again", async () => {
  const [address, name] = ["github:my-org/my-repo#CLIENT_SECRET", "CLIENT_SECRET"];
  const here = at();
  await deliver(here, await prepared(here, address));
  const destination = await prepared(here, address);
  github.calm();
  github.plan(/^GET .*CLIENT_SECRET$/, { status: 404 });
  github.plan(/^GET .*CLIENT_SECRET$/, () => {});
  github.plan(write, "lost before");
  await deliver(here, destination);
  expect([github.secret(name), github.changes(name)]).toEqual([canary, 2]);
});

it("a secret is recognized later if GitHub fails right after it showed the change", async () => {
  const here = at();
  const destination = await prepared(here, to);
  github.calm();
  github.plan(/^GET .*CLIENT_SECRET$/, { status: 503 }, 99);
  github.plan(/^GET .*CLIENT_SECRET$/, () => {}, 3);
  await deliver(here, destination);
  github.calm();
  expect(await isFound(here)).toBe(true);
});

it("a secret that another person writes just before integ's write is not mistaken for integ's own", async () => {
  const here = at();
  const destination = await prepared(here, to);
  github.calm();
  const theirs = { status: 200, body: { name: "CLIENT_SECRET", updated_at: "2020-01-01T00:00:00Z" } };
  github.plan(/^GET .*CLIENT_SECRET$/, theirs, 99);
  // The server uses the last plan first.
  github.plan(/^GET .*CLIENT_SECRET$/, { status: 404, body: { message: "Not Found" } });
  const seen: unknown[] = [];
  const refused = deliver(here, destination, async (place, found) => {
    seen.push([found.is, "proof" in place ? place.proof : undefined]);
    if (found.is !== "absent") throw new Failure("usage", "It is another's.");
  });
  await expect(refused).rejects.toMatchObject({ kind: "conflict" });
  expect(seen).toEqual([
    ["absent", undefined],
    ["hidden", undefined],
  ]);
  expect(github.log.filter((line) => line.startsWith("PUT "))).toEqual([]);
});
