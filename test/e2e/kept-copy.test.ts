// The journal may outlive the folder of the kept copies, which is next to it.
import { rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import type { Home } from "../support/program.ts";
import { creationWords } from "../support/service.ts";
import { deskOfTests, type KeysDesk, unfinishedEntries } from "./keys-desk.ts";

const shiftedClock = fileURLToPath(new URL("../support/shifted-clock.cjs", import.meta.url));
let desk: KeysDesk;
deskOfTests((opened) => (desk = opened));

function creations(): [string, string[]][] {
  return [
    ["client", creationWords(desk.service)],
    ["key", ["keys", "create", "--name", "unkept"]],
  ];
}

async function kept(words: string[]): Promise<{ at: Home; id: string; path: string }> {
  const { at } = await desk.withProfile();
  expect((await at.integ([...words, "--secret-command", "exit 1"])).code).toBe(12);
  const [entry] = await unfinishedEntries(at);
  return { at, id: entry!.id, path: at.path("state", "undelivered", entry!.id) };
}

function nextOf(stderr: string): string {
  return /Next: (.+)/.exec(stderr)?.[1] ?? "";
}

describe.each([0, 1])("a kept secret, case %i (0: a client, 1: a key)", (which) => {
  it("with a missing copy is lost, and the printed next steps finish the entry", async () => {
    const { at, id, path } = await kept(creations()[which]![1]);
    rmSync(path);
    const claimed = await at.integ(["journal", "claim", id]);
    expect([claimed.code, nextOf(claimed.stderr)]).toEqual([4, `integ journal recover ${id}`]);
    const lost = await at.integ(["journal", "recover", id]);
    expect([lost.code, nextOf(lost.stderr)]).toEqual([9, `integ journal recover ${id} --replace-lost-secret`]);
    const end = await at.integ(["journal", "recover", id, "--replace-lost-secret", "--secret-file", "s"]);
    expect(end.code, end.stderr).toBe(0);
    expect(await unfinishedEntries(at)).toEqual([]);
  });

  it("with a damaged copy stays, and the error names the file but no command that deletes it", async () => {
    const { at, id, path } = await kept(creations()[which]![1]);
    writeFileSync(path, "not what it was");
    const claimed = await at.integ(["journal", "claim", id]);
    expect([claimed.code, nextOf(claimed.stderr)]).toEqual([1, ""]);
    expect(claimed.stderr).toContain(`${path} is damaged.`);
    expect((await at.integ(["journal", "recover", id])).code).toBe(12);
    rmSync(path);
    expect((await at.integ(["journal", "recover", id])).code).toBe(9);
  });
});

it("the kept secret of a key that has been rotated or revoked is not delivered as a working one", async () => {
  const { at, id: first } = await kept(["keys", "create", "--name", "twice"]);
  const [{ resource_id: key }] = (await unfinishedEntries(at)) as unknown as [{ resource_id: string }];
  const rotated = await at.integ(["keys", "rotate", key, "--secret-file", "s", "--yes"]);
  expect(rotated.code, rotated.stderr).toBe(0);
  for (const after of [
    ["journal", "list"],
    ["keys", "revoke", key, "--yes"],
  ]) {
    expect((await at.integ(after)).code).toBe(0);
    const claimed = await at.integ(["journal", "claim", first]);
    expect([claimed.code, claimed.stdout, nextOf(claimed.stderr)]).toEqual([13, "", `integ journal forget ${first}`]);
  }
});

it("the kept secret of a key that was rotated before it, while the clock was ahead, is delivered", async () => {
  const { at } = await desk.withProfile();
  const { id: key } = await desk.makeKey({ name: "ahead" });
  const rotate = ["keys", "rotate", key, "--yes"];
  const ahead = { NODE_OPTIONS: `--require=${shiftedClock}`, INTEG_TEST_SHIFT: "600000" };
  expect((await at.spawned([...rotate, "--secret-file", "first"], { env: ahead })).code).toBe(0);
  expect((await at.integ([...rotate, "--secret-command", "exit 1"])).code).toBe(12);
  const [{ id } = { id: "" }] = await unfinishedEntries(at);
  const claimed = await at.integ(["journal", "claim", id, "--secret-file", "second"]);
  expect(claimed.code, claimed.stderr).toBe(0);
});
