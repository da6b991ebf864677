// Rotations of access keys in place, and of the profile's own key. keys-replacement.test.ts has those by replacement.
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { describe, expect, it, vi } from "vitest";
import type { Ended, Home } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { entries, deskOfTests, type KeysDesk, rotation, secretIn, unfinishedEntries } from "./keys-desk.ts";

let desk: KeysDesk;
deskOfTests((opened) => (desk = opened));

function rotateUnconfirmed(at: Home, id: string, ...flags: string[]): Promise<Ended> {
  return at.integ(["keys", "rotate", id, "--retry-for", "20s", ...flags]);
}

/** Without a terminal, a rotation in place needs --yes. */
function rotate(at: Home, id: string, ...flags: string[]): Promise<Ended> {
  return rotateUnconfirmed(at, id, "--yes", ...flags);
}

async function withOwnKey(): Promise<{ at: Home; id: string }> {
  const { at, own } = await desk.withProfile();
  await desk.service.calm();
  return { at, id: own.id };
}

describe("in place", () => {
  it("warns of a possible loss first, replaces the secret, and finishes the entry", async () => {
    const at = desk.withToken();
    const old = await desk.makeKey({ name: "in-place" });
    const ended = await rotate(at, old.id, "--secret-file", "new.secret", "--json");
    expect(ended.code, ended.stderr).toBe(0);
    expect(ended.stderr).toContain("--by-replacement avoids this");
    expect(JSON.parse(ended.stdout)).toMatchObject({ id: old.id, secret: null });
    expect(await desk.opens(old.secret)).toBe(false);
    expect(await desk.opens(secretIn(at, "new.secret"))).toBe(true);
    expect(await entries(at)).toMatchObject([
      { operation: "access_key.rotate", state: "done", resource_id: old.id, attempts: 1 },
    ]);
  });

  it.each([
    ["before it was handled", "drop=before", 0],
    ["after it took effect", "drop=after", 1],
  ])(
    "a response lost %s: exit 7 after one POST, and a second rotation only on request",
    async (_name, fault, generation) => {
      const at = desk.withToken();
      const old = await desk.makeKey({ name: "in-place" });
      await desk.service.fault(`POST /api/v1/access-keys/*/rotate ${fault} times=1`);
      const ended = await rotate(at, old.id, "--secret-file", "new.secret");
      expect(ended.code, ended.stderr).toBe(7);
      expect(ended.stderr).toContain("old secret may have stopped working");
      expect(await desk.sent("POST", rotation)).toBe(1);
      expect((await desk.key(old.id)).generation).toBe(generation);
      expect((await rotate(at, old.id, "--secret-file", "new.secret")).code).toBe(7);
      expect((await integHere(at, ["journal", "recover", "--yes"])).code).toBe(7);
      expect(await desk.sent("POST", rotation)).toBe(1);
      const next = /^ {2}Next: integ (.+)$/m.exec((await integHere(at, ["journal", "recover"])).stderr)?.[1] ?? "";
      expect(next).toContain("--replace-lost-secret");
      const again = await at.integ(next.split(" "));
      expect(again.code, again.stderr).toBe(0);
      expect(await desk.sent("POST", rotation)).toBe(2);
      expect(await desk.opens(secretIn(at, "new.secret"))).toBe(true);
      expect(await unfinishedEntries(at)).toEqual([]);
    },
  );

  it("waits after a 429; a revoked key is exit 5, an unknown one exit 4, and nothing stays unfinished", async () => {
    const at = desk.withToken();
    const old = await desk.makeKey({ name: "in-place" });
    await desk.service.fault("POST /api/v1/access-keys/*/rotate status=429 retry-after=1 times=1");
    expect((await rotate(at, old.id, "--secret-file", "a")).code).toBe(0);
    await at.integ(["keys", "revoke", old.id, "--yes"]);
    const revoked = await rotate(at, old.id, "--secret-file", "b");
    expect(revoked.code).toBe(5);
    expect(revoked.stderr).toContain("Next: integ keys list");
    expect((await rotate(at, "ak_nobody", "--secret-file", "c")).code).toBe(4);
    expect(await unfinishedEntries(at)).toEqual([]);
  });

  it("flags for a new key are invalid: exit 2, nothing sent", async () => {
    const at = desk.withToken();
    for (const flag of [["--scope", "*"], ["--expires-in", "1d"], ["--overlap", "1h"], ["--marker"]])
      expect((await rotate(at, "ak_us_idle", ...flag)).code).toBe(2);
    expect(await desk.sent("POST", /./)).toBe(0);
  });
});

