import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Ended, Home } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { creation, entries, deskOfTests, type KeysDesk, secretIn, unfinishedEntries } from "./keys-desk.ts";

let desk: KeysDesk;
let number = 0;
deskOfTests((opened) => (desk = opened));

const lost: readonly (readonly [name: string, fault: string, isCreated: boolean])[] = [
  ["a connection dropped before it was handled", "drop=before times=1", false],
  ["a connection dropped after it took effect", "drop=after times=1", true],
  ["a response cut in its head", "cut=wire:40 times=1", true],
  ["a response cut in its body before the secret", "cut=30 times=1", true],
  ["a 500 before", "status=500 effect=none times=1", false],
  ["a 500 after", "status=500 effect=kept times=1", true],
  ["a 503 with Retry-After", "status=503 retry-after=0 effect=kept times=1", true],
  ["an HTML page", "body=html times=1", true],
  ["an empty body", "body=empty times=1", true],
  ["a redirect", "redirect=http://127.0.0.1:1/ effect=kept times=1", true],
  ["no response in time", "latency=20s times=1", false],
];

interface Lost {
  readonly at: Home;
  readonly name: string;
  readonly ended: Ended;
}

async function loseAnswer(fault: string, ...flags: string[]): Promise<Lost> {
  const at = desk.withToken();
  const name = `lost-${(number += 1)}-`;
  await desk.service.fault(`POST /api/v1/access-keys ${fault}`);
  const words = `keys create --name ${name} --secret-file key.secret --timeout 3s --retry-for 20s`.split(" ");
  const ended = await at.integ([...words, ...flags]);
  return { at, name, ended };
}

describe.each(lost)("%s", (_name, fault, isCreated) => {
  it(`ends with exit 7 after one POST, and ${isCreated ? "the orphan is replaced on request" : "no key is created"}`, async () => {
    const { at, name, ended } = await loseAnswer(fault);
    expect(ended.code, ended.stderr).toBe(7);
    expect(await desk.sent("POST", creation)).toBe(1);
    const [entry] = await unfinishedEntries(at);
    expect(entry).toMatchObject({
      operation: "access_key.create",
      state: "unknown",
      idempotency_key: null,
      attempts: 1,
    });
    expect(ended.stderr).toContain(`integ journal recover ${entry!.id}`);
    expect(existsSync(at.path("key.secret"))).toBe(false);
    if (!isCreated) return;
    const [orphan] = await desk.live(name);
    const inspected = await integHere(at, ["journal", "recover"]);
    expect(inspected.code, inspected.stderr).toBe(9);
    expect(await unfinishedEntries(at)).toMatchObject([{ state: "secret_lost", resource_id: orphan!.id }]);
    expect(await desk.live(name)).toHaveLength(1);
    const recovered = await integHere(at, ["journal", "recover", "--replace-lost-secret"]);
    expect(recovered.code, recovered.stderr).toBe(0);
    expect((await desk.key(orphan!.id)).status).toBe("revoked");
    expect(await desk.live(name)).toHaveLength(1);
    expect(await desk.opens(secretIn(at, "key.secret"))).toBe(true);
    expect(await desk.sent("POST", creation)).toBe(2);
    const [second, first] = await entries(at);
    expect(first).toMatchObject({ state: "replaced", replaced_by: second!.id });
    expect(second).toMatchObject({ state: "done", replaces: first!.id });
    expect((await integHere(at, ["journal", "recover"])).code).toBe(0);
    expect(await desk.sent("POST", creation)).toBe(2);
  });
});

