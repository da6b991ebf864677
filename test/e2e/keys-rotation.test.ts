// Rotation of access keys: in place, where a lost answer is told and never repeated by itself; by replacement, which
// never ends without a working key; and of the key that the profile itself lives on.
import { readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Ended, Home } from "../support/program.ts";
import { creation, entries, KeysDesk, rotation, secretIn, unsettled } from "./keys-desk.ts";

let desk: KeysDesk;

beforeAll(async () => {
  desk = await KeysDesk.open();
});

afterEach(async () => {
  await desk.service.calm();
  desk.clear();
});

afterAll(async () => {
  await desk.close();
});

function rotate(at: Home, id: string, ...flags: string[]): Promise<Ended> {
  return at.integ(["keys", "rotate", id, "--retry-for", "20s", ...flags]);
}

/** A profile that was told which key is its own. */
async function knownOwn(): Promise<{ at: Home; id: string }> {
  const { at, own } = await desk.withProfile("--api-key-id", "OWN");
  await desk.service.calm();
  return { at, id: own.id };
}

describe("in place", () => {
  it("says before what can be lost, replaces the secret, and settles the entry", async () => {
    const at = desk.withToken();
    const old = await desk.makeKey({ name: "in-place" });
    const ended = await rotate(at, old.id, "--secret-file", "new.secret", "--json");
    expect(ended.code, ended.stderr).toBe(0);
    expect(ended.stderr).toContain("--by-replacement cannot end so");
    expect(JSON.parse(ended.stdout)).toMatchObject({ id: old.id, secret: null });
    expect(await desk.opens(old.secret)).toBe(false);
    expect(await desk.opens(secretIn(at, "new.secret"))).toBe(true);
    expect(await entries(at)).toMatchObject([
      { operation: "access_key.rotate", state: "done", resource_id: old.id, attempts: 1 },
    ]);
  });

  it.each([
    ["before it was handled", "drop=before times=1", 0],
    ["after it took effect", "drop=after times=1", 1],
    ["in the middle of the answer", "cut=20 times=1", 1],
    ["with a 500", "status=500 effect=kept times=1", 1],
  ])(
    "an answer lost %s: exit 7 after one POST, and it rotates again only when asked",
    async (_name, fault, generation) => {
      const at = desk.withToken();
      const old = await desk.makeKey({ name: "in-place" });
      await desk.service.fault(`POST /api/v1/access-keys/*/rotate ${fault}`);
      const ended = await rotate(at, old.id, "--secret-file", "new.secret");
      expect(ended.code, ended.stderr).toBe(7);
      expect(ended.stderr).toContain("old secret may be dead");
      expect(await desk.sent("POST", rotation)).toBe(1);
      expect((await desk.key(old.id)).generation).toBe(generation);
      expect((await rotate(at, old.id, "--secret-file", "new.secret")).code).toBe(7);
      expect((await at.integ(["journal", "recover"])).code).toBe(7);
      expect(await desk.sent("POST", rotation)).toBe(1);
      const again = await at.integ(["journal", "recover", "--replace-lost-secret"]);
      expect(again.code, again.stderr).toBe(0);
      expect(await desk.sent("POST", rotation)).toBe(2);
      expect(await desk.opens(secretIn(at, "new.secret"))).toBe(true);
      expect(await unsettled(at)).toEqual([]);
    },
  );

  it("a second rotation that is refused leaves the first unknown", async () => {
    const at = desk.withToken();
    const old = await desk.makeKey({ name: "in-place" });
    await desk.service.fault("POST /api/v1/access-keys/*/rotate drop=after times=1");
    await rotate(at, old.id, "--secret-file", "new.secret");
    await desk.service.fault("POST /api/v1/access-keys/*/rotate status=403 times=1");
    expect((await at.integ(["journal", "recover", "--yes"])).code).toBe(7);
    expect(await unsettled(at)).toMatchObject([{ state: "unknown" }]);
    expect((await at.integ(["journal", "recover", "--yes"])).code).toBe(0);
  });

  it("429 is waited for, and a key that is gone is exit 4 or 5 with nothing left open", async () => {
    const at = desk.withToken();
    const old = await desk.makeKey({ name: "in-place" });
    await desk.service.fault("POST /api/v1/access-keys/*/rotate status=429 retry-after=1 times=1");
    expect((await rotate(at, old.id, "--secret-file", "a")).code).toBe(0);
    await at.integ(["keys", "revoke", old.id, "--yes"]);
    expect((await rotate(at, old.id, "--secret-file", "b")).code).toBe(5);
    expect((await rotate(at, "ak_nobody", "--secret-file", "c")).code).toBe(4);
    expect(await unsettled(at)).toEqual([]);
  });

  it("flags of a new key make no sense there: exit 2, nothing sent", async () => {
    const at = desk.withToken();
    for (const flag of [["--scope", "*"], ["--expires-in", "1d"], ["--overlap", "1h"], ["--name-marker"]])
      expect((await rotate(at, "ak_us_idle", ...flag)).code).toBe(2);
    expect(await desk.sent("POST", /./)).toBe(0);
  });

  it("a secret that cannot be delivered is kept for claim", async () => {
    const at = desk.withToken();
    const old = await desk.makeKey({ name: "in-place" });
    expect((await rotate(at, old.id, "--secret-command", "exit 1")).code).toBe(12);
    const [entry] = await unsettled(at);
    const claimed = await at.integ(["journal", "claim", entry!.id, "--json"]);
    expect(await desk.opens((JSON.parse(claimed.stdout) as { secret: string }).secret)).toBe(true);
  });
});