describe("without a terminal", () => {
  it("a rotation in place needs --yes for any key, and sends nothing without it", async () => {
    const { at } = await desk.withProfile();
    const old = await desk.makeKey({ name: "in-place" });
    await desk.service.calm();
    const { code, stderr } = await rotateUnconfirmed(at, old.id, "--secret-file", "x");
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^ {2}Next: integ keys rotate .* --yes$/m)]);
    expect(await desk.sent("POST", /access-keys/)).toBe(0);
    expect((await rotate(at, old.id, "--secret-file", "x")).code).toBe(0);
  });

  it.each([
    ["in place", []],
    ["by replacement", ["--by-replacement"]],
  ])(
    "%s, a key that may be the caller's own is refused; with --yes the caller is locked out and the repair is printed",
    async (_how, how) => {
      const { at, own } = await desk.withProfile("--api-key-id", "");
      await desk.service.calm();
      const words = [own.id, ...how, "--secret-file", "x"] as const;
      const { code, stderr } = await rotateUnconfirmed(at, ...words);
      expect([code, stderr]).toEqual([
        2,
        expect.stringContaining("Set it with integ profiles edit p --api-key-id <id>."),
      ]);
      expect(await desk.sent("POST", /access-keys/)).toBe(0);
      const agreed = await rotate(at, ...words);
      expect(agreed.code, agreed.stderr).toBe(0);
      const repair = /Repair it: integ (.+) < (\S+)$/m.exec(agreed.stderr);
      expect(repair, agreed.stderr).not.toBeNull();
      expect(repair![1]!.endsWith(`--api-key-id ${own.id}`)).toBe(how.length === 0);
      expect((await at.integ(["keys", "list"])).code).toBe(3);
      const repaired = await at.integ(repair![1]!.split(" "), { input: readFileSync(at.path(repair![2]!), "utf8") });
      expect(repaired.code, repaired.stderr).toBe(0);
      expect((await at.integ(["keys", "list"])).code).toBe(0);
    },
  );

  it("a key for ingestion is never the caller's own, and a key known not to be the caller's needs no question", async () => {
    const push = await desk.makeKey({ name: "ingest", scopes: ["push-ingest:*"], keyType: "service_account" });
    const { code, stderr } = await rotateUnconfirmed(desk.withToken(), push.id, "--by-replacement");
    expect(stderr).not.toContain("lock");
    // A bearer token alone cannot prove the new key, so both keys stay.
    expect(code, stderr).toBe(8);
    const { at } = await desk.withProfile();
    const other = await desk.makeKey({ name: "other" });
    const replaced = await rotateUnconfirmed(at, other.id, "--by-replacement", "--secret-file", "x");
    expect(replaced.code, replaced.stderr).toBe(0);
    expect(replaced.stderr).not.toContain("Repair");
  });
});