describe("an unknown creation", () => {
  it("is not repeated when the command is typed again; --new creates another key", async () => {
    const { at, name } = await loseAnswer("drop=after times=1");
    const words = ["keys", "create", "--name", name, "--secret-file", "key.secret"];
    const [lost] = await unfinishedEntries(at);
    const again = await at.integ(words);
    expect(again.code).toBe(7);
    expect(again.stderr).toContain("--new");
    expect(await desk.sent("POST", creation)).toBe(1);
    // The file belongs to the older entry until that entry is finished.
    const taken = await at.integ([...words, "--new"]);
    expect([taken.code, taken.stderr]).toEqual([8, expect.stringContaining(`integ journal recover ${lost!.id}`)]);
    expect(await desk.sent("POST", creation)).toBe(1);
    const elsewhere = ["keys", "create", "--name", name, "--secret-file", "other.secret", "--new"];
    const isCreated = await at.integ(elsewhere);
    expect(isCreated.code, isCreated.stderr).toBe(0);
    expect(await desk.sent("POST", creation)).toBe(2);
    // The journal knows the key that --new created, so the other key must be the orphan.
    const recovered = await at.integ(["journal", "recover", lost!.id, "--replace-lost-secret"]);
    expect(recovered.code, recovered.stderr).toBe(0);
    expect(await desk.live(name)).toHaveLength(2);
    expect(await desk.opens(secretIn(at, "key.secret"))).toBe(true);
    expect(await desk.opens(secretIn(at, "other.secret"))).toBe(true);
  });

  it("with --no-marker is revoked only by its id: it may be another person's", async () => {
    const { at, name } = await loseAnswer("drop=after times=1", "--no-marker");
    const [orphan] = await desk.live(name);
    for (const consent of ["--yes", "--replace-lost-secret"]) {
      const guessed = await integHere(at, ["journal", "recover", consent]);
      expect([guessed.code, guessed.stderr]).toEqual([9, expect.stringContaining("can look the same")]);
      expect(await desk.live(name)).toHaveLength(1);
    }
    const [entry] = await unfinishedEntries(at);
    expect(entry!.next_step).toBe(`integ journal recover ${entry!.id} --revoke ${orphan!.id}`);
    expect((await integHere(at, ["journal", "recover", "--revoke", orphan!.id])).code).toBe(2);
    expect((await integHere(at, entry!.next_step!.split(" ").slice(1))).code).toBe(0);
    expect((await desk.key(orphan!.id)).status).toBe("revoked");
    expect(await desk.opens(secretIn(at, "key.secret"))).toBe(true);
  });

  it("without a terminal is found by its marker, even if another key has the same name", async () => {
    const { at, name } = await loseAnswer("drop=after times=1");
    await desk.makeKey({ name });
    const recovered = await integHere(at, ["journal", "recover", "--yes"]);
    expect(recovered.code, recovered.stderr).toBe(0);
    expect(recovered.stderr).toContain("has the mark of this creation");
    const live = await desk.live(name);
    expect(live.map((key) => key.name).filter((found) => found === name)).toHaveLength(1);
    expect(live).toHaveLength(2);
    expect(await desk.opens(secretIn(at, "key.secret"))).toBe(true);
  });

  it("that created nothing ends as refused only after the list had time to show a key", async () => {
    const { at, name } = await loseAnswer("drop=before times=1");
    const early = await integHere(at, ["journal", "recover", "--wait", "0s"]);
    expect(early.code).toBe(7);
    expect(early.stderr).toContain("a moment ago");
    const late = await integHere(at, ["journal", "recover"]);
    expect(late.code, late.stderr).toBe(0);
    expect(late.stderr).toContain("none was created");
    expect(await entries(at)).toMatchObject([{ state: "refused" }]);
    expect(await desk.sent("POST", creation)).toBe(1);
    expect(await desk.live(name)).toEqual([]);
  });
});

describe("the destination of the secret", () => {
  it("is recorded before the request; a recovery with another destination replaces it and leaves nothing behind", async () => {
    const { at, name } = await loseAnswer("drop=after times=1");
    const [lost] = await unfinishedEntries(at);
    const recovered = await integHere(at, ["journal", "recover", lost!.id, "--yes", "--secret-file", "other.secret"]);
    expect(recovered.code, recovered.stderr).toBe(0);
    expect(await desk.opens(secretIn(at, "other.secret"))).toBe(true);
    expect(readdirSync(at.folder).filter((file) => file.includes("secret"))).toEqual(["other.secret"]);
    expect(await desk.live(name)).toHaveLength(1);
  });
});

describe("a secret that arrived and could not be delivered", () => {
  it("is kept for claim, exit 12, and is not an orphan", async () => {
    const at = desk.withToken();
    const broken = await at.integ(["keys", "create", "--name", "kept-1", "--secret-command", "cat >/dev/null; exit 3"]);
    expect(broken.code, broken.stderr).toBe(12);
    const [entry] = await unfinishedEntries(at);
    expect(entry).toMatchObject({ state: "undelivered", next_step: `integ journal claim ${entry!.id}` });
    expect((await integHere(at, ["journal", "recover", "--yes"])).code).toBe(12);
    const claimed = await integHere(at, ["journal", "claim", entry!.id, "--json"]);
    const secret = (JSON.parse(claimed.stdout) as { secret: string }).secret;
    expect(await desk.opens(secret)).toBe(true);
    expect(await unfinishedEntries(at)).toEqual([]);
    expect(readFileSync(at.path("state", "journal.ndjson"), "utf8")).not.toContain(secret);
  });

  it("is also kept if the response is truncated right after it", async () => {
    const whole = JSON.stringify(await desk.makeKey({ name: "lost-99-" })).length;
    number = 98;
    const { at, ended } = await loseAnswer(`cut=${whole - 1} times=1`, "--no-marker");
    expect(ended.code, ended.stderr).toBe(12);
    const [entry] = await unfinishedEntries(at);
    const claimed = await integHere(at, ["journal", "claim", entry!.id, "--json"]);
    expect(await desk.opens((JSON.parse(claimed.stdout) as { secret: string }).secret)).toBe(true);
    expect(await unfinishedEntries(at)).toEqual([]);
  });
});
