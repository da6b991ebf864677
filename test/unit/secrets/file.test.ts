import {
  chmodSync,
  cpSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  type RecordOf,
  type RememberedDestination,
  type SecretFormat,
  type SingleDestinationPlace,
  type SingleRecord,
  withoutLastNewline,
} from "../../../src/secrets/destination.ts";
import { fileDestination, rememberedFile } from "../../../src/secrets/file.ts";
import { keyRing } from "../../../src/journal/keys.ts";
import { renderSecret } from "../../../src/secrets/secret-format.ts";
import { known } from "../../support/known-places.ts";
import { failureOf } from "../profiles/a-profile.ts";
import { temporaryFolder } from "../../support/bundle-driver.ts";
import { fillDisk, mountSmallDisk } from "../../support/small-disk.ts";
import { canary, client, delivery, filesWithCanary, modeOf, onlyNew } from "./a-secret.ts";

const work = "6k2f9";
function to(path: string, options: { force?: boolean; as?: SecretFormat } = {}): SingleDestinationPlace {
  return fileDestination({ path, as: options.as ?? "line", force: options.force ?? false }, "/", known);
}

/** A destination as the journal records it before the secret is written. */
function remembered(record: SingleRecord, digests = known.digests): RememberedDestination {
  const file = record as RecordOf<"file">;
  const text = renderSecret(client, file.as, delivery.origin);
  return rememberedFile({ ...file, proof: known.digests.of(withoutLastNewline(text)) }, digests);
}
const delivered = (record: SingleRecord): Promise<boolean> => remembered(record).completeDelivery(delivery.may);

describe("a secret file", () => {
  it("appears complete under its name, mode 0600, and nothing else stays", async () => {
    const folder = temporaryFolder();
    const path = join(folder, "client.secret");
    const destination = to(path);
    await destination.check();
    expect(readdirSync(folder)).toEqual([]);
    const before = process.umask(0);
    const record = await destination.prepare(work);
    process.umask(before);
    expect(readdirSync(folder)).toEqual([".client.secret.integ-6k2f9"]);
    expect(modeOf(join(folder, ".client.secret.integ-6k2f9"))).toBe("600");
    expect(statSync(join(folder, ".client.secret.integ-6k2f9")).blocks * 512).toBeGreaterThanOrEqual(32 * 1024);
    expect(await delivered(record)).toBe(false);
    await destination.deliver(client, delivery);
    await destination.release();
    expect(readFileSync(path, "utf8")).toBe(`${canary}\n`);
    expect([modeOf(path), readdirSync(folder), lstatSync(path).nlink]).toEqual(["600", ["client.secret"], 1]);
    expect(await delivered(record)).toBe(true);
    expect(await remembered(record).reread()).toBe(canary);
    expect(JSON.stringify(record)).not.toContain(canary);
  });

  it("has mode 0600 under an umask that removes even the owner's rights", async () => {
    const folder = temporaryFolder();
    const destination = to(join(folder, "s"));
    const before = process.umask(0o377);
    await destination.prepare(work);
    process.umask(before);
    await destination.deliver(client, delivery);
    expect(modeOf(join(folder, "s"))).toBe("600");
  });

  it("resolves a relative path in the folder where it was typed", async () => {
    const folder = temporaryFolder();
    const destination = fileDestination({ path: "x.secret", as: "json" }, folder, known);
    const record = await destination.prepare(work);
    await destination.deliver(client, delivery);
    expect(JSON.parse(readFileSync(join(folder, "x.secret"), "utf8"))).toEqual({
      client_id: "cid_1",
      client_secret: canary,
    });
    expect([await delivered(record), await remembered(record).reread()]).toEqual([true, canary]);
  });

  it("is prepared again before each request, as the same file for the same work", async () => {
    const folder = temporaryFolder();
    const destination = to(join(folder, "s"));
    const first = await destination.prepare(work);
    expect(await destination.prepare(work)).toEqual(first);
    unlinkSync(join(folder, ".s.integ-6k2f9"));
    const again = await destination.prepare(work);
    expect(readdirSync(folder)).toEqual([".s.integ-6k2f9"]);
    await destination.deliver(client, delivery);
    expect(await delivered(again)).toBe(true);
    expect(await to(join(folder, "t")).prepare("other")).not.toEqual(first);
  });

  it("frees its space if no secret arrived", async () => {
    const folder = temporaryFolder();
    const destination = to(join(folder, "s"));
    await destination.prepare(work);
    await destination.release();
    await destination.release();
    expect(readdirSync(folder)).toEqual([]);
  });

  it("may have the longest possible name", async () => {
    const folder = temporaryFolder();
    const destination = to(join(folder, "é".repeat(127)));
    await destination.prepare(work);
    await destination.deliver(client, delivery);
    expect(readdirSync(folder)).toEqual(["é".repeat(127)]);
  });
});

