import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Ended, Home } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { entries, deskOfTests, type KeysDesk, secretIn, unfinishedEntries } from "./keys-desk.ts";

let desk: KeysDesk;
deskOfTests((opened) => (desk = opened));

function rotate(at: Home, id: string, ...flags: string[]): Promise<Ended> {
  return at.integ(["keys", "rotate", id, "--retry-for", "20s", ...flags]);
}

describe("keys rotate --by-replacement", () => {
  it("creates a key with the old one's properties, delivers, proves, and only then revokes the old one", async () => {
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
      ...`--by-replacement --no-marker --secret-file new.secret --json`.split(" "),
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

  it("is refused if the new key would expire before the overlap ends; otherwise shows until when both work", async () => {
    const { at } = await desk.withProfile();
    const expiresAt = new Date(Date.now() + 2 * 3_600_000).toISOString();
    const old = await desk.makeKey({ name: "short", expiresAt });
    const flags = ["--by-replacement", "--yes", "--secret-file", "short.secret"];
    const { code, stderr } = await rotate(at, old.id, ...flags, "--overlap", "12h");
    expect([code, await entries(at)]).toEqual([2, []]);
    expect(stderr).toContain(`The new key would expire at ${expiresAt}, before the overlap ends.`);
    const longer = await rotate(at, old.id, ...flags, "--overlap", "12h", "--expires-in", "90d");
    expect(longer.code, longer.stderr).toBe(0);
    const another = await desk.makeKey({ name: "short too", expiresAt });
    const like = await rotate(at, another.id, "--by-replacement", "--secret-file", "like.secret", "--yes");
    expect(like.stderr).toContain(`expires when the old one does, at ${expiresAt}`);
  });

  it("gives the profile its new key, and revokes the old one with it", async () => {
    const { at, own } = await desk.withProfile();
    const { code, stderr } = await rotate(at, own.id, "--by-replacement", "--update-profile");
    expect(code, stderr).toBe(0);
    expect((await desk.key(own.id)).status).toBe("revoked");
    expect((await at.integ(["keys", "list"])).code).toBe(0);
    expect(await unfinishedEntries(at)).toEqual([]);
  });

  it("keeps the old key if no proof is possible, exit 8, and continues with consent", async () => {
    const at = desk.withToken();
    const old = await desk.makeKey({ name: "unproven" });
    const ended = await rotate(at, old.id, "--by-replacement", "--secret-file", "new.secret", "--yes");
    expect(ended.code, ended.stderr).toBe(8);
    expect(ended.stderr).toContain("cannot be proven");
    expect((await desk.key(old.id)).status).toBe("active");
    expect((await integHere(at, ["journal", "recover"])).code).toBe(8);
    expect((await integHere(at, ["journal", "recover", "--accept-unproven"])).code).toBe(0);
    expect((await desk.key(old.id)).status).toBe("revoked");
    expect(await desk.opens(secretIn(at, "new.secret"))).toBe(true);
  });

  it("waits for a short --overlap; `journal recover` finishes a long one", async () => {
    const { at } = await desk.withProfile();
    const short = await desk.makeKey({ name: "short" });
    expect((await rotate(at, short.id, "--by-replacement", "--overlap", "1s", "--secret-file", "a")).code).toBe(0);
    expect((await desk.key(short.id)).status).toBe("revoked");
    const long = await desk.makeKey({ name: "long" });
    const ended = await rotate(
      at,
      long.id,
      ...`--by-replacement --no-marker --overlap 36h --secret-file b --json`.split(" "),
    );
    expect(ended.code, ended.stderr).toBe(0);
    expect(ended.stderr).toContain(`To revoke ${long.id}, run integ journal recover `);
    const [entry] = await unfinishedEntries(at);
    expect(entry).toMatchObject({ operation: "access_key.rotate", state: "waiting", due_at: expect.any(String) });
    expect(JSON.parse(ended.stdout)).toMatchObject({ name: "long", secret: null, due_at: entry!.due_at });
    expect((await integHere(at, ["journal", "recover", "--accept-unproven"])).code).toBe(0);
    expect((await desk.key(long.id)).status).toBe("active");
    expect((await integHere(at, ["journal", "recover", entry!.id, "--now"])).code).toBe(0);
    expect((await desk.key(long.id)).status).toBe("revoked");
  });

  it.each([
    ["in place", [], []],
    ["in place and by replacement", [], ["--by-replacement"]],
  ])("%s refuses a concurrent second rotation: a delivered secret works", async (name, ...kinds) => {
    const { at } = await desk.withProfile();
    const old = await desk.makeKey({ name });
    const files = ["first.secret", "second.secret"] as const;
    await desk.service.fault("POST /api/v1/access-keys* latency=3s");
    const words = ["keys", "rotate", old.id, "--yes", "--secret-file"];
    const ends = await Promise.all(kinds.map((kind, index) => at.spawned([...words, files[index]!, ...kind])));
    await desk.service.calm();
    expect(ends.map(({ code }) => `${code}`).toSorted(), ends.map(({ stderr }) => stderr).join("\n")).toEqual([
      "0",
      "5",
    ]);
    expect(ends.find(({ code }) => code === 5)!.stderr).toMatch(
      new RegExp(`(Another process rotates the key ${old.id} at this moment|The key ${old.id} is being replaced)`),
    );
    const file = files[ends.findIndex(({ code }) => code === 0)]!;
    expect(await desk.opens(secretIn(at, file))).toBe(true);
    expect(await desk.live(name)).toHaveLength(1);
  });

  it("does not change the working secret in a recovery if another rotation replaced a lost one", async () => {
    const { at } = await desk.withProfile();
    const old = await desk.makeKey({ name: "rotated since" });
    await desk.service.fault("POST /api/v1/access-keys/*/rotate drop=after times=1");
    expect((await rotate(at, old.id, "--yes", "--secret-file", "lost.secret")).code).toBe(7);
    expect((await rotate(at, old.id, "--yes", "--new", "--secret-file", "new.secret")).code).toBe(0);
    const planned = await integHere(at, ["journal", "recover", "--yes", "--dry-run"]);
    expect(planned.stdout).toMatch(/end it, since \w+ rotated the key after it: nothing is sent/);
    const recovered = await integHere(at, ["journal", "recover", "--yes", "--accept-unproven"]);
    expect([recovered.code, recovered.stderr]).toEqual([0, expect.stringMatching(/Nothing was sent for \w+: /)]);
    expect(await desk.opens(secretIn(at, "new.secret"))).toBe(true);
  });

  it("typed again, resumes the unfinished entry, and is refused with another destination", async () => {
    const { at } = await desk.withProfile();
    const name = "typed again";
    const old = await desk.makeKey({ name });
    await desk.service.fault("POST /api/v1/access-tokens status=401 after=1 times=1");
    const words = [old.id, "--by-replacement", "--secret-file"] as const;
    expect((await rotate(at, ...words, "new.secret")).code).toBe(8);
    const other = await rotate(at, ...words, "other.secret");
    expect([other.code, other.stderr]).toEqual([2, expect.stringContaining(at.path("new.secret"))]);
    expect((await desk.key(old.id)).status).toBe("active");
    const again = await rotate(at, ...words, "new.secret");
    expect(again.code, again.stderr).toBe(0);
    expect(again.stderr).toContain("Resuming the unfinished replacement");
    expect(await desk.live(name)).toHaveLength(1);
    expect(readFileSync(at.path("new.secret"), "utf8").trim()).toMatch(/^sbx_/);
  });

  // This test must be the last, because it advances the service's clock.
  it("with --overlap-unused revokes a key once it is unused for that long; status shows its last use", async () => {
    const { at } = await desk.withProfile();
    const old = await desk.makeKey({ name: "in use" });
    const words = [old.id, "--by-replacement", "--overlap-unused"] as const;
    expect((await rotate(at, ...words, "14d", "--secret-file", "c")).stderr).toContain("ends the overlap before");
    const { code, stderr } = await rotate(at, ...words, "10s", "--secret-file", "c");
    expect([code, stderr]).toEqual([0, expect.stringContaining("not used for 10 seconds, at the latest in 14 days")]);
    expect(await desk.opens(old.secret)).toBe(true);
    expect((await integHere(at, ["journal", "list", "-o", "table"])).stdout).toContain("integ journal recover ");
    const recovered = await integHere(at, ["journal", "recover", "--yes"]);
    expect([recovered.code, (await desk.key(old.id)).status], recovered.stderr).toEqual([0, "active"]);
    expect((await integHere(at, ["status"])).stdout).toMatch(new RegExp(`${old.id} was last used \\d+ seconds? ago`));
    await desk.service.settle();
    expect((await integHere(at, ["journal", "recover", "--dry-run"])).stdout).toContain("was not used for 10s");
    const ended = await integHere(at, ["journal", "recover", "--yes"]);
    expect([ended.code, (await desk.key(old.id)).status], ended.stderr).toEqual([0, "revoked"]);
  });
});