describe("the key that the profile lives on", () => {
  it("--update-profile proves the new secret, puts it in the profile, and the profile works on", async () => {
    const { at, own } = await desk.withProfile();
    const { code, stdout, stderr } = await rotate(at, own.id, "--update-profile", "--json");
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ id: own.id, secret: null });
    // One exchange of the old secret before the request, one of the new secret before the profile takes it.
    expect(await desk.sent("POST", /access-tokens$/)).toBe(2);
    expect(await desk.opens(own.secret)).toBe(false);
    expect((await at.integ(["keys", "list"])).code).toBe(0);
    expect((await rotate(at, own.id, "--update-profile")).code).toBe(0);
    expect((await at.integ(["keys", "list"])).code).toBe(0);
  });

  it("is not touched without being asked to, once the profile knows it", async () => {
    const { at, id } = await knownOwn();
    for (const flags of [[], ["--by-replacement"], ["--secret-file", "x"]]) {
      const { code, stderr } = await rotate(at, id, ...flags);
      expect(code).toBe(2);
      expect(stderr).toContain("--update-profile");
    }
    expect(await desk.sent("POST", /access-keys/)).toBe(0);
    expect((await rotate(at, id, "--yes", "--secret-file", "x")).code).toBe(0);
    expect((await at.integ(["keys", "list"])).code).toBe(3);
  });

  it("--secret-profile with its own name is the same work; the profile knows its key from then on", async () => {
    const { at, own } = await desk.withProfile();
    expect((await rotate(at, own.id, "--secret-profile", "p")).code).toBe(0);
    expect((await at.integ(["keys", "list"])).code).toBe(0);
    expect((await rotate(at, own.id, "--secret-file", "x")).code).toBe(2);
    expect((await rotate(at, own.id, "--secret-profile", "p")).code).toBe(0);
    expect((await at.integ(["keys", "list"])).code).toBe(0);
  });

  it("--update-profile of another key, or of a profile that cannot take it, is exit 2", async () => {
    const { at } = await knownOwn();
    const other = await desk.makeKey({ name: "other" });
    expect((await rotate(at, other.id, "--update-profile")).code).toBe(2);
    expect((await rotate(desk.withToken(), other.id, "--update-profile")).code).toBe(2);
    expect((await rotate(at, other.id, "--update-profile", "--secret-file", "x")).code).toBe(2);
    await at.integ(["profiles", "edit", "p", "--api-key-command", "echo x"]);
    expect((await rotate(at, other.id, "--update-profile")).code).toBe(2);
    expect(await desk.sent("POST", rotation)).toBe(0);
  });

  it("a lost answer that killed the own secret is told with the way out", async () => {
    const { at, id } = await knownOwn();
    await desk.service.fault("POST /api/v1/access-keys/*/rotate drop=after times=1");
    expect((await rotate(at, id, "--update-profile")).code).toBe(7);
    const recovered = await at.integ(["journal", "recover"]);
    expect(recovered.code, recovered.stderr).toBe(9);
    expect(recovered.stderr).toContain(`integ keys rotate ${id} -p <other profile> --secret-profile p`);
  });

  it("a lost answer that changed nothing: the old secret is kept and still works, and it rotates again when asked", async () => {
    const { at, id } = await knownOwn();
    await desk.service.fault("POST /api/v1/access-keys/*/rotate drop=before times=1");
    expect((await rotate(at, id, "--update-profile")).code).toBe(7);
    const looked = await at.integ(["journal", "recover"]);
    expect(looked.code).toBe(7);
    expect(looked.stderr).toContain("still works now");
    expect((await at.integ(["journal", "recover", "--replace-lost-secret"])).code).toBe(0);
    expect((await at.integ(["keys", "list"])).code).toBe(0);
  });

  it("a new secret that is plainly not accepted does not take the old one's place: kept, exit 12", async () => {
    const { at, own } = await desk.withProfile();
    await desk.service.fault("POST /api/v1/access-tokens status=401 after=1 times=1");
    const { code, stderr } = await rotate(at, own.id, "--update-profile");
    expect(code, stderr).toBe(12);
    expect((await at.integ(["keys", "list"])).code).toBe(3);
    expect((await at.integ(["journal", "recover"])).code).toBe(0);
    expect((await at.integ(["keys", "list"])).code).toBe(0);
  });

  it("a proof that nobody can make for a moment does not lock the profile out", async () => {
    const { at, own } = await desk.withProfile();
    await desk.service.fault("POST /api/v1/access-tokens status=503 after=1 times=100");
    const { code, stderr } = await at.integ(["keys", "rotate", own.id, "--update-profile", "--retry-for", "0"]);
    expect(code, stderr).toBe(0);
    expect(stderr).toContain("could not be proven");
    await desk.service.calm();
    expect((await at.integ(["keys", "list"])).code).toBe(0);
  });
});