describe("refused before anything is sent", () => {
  const folderWith = (make: (folder: string) => void): string => {
    const folder = temporaryFolder();
    make(folder);
    return folder;
  };
  it.each([
    ["a file that exists", (at: string) => writeFileSync(join(at, "s"), "mine"), "already exists"],
    ["a link", (at: string) => symlinkSync("elsewhere", join(at, "s")), "symbolic link"],
    ["a link to a folder", (at: string) => symlinkSync("/tmp", join(at, "s")), "symbolic link"],
    ["a folder", (at: string) => mkdirSync(join(at, "s")), "it is a folder"],
  ])("%s", async (_what, make, words) => {
    const folder = folderWith(make);
    const before = readdirSync(folder);
    for (const step of ["check", "prepare"] as const) {
      const failure = await failureOf(() => to(join(folder, "s"))[step](work));
      expect(failure).toMatchObject({ kind: "usage", message: expect.stringContaining(words) });
    }
    expect(readdirSync(folder)).toEqual(before);
  });

  it.each([
    ["a link", (at: string) => symlinkSync(join(at, "target"), join(at, "s")), "symbolic link"],
    ["a folder", (at: string) => mkdirSync(join(at, "s")), "it is a folder"],
    ["a pipe", (at: string) => void spawnSync("mkfifo", [join(at, "s")]), "not a plain file"],
  ])("%s, with --force too", async (_what, make, words) => {
    const folder = folderWith(make);
    const failure = await failureOf(() => to(join(folder, "s"), { force: true }).check());
    expect(failure).toMatchObject({ kind: "usage", message: expect.stringContaining(words) });
    expect(existsSync(join(folder, "target"))).toBe(false);
  });

  it.each([
    ["a missing folder", "missing/s", "does not exist"],
    ["a file in place of a folder", "file/s", "not a folder"],
    ["a name with a slash at its end", "file/", "already exists"],
  ])("%s", async (_what, path, words) => {
    const folder = folderWith((at) => writeFileSync(join(at, "file"), ""));
    const failure = await failureOf(() => to(join(folder, path)).check());
    expect(failure).toMatchObject({ kind: "usage", message: expect.stringContaining(words) });
  });

  it("a read-only folder", async (context) => {
    if (process.getuid?.() === 0) context.skip("the superuser may write everywhere");
    const folder = folderWith((at) => chmodSync(at, 0o500));
    expect((await failureOf(() => to(join(folder, "s")).check())).message).toContain("not writable");
  });

  it("a full disk", async (context) => {
    const disk = mountSmallDisk(64, context);
    fillDisk(disk, 8192);
    const failure = await failureOf(() => to(join(disk, "s")).prepare(work));
    expect(failure).toMatchObject({ kind: "failed", message: expect.stringContaining("no space left") });
    expect(readdirSync(disk)).toEqual(["filling"]);
  });
});