describe("the profile's own key", () => {
  it("--update-profile proves the new secret, stores it in the profile, and the profile works", async () => {
    const { at, own } = await desk.withProfile();
    const { code, stdout, stderr } = await rotate(at, own.id, "--update-profile", "--json");
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ id: own.id, secret: null });
    // integ exchanges the old secret before the request, and the new secret before the profile stores it.
    expect(await desk.sent("POST", /access-tokens$/)).toBe(2);
    expect(await desk.opens(own.secret)).toBe(false);
    expect((await at.integ(["keys", "list"])).code).toBe(0);
    expect((await rotate(at, own.id, "--update-profile")).code).toBe(0);
    expect((await at.integ(["keys", "list"])).code).toBe(0);
  });

  it("is changed only with a flag, once the profile knows its key", async () => {
    const { at, id } = await withOwnKey();
    for (const flags of [[], ["--by-replacement"], ["--secret-file", "x"]]) {
      const { code, stderr } = await rotateUnconfirmed(at, id, ...flags);
      expect(code).toBe(2);
      const step = ["integ keys rotate", id, "--retry-for 20s", ...flags, "--update-profile"].join(" ");
      expect(stderr).toContain(`Next: ${step}\n`);
    }
    expect(await desk.sent("POST", /access-keys/)).toBe(0);
    expect((await rotate(at, id, "--yes", "--secret-file", "x")).code).toBe(0);
    expect((await at.integ(["keys", "list"])).code).toBe(3);
  });

  it("--secret-profile with its own name does the same, and the profile then knows its key", async () => {
    const { at, own } = await desk.withProfile("--api-key-id", "");
    expect((await rotate(at, own.id, "--secret-profile", "p")).code).toBe(0);
    expect((await at.integ(["keys", "list"])).code).toBe(0);
    expect((await rotateUnconfirmed(at, own.id, "--secret-file", "x")).code).toBe(2);
    expect((await rotate(at, own.id, "--secret-profile", "p")).code).toBe(0);
    expect((await at.integ(["keys", "list"])).code).toBe(0);
  });

  it("a replacement that was killed before its delivery to the profile is finished by recover", async () => {
    const { at, id } = await withOwnKey();
    await desk.service.fault("POST /api/v1/access-tokens latency=20s after=1 times=1");
    const words = ["--by-replacement", "--type", "user_bound", "--expires-in", "90d", "--update-profile", "--yes"];
    const child = at.start(["keys", "rotate", id, ...words]);
    const exchanges = (): Promise<number> => desk.sent("POST", /access-tokens$/);
    const before = await exchanges();
    await vi.waitUntil(async () => (await exchanges()) === before + 2, { timeout: 30_000 });
    child.kill("SIGKILL");
    await once(child, "close");
    const ended = await at.integ(["journal", "recover"]);
    expect(ended.code, ended.stderr).toBe(0);
    expect((await at.integ(["entities", "list"])).code).toBe(0);
    expect(await desk.key(id)).toMatchObject({ status: "revoked" });
  });

  it("--update-profile with another key, or with a profile that cannot store it, is exit 2", async () => {
    const { at } = await withOwnKey();
    const other = await desk.makeKey({ name: "other" });
    expect((await rotate(at, other.id, "--update-profile")).code).toBe(2);
    expect((await rotate(desk.withToken(), other.id, "--update-profile")).code).toBe(2);
    expect((await rotate(at, other.id, "--update-profile", "--secret-file", "x")).code).toBe(2);
    await integHere(at, ["profiles", "edit", "p", "--api-key-command", "echo x"]);
    expect((await rotate(at, other.id, "--update-profile")).code).toBe(2);
    expect(await desk.sent("POST", rotation)).toBe(0);
  });

  it("a lost response that revoked the profile's secret is reported with the repair", async () => {
    const { at, id } = await withOwnKey();
    await desk.service.fault("POST /api/v1/access-keys/*/rotate drop=after times=1");
    expect((await rotate(at, id, "--update-profile")).code).toBe(7);
    const recovered = await integHere(at, ["journal", "recover"]);
    expect(recovered.code, recovered.stderr).toBe(9);
    expect(recovered.stderr).toContain(`if the rotation of ${id} is the cause`);
    expect(recovered.stderr).toContain(
      "Fix: Rotate the key with --secret-profile p, as a profile that may administer keys (-p).",
    );
  });
});

describe("a key or client that another profile of this machine uses", () => {
  const warning = /Warning: Profile nightly uses (\S+) too, and will be locked out\./;
  const nightly = (at: Home, ...credential: string[]): Promise<Ended> => {
    const where = ["--region", "us", "--base-url", desk.service.us.base_url, "--no-verify"];
    const words = ["profiles", "add", "nightly", ...where, ...credential];
    return integHere(at, words, { input: "a-secret-of-some-length" });
  };

  it.each([
    ["rotated in place", ["keys", "rotate"], ["--secret-file", "s"]],
    ["replaced", ["keys", "rotate"], ["--by-replacement", "--accept-unproven", "--secret-file", "s"]],
    ["revoked", ["keys", "revoke"], []],
  ])("%s: the profile is named", async (_what, verb, flags) => {
    const at = desk.withToken();
    const { id } = await desk.makeKey({ name: "shared" });
    expect((await nightly(at, "--api-key-stdin", "--api-key-id", id)).code).toBe(0);
    const { code, stderr } = await integHere(at, [...verb, id, "--yes", ...flags]);
    expect([code, warning.exec(stderr)?.[1]], stderr).toEqual([0, id]);
  });

  it("is not named if the profile gets the new secret", async () => {
    const at = desk.withToken();
    const { id } = await desk.makeKey({ name: "shared" });
    await nightly(at, "--api-key-stdin", "--api-key-id", id);
    const { stderr } = await integHere(at, ["keys", "rotate", id, "--yes", "--force", "--secret-profile", "nightly"]);
    expect(stderr).not.toMatch(warning);
  });
});