describe("by replacement", () => {
  it("makes a key like the old one, delivers, proves, and only then revokes the old one", async () => {
    const { at } = await desk.withProfile();
    const expiresAt = new Date(Date.now() + 60 * 86_400_000).toISOString();
    const old = await desk.makeKey({
      name: "replaced",
      keyType: "service_account",
      scopes: ["push-ingest:*"],
      expiresAt,
    });
    const { code, stdout, stderr } = await rotate(
      at,
      old.id,
      "--by-replacement",
      "--secret-file",
      "new.secret",
      "--json",
    );
    expect(code, stderr).toBe(0);
    const key = JSON.parse(stdout);
    expect(key).toMatchObject({
      name: "replaced",
      keyType: "service_account",
      scopes: ["push-ingest:*"],
      expiresAt,
      secret: null,
    });
    expect(await desk.opens(secretIn(at, "new.secret"))).toBe(true);
    expect((await desk.key(old.id)).status).toBe("revoked");
    const [child, parent] = await entries(at);
    expect(parent).toMatchObject({ operation: "access_key.rotate", state: "done", resource_id: key.id });
    expect(child).toMatchObject({ operation: "access_key.create", state: "done", parent: parent!.id });
  });

  it("the profile's own key: the profile lives on the new one, and the old one is revoked by it", async () => {
    const { at, own } = await desk.withProfile();
    const { code, stderr } = await rotate(at, own.id, "--by-replacement", "--update-profile");
    expect(code, stderr).toBe(0);
    expect((await desk.key(own.id)).status).toBe("revoked");
    expect((await at.integ(["keys", "list"])).code).toBe(0);
    expect(await unsettled(at)).toEqual([]);
  });

  it("where no proof is possible keeps the old key, exit 8, and goes on when told that it works", async () => {
    const at = desk.withToken();
    const old = await desk.makeKey({ name: "unproven" });
    const ended = await rotate(at, old.id, "--by-replacement", "--secret-file", "new.secret", "--yes");
    expect(ended.code, ended.stderr).toBe(8);
    expect(ended.stderr).toContain("cannot be proven");
    expect((await desk.key(old.id)).status).toBe("active");
    expect((await at.integ(["journal", "recover"])).code).toBe(8);
    expect((await at.integ(["journal", "recover", "--yes"])).code).toBe(0);
    expect((await desk.key(old.id)).status).toBe("revoked");
    expect(await desk.opens(secretIn(at, "new.secret"))).toBe(true);
  });

  it("a new secret that is not accepted keeps the old key", async () => {
    const { at } = await desk.withProfile();
    const old = await desk.makeKey({ name: "refused" });
    await desk.service.fault("POST /api/v1/access-tokens status=401 after=1 times=1");
    const ended = await rotate(at, old.id, "--by-replacement", "--secret-file", "new.secret");
    expect(ended.code, ended.stderr).toBe(3);
    expect((await desk.key(old.id)).status).toBe("active");
    expect((await at.integ(["journal", "recover"])).code).toBe(0);
    expect((await desk.key(old.id)).status).toBe("revoked");
  });

  it("--overlap: a short one is waited for, a long one is finished by journal recover", async () => {
    const { at } = await desk.withProfile();
    const short = await desk.makeKey({ name: "short" });
    expect((await rotate(at, short.id, "--by-replacement", "--overlap", "1s", "--secret-file", "a")).code).toBe(0);
    expect((await desk.key(short.id)).status).toBe("revoked");
    const long = await desk.makeKey({ name: "long" });
    const ended = await rotate(at, long.id, "--by-replacement", "--overlap", "36h", "--secret-file", "b");
    expect(ended.code, ended.stderr).toBe(8);
    expect((await desk.key(long.id)).status).toBe("active");
    expect(await unsettled(at)).toMatchObject([{ operation: "access_key.rotate", state: "pending" }]);
    expect((await at.integ(["journal", "recover", "--yes"])).code).toBe(8);
    expect((await desk.key(long.id)).status).toBe("active");
  });

  it("an expired key's expiry must be given, and what is given wins", async () => {
    const { at } = await desk.withProfile();
    const old = await desk.makeKey({ name: "expired", expiresAt: new Date(Date.now() + 1000).toISOString() });
    await new Promise((resolve) => setTimeout(resolve, 1100));
    await desk.service.calm();
    const missing = await rotate(at, old.id, "--by-replacement", "--secret-file", "a");
    expect(missing.code).toBe(2);
    expect(missing.stderr).toContain("--expires-in");
    expect(await desk.sent("POST", creation)).toBe(0);
    const given = await rotate(
      at,
      old.id,
      "--by-replacement",
      "--expires-in",
      "1d",
      "--scope",
      "push-ingest:*",
      "--secret-file",
      "a",
      "--json",
    );
    expect(given.code, given.stderr).toBe(0);
    expect(JSON.parse(given.stdout)).toMatchObject({ name: "expired", scopes: ["push-ingest:*"] });
  });

  it("a revoked key is exit 13, one that the list does not have exit 4", async () => {
    const { at } = await desk.withProfile();
    expect((await rotate(at, "ak_us_retired", "--by-replacement")).code).toBe(13);
    expect((await rotate(at, "ak_nobody", "--by-replacement")).code).toBe(4);
  });

  it.each([
    ["POST /api/v1/access-keys drop=after times=1", [9, 0], 2],
    ["POST /api/v1/access-keys status=500 effect=kept times=1", [9, 0], 2],
    ["DELETE /api/v1/access-keys/* status=503 effect=none times=1", [0], 1],
    ["DELETE /api/v1/access-keys/* drop=after times=1", [0], 1],
  ] as const)("%s: finished by journal recover, with one working key", async (fault, codes, posts) => {
    const { at } = await desk.withProfile();
    const old = await desk.makeKey({ name: "broken-off" });
    await desk.service.calm();
    await desk.service.fault(fault);
    const first = await at.integ([
      "keys",
      "rotate",
      old.id,
      "--by-replacement",
      "--secret-file",
      "new.secret",
      "--retry-for",
      "0",
    ]);
    expect([7, 8]).toContain(first.code);
    if (codes.length === 2) {
      expect((await desk.key(old.id)).status).toBe("active");
      expect((await at.integ(["journal", "recover"])).code).toBe(9);
    }
    const recovered = await at.integ(["journal", "recover", "--replace-lost-secret"]);
    expect(recovered.code, recovered.stderr).toBe(0);
    expect(await desk.sent("POST", creation)).toBe(posts);
    expect((await desk.key(old.id)).status).toBe("revoked");
    expect(await desk.live("broken-off")).toHaveLength(1);
    expect(await desk.opens(secretIn(at, "new.secret"))).toBe(true);
    for (const { id } of await desk.live("broken-off"))
      await desk.service.control("POST", `/access_keys/${id}`, { status: "revoked" });
  });

  it("typed again, goes on with what is unfinished", async () => {
    const { at } = await desk.withProfile();
    const old = await desk.makeKey({ name: "again" });
    await desk.service.fault("POST /api/v1/access-tokens status=401 after=1 times=1");
    expect((await rotate(at, old.id, "--by-replacement", "--secret-file", "new.secret")).code).toBe(3);
    const again = await rotate(at, old.id, "--by-replacement", "--secret-file", "other.secret");
    expect(again.code, again.stderr).toBe(0);
    expect(again.stderr).toContain("Going on with the unfinished replacement");
    expect(await desk.live("again")).toHaveLength(1);
    expect(readFileSync(at.path("new.secret"), "utf8").trim()).toMatch(/^sbx_/);
  });
});