describe("delivery", () => {
  it("needs no more space than is reserved, so the disk may fill up after the request", async (context) => {
    const disk = mountSmallDisk(128, context);
    const destination = to(join(disk, "s"));
    const record = await destination.prepare(work);
    fillDisk(disk, 0);
    await destination.deliver(client, delivery);
    expect([readFileSync(join(disk, "s"), "utf8"), await delivered(record)]).toEqual([`${canary}\n`, true]);
  });

  it("with --force replaces a plain file, but not the target of a link created meanwhile", async () => {
    const folder = temporaryFolder();
    const path = join(folder, "s");
    writeFileSync(path, "old", { mode: 0o644 });
    const destination = to(path, { force: true });
    const record = await destination.prepare(work);
    expect(readFileSync(path, "utf8")).toBe("old");
    rmSync(path);
    writeFileSync(join(folder, "victim"), "untouched");
    symlinkSync(join(folder, "victim"), path);
    await destination.deliver(client, delivery);
    expect(readFileSync(join(folder, "victim"), "utf8")).toBe("untouched");
    expect([lstatSync(path).isFile(), modeOf(path), readFileSync(path, "utf8")]).toEqual([true, "600", `${canary}\n`]);
    expect(await delivered(record)).toBe(true);
  });

  it.each([
    ["a file", (path: string) => writeFileSync(path, "theirs")],
    ["a link", (path: string) => symlinkSync("/nowhere/else", path)],
    ["a folder", (path: string) => mkdirSync(path)],
  ])("does not overwrite %s that appeared after the preparation, and leaves nothing: exit 12", async (_what, make) => {
    const folder = temporaryFolder();
    const path = join(folder, "s");
    const destination = to(path);
    const record = await destination.prepare(work);
    make(path);
    const failure = await failureOf(() => destination.deliver(client, { ...delivery, may: onlyNew }));
    expect(failure).toMatchObject({ kind: "undelivered", message: "Something else is there." });
    expect(JSON.stringify(failure)).not.toContain(canary);
    // A second link shows the content that the reserve had when it was removed.
    linkSync(join(folder, ".s.integ-6k2f9"), `${folder}-reserve`);
    await destination.release();
    const left = readFileSync(`${folder}-reserve`, "utf8");
    rmSync(`${folder}-reserve`);
    expect([readdirSync(folder), left.replaceAll("\0", "")]).toEqual([["s"], ""]);
    expect(await delivered(record)).toBe(false);
  });

  it.each([
    ["removed", (path: string) => unlinkSync(path)],
    ["replaced by another file", (path: string) => (unlinkSync(path), writeFileSync(path, ""))],
    ["replaced by a link", (path: string) => (unlinkSync(path), symlinkSync("/etc/hostname", path))],
  ])("fails if its reserve was %s: exit 12", async (_what, spoil) => {
    const folder = temporaryFolder();
    const destination = to(join(folder, "s"));
    await destination.prepare(work);
    spoil(join(folder, ".s.integ-6k2f9"));
    expect((await failureOf(() => destination.deliver(client, delivery))).kind).toBe("undelivered");
    await destination.release();
    expect([existsSync(join(folder, "s")), filesWithCanary(folder)]).toEqual([false, []]);
  });
});

