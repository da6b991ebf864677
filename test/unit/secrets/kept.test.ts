import {
  chmodSync,
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Undelivered } from "../../../src/secrets/kept.ts";
import { failureOf } from "../profiles/a-profile.ts";
import { temporaryFolder } from "../../support/bundle-driver.ts";
import { fillDisk, mountSmallDisk } from "../../support/small-disk.ts";
import { canary, client, filesWithCanary, key, modeOf } from "./a-secret.ts";

const keptIn = (undelivered: Undelivered): string[] =>
  undelivered.entriesWithSpace().filter((entry) => undelivered.isKept(entry));

describe("undelivered secrets", () => {
  it("can be read back unchanged, and only the owner can read them", async () => {
    const stateDir = join(temporaryFolder(), "state");
    const undelivered = new Undelivered(stateDir);
    expect([keptIn(undelivered), undelivered.isKept("e1")]).toEqual([[], false]);
    const before = process.umask(0);
    await undelivered.reserve("e1");
    process.umask(before);
    expect([keptIn(undelivered), undelivered.isKept("e1")]).toEqual([[], false]);
    await undelivered.keep("e1", client);
    await undelivered.keep("e2", key);
    const again = new Undelivered(stateDir);
    expect([again.read("e1"), again.read("e2"), keptIn(again)]).toEqual([client, key, ["e1", "e2"]]);
    expect([modeOf(stateDir), modeOf(again.folder), modeOf(join(again.folder, "e1"))]).toEqual(["700", "700", "600"]);
  });

  it("stay when space is reserved or freed, and are removed only when destroyed", async () => {
    const undelivered = new Undelivered(temporaryFolder());
    await undelivered.keep("e1", client);
    await undelivered.reserve("e1");
    await undelivered.release("e1");
    expect(undelivered.read("e1")).toEqual(client);
    // A second link shows the content that the file had when it was removed.
    linkSync(join(undelivered.folder, "e1"), `${undelivered.folder}-other-name`);
    await undelivered.destroy("e1");
    await undelivered.destroy("e1");
    expect(readdirSync(undelivered.folder)).toEqual([]);
    expect(readFileSync(`${undelivered.folder}-other-name`, "utf8").replaceAll("\0", "")).toBe("");
  });

  it("need a reserve, which is freed if it is empty, also by a later process", async () => {
    const stateDir = temporaryFolder();
    await new Undelivered(stateDir).reserve("e1");
    await new Undelivered(stateDir).reserve("e1");
    const undelivered = new Undelivered(stateDir);
    await undelivered.release("e1");
    await undelivered.release("e1");
    expect(readdirSync(undelivered.folder)).toEqual([]);
  });

  it("are kept in a new folder if theirs was removed after the reservation", async () => {
    const undelivered = new Undelivered(temporaryFolder());
    await undelivered.reserve("e1");
    rmSync(undelivered.folder, { recursive: true });
    await undelivered.keep("e1", client);
    expect([undelivered.read("e1"), modeOf(undelivered.folder)]).toEqual([client, "700"]);
  });

  it("need no more space than is reserved, so the disk may fill up", async (context) => {
    const disk = mountSmallDisk(128, context);
    const undelivered = new Undelivered(disk);
    await undelivered.reserve("e1");
    fillDisk(disk, 0);
    await undelivered.keep("e1", client);
    expect(undelivered.read("e1")).toEqual(client);
    await undelivered.destroy("e1");
    expect(filesWithCanary(disk)).toEqual([]);
  });

  it("are refused on a full disk before anything is sent, and leave nothing there", async (context) => {
    const disk = mountSmallDisk(64, context);
    const undelivered = new Undelivered(disk);
    fillDisk(disk, 8192);
    const failure = await failureOf(() => undelivered.reserve("e1"));
    expect(failure).toMatchObject({ kind: "failed", message: expect.stringContaining("no space left") });
    expect(readdirSync(undelivered.folder)).toEqual([]);
  });

  it("that are damaged are reported, and left unchanged", async () => {
    const undelivered = new Undelivered(temporaryFolder());
    await undelivered.keep("e1", client);
    const path = join(undelivered.folder, "e1");
    writeFileSync(path, readFileSync(path, "utf8").slice(0, -9));
    expect(undelivered.isKept("e1")).toBe(true);
    expect((await failureOf(() => undelivered.read("e1"))).message).toContain("is damaged");
    expect(readFileSync(path, "utf8")).toContain(canary);
    await undelivered.release("e1");
    expect(existsSync(path)).toBe(true);
  });

  it("are not kept if a power cut left their file incomplete and with its reserved length", async () => {
    const undelivered = new Undelivered(temporaryFolder());
    await undelivered.reserve("e1");
    const path = join(undelivered.folder, "e1");
    const text = Buffer.from(JSON.stringify({ secret: canary, kind: "oauth_client", id: "oac_1", receipt: "{}" }));
    const torn = Buffer.alloc(readFileSync(path).length);
    text.copy(torn, 0, 0, text.length - 9);
    writeFileSync(path, torn);
    expect([undelivered.isKept("e1"), keptIn(undelivered)]).toEqual([false, []]);
    // A complete secret is kept, even before its file is truncated to its length.
    text.copy(torn);
    writeFileSync(path, torn);
    expect(undelivered.read("e1").secret).toBe(canary);
    await undelivered.release("e1");
    expect(undelivered.isKept("e1")).toBe(true);
  });

  it("are not read through a link, if others can read them, or under a name that is a path", async () => {
    const undelivered = new Undelivered(temporaryFolder());
    await undelivered.keep("e1", client);
    const path = join(undelivered.folder, "e1");
    symlinkSync(path, join(undelivered.folder, "e2"));
    expect((await failureOf(() => undelivered.read("e2"))).kind).toBe("usage");
    chmodSync(path, 0o640);
    expect((await failureOf(() => undelivered.read("e1"))).details.nextCommand).toBe(`chmod 600 ${path}`);
    for (const name of ["../e1", "", ".", "a/b", "a".repeat(65)]) {
      expect((await failureOf(() => undelivered.keep(name, client))).kind).toBe("usage");
    }
  });

  it("that are missing are a clear failure", async () => {
    const undelivered = new Undelivered(temporaryFolder());
    expect((await failureOf(() => undelivered.read("e1"))).message).toContain("No secret is kept for e1");
  });
});