describe("after a crash", () => {
  async function prepared(
    as: "line" | "json" | "env" = "line",
  ): Promise<{ folder: string; record: SingleRecord; reserve: string }> {
    const folder = temporaryFolder();
    const record = await to(join(folder, "s"), { as }).prepare(work);
    return { folder, record, reserve: join(folder, ".s.integ-6k2f9") };
  }

  it("an empty reserve is reused, and is not a delivery", async () => {
    const { folder, record } = await prepared();
    expect(await delivered(record)).toBe(false);
    const destination = to(join(folder, "s"));
    expect(await destination.prepare(work)).toMatchObject({ device: (record as { device: string }).device });
    await destination.deliver(client, delivery);
    expect(readdirSync(folder)).toEqual(["s"]);
  });

  it.each([
    ["complete, truncated to its length", `${canary}\n`],
    ["complete, with zeros after it", `${canary}\n${"\0".repeat(1000)}`],
  ])("a secret that is %s gets its name", async (_what, content) => {
    const { folder, record, reserve } = await prepared();
    truncateSync(reserve);
    writeFileSync(reserve, content);
    const failure = await failureOf(() => to(join(folder, "s")).prepare(work));
    expect(failure).toMatchObject({ kind: "failed", details: { nextCommand: "integ journal recover" } });
    remembered(record).removeReserve(work);
    expect(await delivered(record)).toBe(true);
    expect([readdirSync(folder), readFileSync(join(folder, "s"), "utf8")]).toEqual([["s"], `${canary}\n`]);
  });

  it("a truncated secret is not a delivery, and its reserve is reused", async () => {
    const { folder, record, reserve } = await prepared();
    writeFileSync(reserve, canary.slice(0, 6) + "\0".repeat(1000));
    expect(await delivered(record)).toBe(false);
    await to(join(folder, "s")).prepare(work);
    expect(readFileSync(reserve, "latin1").replaceAll("\0", "")).toBe("");
    remembered(record).removeReserve(work);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("an empty reserve that a backup restored as another file is removed; a complete secret stays", async () => {
    const { folder, record, reserve } = await prepared();
    cpSync(reserve, `${reserve}.restored`);
    renameSync(`${reserve}.restored`, reserve);
    remembered(record).removeReserve(work);
    expect(readdirSync(folder)).toEqual([]);
    writeFileSync(reserve, `${canary}\n`, { mode: 0o600 });
    remembered(record).removeReserve(work);
    expect(readdirSync(folder)).toEqual([".s.integ-6k2f9"]);
  });

  it("a reserve that the journal does not name yet is removed by the entry's name, unless it has content", async () => {
    const { folder, record, reserve } = await prepared();
    const unnamed = { kind: "file", path: (record as { path: string }).path, as: "line", force: false } as const;
    writeFileSync(reserve, `${canary}\n`);
    remembered(unnamed).removeReserve(work);
    expect(readdirSync(folder)).toEqual([".s.integ-6k2f9"]);
    writeFileSync(reserve, "\0".repeat(1000));
    remembered(unnamed).removeReserve("another");
    expect(readdirSync(folder)).toEqual([".s.integ-6k2f9"]);
    remembered(unnamed).removeReserve(work);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("a reserve whose record names another entry's is removed too", async () => {
    const { folder, record } = await prepared();
    const reserved = join(folder, ".s.integ-replaced");
    remembered({ ...(record as SingleRecord & { kind: "file" }), reserved }).removeReserve(work);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("another file that a record names as the reserve stays", async () => {
    const { folder, record } = await prepared();
    const reserved = join(folder, "precious");
    writeFileSync(reserved, "my only key\n", { mode: 0o600 });
    remembered({ ...(record as SingleRecord & { kind: "file" }), as: "json-string", reserved }).removeReserve(work);
    expect(readdirSync(folder)).toEqual(["precious"]);
  });

  it("a secret under both names loses its reserve's name", async () => {
    const { folder, record, reserve } = await prepared("env");
    truncateSync(reserve);
    writeFileSync(reserve, `INTEG_CLIENT_ID=cid_1\nINTEG_CLIENT_SECRET=${canary}\n`);
    linkSync(reserve, join(folder, "s"));
    const force = to(join(folder, "s"), { force: true, as: "env" });
    expect((await failureOf(() => force.prepare(work))).kind).not.toBe("undelivered");
    expect(await delivered(record)).toBe(true);
    expect(readdirSync(folder)).toEqual(["s"]);
    expect(await remembered(record).reread()).toBe(canary);
  });

  it("a complete secret whose name was taken meanwhile is neither lost nor reported as delivered", async () => {
    const { folder, record, reserve } = await prepared();
    truncateSync(reserve);
    writeFileSync(reserve, `${canary}\n`);
    writeFileSync(join(folder, "s"), "theirs");
    const failure = await failureOf(() => remembered(record).completeDelivery(onlyNew));
    expect(failure.details.meaning).toContain(reserve);
    expect([readFileSync(join(folder, "s"), "utf8"), filesWithCanary(folder)]).toEqual(["theirs", [reserve]]);
    rmSync(join(folder, "s"));
    expect(await delivered(record)).toBe(true);
  });

  it("another file with the same inode number is not mistaken for the secret's", async () => {
    const { folder, record } = await prepared();
    const mine = record as RecordOf<"file">;
    unlinkSync(join(folder, ".s.integ-6k2f9"));
    writeFileSync(join(folder, "s"), "another file");
    const { ino, dev } = statSync(join(folder, "s"), { bigint: true });
    // A file system may reuse inode numbers: this file has the same device and inode, and was created later.
    if (mine.born === undefined) return;
    expect(await delivered({ ...mine, device: String(dev), inode: String(ino) })).toBe(false);
    expect(await delivered({ ...mine, inode: undefined })).toBe(false);
  });
});

describe("a delivered file is recognized by its content", () => {
  async function deliver(): Promise<{ path: string; record: SingleRecord }> {
    const path = join(temporaryFolder(), "s");
    const destination = to(path);
    await destination.prepare(work);
    await destination.deliver(client, delivery);
    return { path, record: destination.record };
  }

  it.each<[string, (path: string) => void, boolean]>([
    ["as it was delivered", () => {}, true],
    ["restored, so that it is another file", (path) => restore(path), true],
    ["readable for its group since", (path) => chmodSync(path, 0o644), true],
    ["with a newline that an editor added", (path) => writeFileSync(path, `${canary}\n`), true],
    ["with another secret in the same file", (path) => writeFileSync(path, "another\n"), false],
    ["truncated in the same file", (path) => truncateSync(path, 4), false],
    ["longer than any secret", (path) => writeFileSync(path, "x".repeat(1024 * 1024 + 1)), false],
    ["removed", (path) => unlinkSync(path), false],
  ])("%s", async (_what, change, isThere) => {
    const { path, record } = await deliver();
    change(path);
    expect(await delivered(record)).toBe(isThere);
  });

  it("but not without the journal's key: the record alone is useless", async () => {
    const { record } = await deliver();
    const others = keyRing({ read: () => ["another-key-of-another-journal-0123456789"] }).digests;
    expect(await remembered(record, others).completeDelivery(delivery.may)).toBe(false);
    expect(JSON.stringify(record)).not.toContain(canary);
  });
});

function restore(path: string): void {
  const text = readFileSync(path);
  writeFileSync(`${path}.restored`, text, { mode: 0o600 });
  renameSync(`${path}.restored`, path);
}

describe("an impossible path", () => {
  const own = (folder: string): SingleDestinationPlace =>
    fileDestination({ path: join(folder, "journal.ndjson"), as: "line", force: true }, "/", {
      ...known,
      own: [join(folder, "journal.ndjson")],
    });

  it("is a usage error if the system cannot check it", async () => {
    for (const path of [`/tmp/${"x".repeat(300)}`, `/tmp/${"x".repeat(300)}/s`]) {
      const { kind, message } = await failureOf(() => to(path).check());
      expect([kind, message]).toEqual(["usage", expect.stringContaining("the name is too long")]);
    }
    const folder = temporaryFolder();
    symlinkSync("loop", join(folder, "loop"));
    expect((await failureOf(() => to(join(folder, "loop", "s")).check())).kind).toBe("usage");
  });

  it("may not be a file of the program itself, under any name", async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "journal.ndjson"), "entries");
    expect(await failureOf(() => own(folder).check())).toMatchObject({ kind: "usage" });
    symlinkSync(folder, join(folder, "other"));
    const around = fileDestination({ path: join(folder, "other/journal.ndjson"), as: "line", force: true }, "/", {
      ...known,
      own: [join(folder, "journal.ndjson")],
    });
    expect(await failureOf(() => around.check())).toMatchObject({ kind: "usage" });
    expect(readFileSync(join(folder, "journal.ndjson"), "utf8")).toBe("entries");
  });
});
