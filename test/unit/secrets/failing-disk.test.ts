// Makes each disk call fail once. integ writes a secret to a private file, syncs it, names it and syncs the name. No other
// copy of the secret may stay.
import fs, { chmodSync, constants, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { Failure } from "../../../src/errors.ts";
import type { RecordOf } from "../../../src/secrets/destination.ts";
import { fileDestination, rememberedFile } from "../../../src/secrets/file.ts";
import { Undelivered } from "../../../src/secrets/kept.ts";
import { temporaryFolder } from "../../support/bundle-driver.ts";
import { type DiskCall, diskError, onDisk } from "../../support/disk-calls.ts";
import { known } from "../../support/known-places.ts";
import { canary, client, delivery, filesWithCanary, modeOf } from "./a-secret.ts";

const work = "6k2f9";
const onLinux = it.runIf(process.platform === "linux");

async function endOf(act: () => unknown): Promise<string> {
  try {
    const value = await act();
    return typeof value === "object" && value !== null ? "a place" : String(value);
  } catch (error) {
    return error instanceof Failure ? `${error.kind}: ${error.message}` : (error as Error).message;
  }
}

/** @returns violations, such as a file that is named before its sync, or that others could read */
function wrongIn(calls: readonly DiskCall[]): string[] {
  const wrong: string[] = [];
  const unsynced = new Set<string>();
  let isNameSynced = true;
  for (const { call, file, args } of calls) {
    const flags = Number(args[1]);
    if (call === "open" && (flags & constants.O_CREAT) !== 0) {
      if ((flags & constants.O_EXCL) === 0) wrong.push(`${file} is opened without O_EXCL`);
      if ((flags & constants.O_NOFOLLOW) === 0) wrong.push(`${file} is opened through a link`);
      if ((Number(args[2]) & 0o077) !== 0) wrong.push(`${file} can be read by others`);
    }
    if (call === "write" || call === "ftruncate") unsynced.add(file);
    if (call === "fsync") unsynced.delete(file);
    if (call === "fsync" && !file.includes("client") && !file.startsWith("e1")) isNameSynced = true;
    if (call === "unlink" && !isNameSynced) wrong.push(`${file} is removed before the new name is synced`);
    if (call === "link" || call === "rename") {
      if (unsynced.has(file)) wrong.push(`${file} is named before it is synced`);
      isNameSynced = false;
    }
  }
  if (!isNameSynced) wrong.push("a name is not synced");
  return wrong;
}

/** True if the last write is zeros, which overwrite the secret on the disk. */
function isZeroed(calls: readonly DiskCall[]): boolean {
  const last = calls.findLast(({ call }) => call === "write")?.args[1];
  return Buffer.isBuffer(last) && last.every((byte) => byte === 0);
}

async function withEachCallFailing<T>(
  live: (folder: string) => Promise<T>,
  look: (about: {
    folder: string;
    value: T | undefined;
    failed: DiskCall | undefined;
    calls: readonly DiskCall[];
    open: readonly string[];
  }) => void,
): Promise<void> {
  for (let at = -1, count = 0; at < count; at += 1) {
    const folder = temporaryFolder();
    let failed: DiskCall | undefined;
    const { calls, value, open } = await onDisk(
      () => live(folder),
      (call, number) => (number === at ? ((failed = call), diskError("EIO", call.call)) : undefined),
    );
    if (at < 0) count = calls.length;
    look({ folder, value, failed, calls, open });
  }
}

const text = (as: "line" | "raw" | "json"): RegExp =>
  as === "json" ? /^\{.*canary-8f2e6b.*\}\n$/s : as === "line" ? /^canary-8f2e6b\n$/ : /^canary-8f2e6b$/;

interface Setting {
  readonly force?: boolean;
  readonly as?: "line" | "raw" | "json";
  /** True if the process ends without freeing its reserve. */
  readonly ends?: boolean;
}

const settings: Readonly<Record<string, Setting>> = {
  "a new file": {},
  "a file in place of another": { force: true, as: "json" },
  "a file of a process that ended": { ends: true },
  "a raw file of a process that ended": { ends: true, as: "raw" },
};

describe.each(Object.entries(settings))("%s", (_name, { force = false, as = "line", ends = false }) => {
  onLinux("is complete under its name or absent, and a later process recognizes which", async () => {
    let record: RecordOf<"file"> | undefined;
    const live = async (folder: string): Promise<string> => {
      record = undefined;
      if (force) writeFileSync(join(folder, "client"), "before");
      const to = fileDestination({ path: "client", as, force }, folder, known);
      return endOf(async () => {
        await to.check();
        record = (await to.prepare(work)) as RecordOf<"file">;
        try {
          await to.deliver(client, { ...delivery, record: async (it) => void (record = it as RecordOf<"file">) });
          return "delivered";
        } finally {
          if (!ends) await to.release();
        }
      });
    };
    const looks: (() => Promise<void>)[] = [];
    await withEachCallFailing(live, ({ folder, value, failed, calls, open }) => {
      const what = `${failed?.call} ${failed?.file}`;
      if (!ends && failed?.call !== "fstat") expect([what, open]).toEqual([what, []]);
      const path = join(folder, "client");
      const isWhole = (): boolean => existsSync(path) && text(as).test(readFileSync(path, "utf8"));
      if (failed === undefined) expect([value, wrongIn(calls)]).toEqual(["delivered", []]);
      if (value === "delivered") expect([what, isWhole()]).toEqual([what, true]);
      if (existsSync(path) && !isWhole()) expect([what, readFileSync(path, "utf8")]).toEqual([what, "before"]);
      for (const file of filesWithCanary(folder)) expect([what, modeOf(file)]).toEqual([what, "600"]);
      // Freed space no longer contains the secret, unless freeing failed and was reported.
      const others = filesWithCanary(folder).filter((file) => basename(file) !== "client");
      if (!ends && value === "delivered") expect([what, others]).toEqual([what, []]);
      if (!ends && failed?.call !== "write" && failed?.call !== "unlink" && failed?.call !== "lstat")
        expect([what, isWhole() ? [] : others]).toEqual([what, []]);
      if (!ends && value !== "delivered" && !isWhole() && record !== undefined)
        expect([what, isZeroed(calls)]).toEqual([what, failed?.call !== "write" || isZeroed(calls)]);
      const last = record;
      if (last === undefined) return;
      looks.push(async () => {
        const later = rememberedFile(last, known.digests);
        const isThere = await later.completeDelivery(async () => {});
        expect([what, isThere, isWhole()]).toEqual([what, isThere, isThere || (value !== "delivered" && isWhole())]);
        if (isThere) expect([what, await later.reread()]).toEqual([what, canary]);
        later.removeReserve(work, { isKept: true });
        expect([what, filesWithCanary(folder).filter((file) => file !== path)]).toEqual([what, []]);
      });
    });
    for (const look of looks) await look();
  });
});

describe("a kept secret", () => {
  onLinux("is read back complete if it was reported as kept", async () => {
    const live = (folder: string): Promise<string> =>
      endOf(async () => {
        const kept = new Undelivered(folder);
        await kept.reserve("e1");
        await kept.keep("e1", client);
        return "kept";
      });
    const looks: (() => void)[] = [];
    await withEachCallFailing(live, ({ folder, value, failed, calls, open }) => {
      if (failed === undefined) expect([value, wrongIn(calls)]).toEqual(["kept", []]);
      expect([failed?.call, open]).toEqual([failed?.call, []]);
      for (const file of filesWithCanary(folder)) expect(modeOf(file)).toBe("600");
      looks.push(() => {
        const later = new Undelivered(folder);
        const what = `${failed?.call} ${failed?.file}`;
        if (value === "kept") expect([what, later.isKept("e1")]).toEqual([what, true]);
        if (later.isKept("e1")) expect([what, later.read("e1").secret]).toEqual([what, canary]);
      });
    });
    for (const look of looks) look();
  });

  onLinux("cannot be read once it is reported as destroyed", async () => {
    const live = (folder: string): Promise<string> =>
      endOf(async () => {
        const kept = new Undelivered(folder);
        await kept.destroy("e1");
        await kept.destroy("e1");
        return "destroyed";
      });
    for (let at = -1, count = 0; at < count; at += 1) {
      const folder = temporaryFolder();
      await new Undelivered(folder).keep("e1", client);
      const { calls, value } = await onDisk(
        () => live(folder),
        ({ call }, number) => (number === at ? diskError("EIO", call) : undefined),
      );
      if (at < 0) count = calls.length;
      if (value === "destroyed") expect([at, filesWithCanary(folder)]).toEqual([at, []]);
      if (at < 0) expect([value, isZeroed(calls)]).toEqual(["destroyed", true]);
    }
  });

  it("stays if only its reserve is freed", async () => {
    const kept = new Undelivered(temporaryFolder());
    await kept.keep("e1", client);
    await kept.release("e1");
    expect([kept.isKept("e1"), kept.entriesWithSpace()]).toEqual([true, ["e1"]]);
  });
});

describe("a reserve", () => {
  it("belongs to one work, and is freed", async () => {
    const folder = temporaryFolder();
    const to = fileDestination({ path: "client", as: "line" }, folder, known);
    await to.prepare(work);
    await to.prepare(work);
    await to.prepare("other");
    expect(fs.readdirSync(folder)).toEqual([".client.integ-other"]);
    await to.release();
    expect(fs.readdirSync(folder)).toEqual([]);
  });

  it("with the whole secret of an earlier run is not reused", async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, ".client.integ-6k2f9"), `${canary}\n`, { mode: 0o600 });
    const to = fileDestination({ path: "client", as: "line" }, folder, known);
    expect(await endOf(() => to.prepare(work))).toContain("contains the secret of an earlier run");
    expect(filesWithCanary(folder)).toHaveLength(1);
  });

  it("is required by a delivery", async () => {
    const to = fileDestination({ path: "client", as: "line" }, temporaryFolder(), known);
    expect(await endOf(() => to.deliver(client, delivery))).toBe("No space could be reserved for it there.");
  });
});

describe("a target", () => {
  const refusal = (folder: string, path: string, { force = true, own = [] as string[] } = {}): Promise<string> =>
    endOf(() => fileDestination({ path, as: "line", force }, folder, { ...known, own }).check());
  const refused = (path: string, why: string): string => `usage: The secret cannot go to ${path}: ${why}.`;

  it("is refused with the reason", async () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, "sub"));
    writeFileSync(join(folder, "there"), "");
    symlinkSync("there", join(folder, "link"));
    const at = (name: string): string => join(folder, name);
    for (const [path, why] of [
      ["/", "it names no file"],
      [at("sub"), "it is a folder"],
      [at("link"), "it is a symbolic link, and a secret is never written through one"],
      [at("none/x"), `the folder ${at("none")} does not exist`],
      [at("there/x"), `${at("there")} is not a folder`],
      ["/dev/null", "it is not a plain file"],
    ] as const)
      expect(await refusal(folder, path)).toContain(refused(path, why));
    expect(await refusal(folder, at("own"), { own: [at("own")] })).toContain("integ keeps its own files there");
    expect(await refusal(folder, "there")).toBe("a place");
    expect(await refusal(folder, "there", { force: false })).toContain("the file already exists");
  });

  onLinux.each([
    ["EROFS", "read-only"],
    ["EACCES", "not writable for you"],
  ])("in a folder that gives %s is refused as %s", async (code, words) => {
    const folder = temporaryFolder();
    const { value, calls } = await onDisk(
      () => refusal(folder, "x"),
      ({ call }) => (call === "access" ? diskError(code, "access") : undefined),
    );
    expect(value).toContain(`the folder ${folder} is ${words}`);
    expect(calls.find(({ call }) => call === "access")?.args).toEqual([folder, 3]);
  });

  const original = { stat: fs.statSync, lstat: fs.lstatSync };

  onLinux.each([
    [0, 0o1777, 7, 8, true],
    [9, 0o1777, 7, 8, false],
    [9, 0o777, 7, 8, true],
    [9, 0o1777, 9, 8, true],
    [9, 0o1777, 7, 9, true],
    [0, 0o755, 7, 8, true],
  ])("as user %i in a folder with mode %o, of %i in one of %i", async (me, mode, owner, folderOwner, may) => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "there"), "");
    chmodSync(folder, mode);
    const user = vi.spyOn(process, "getuid" as "uptime").mockReturnValue(me);
    try {
      const { value } = await onDisk(
        () => refusal(folder, "there"),
        ({ call, args }) => {
          if (call !== "stat" && call !== "lstat") return undefined;
          const uid = args[0] === folder ? folderOwner : owner;
          return (path: string) => Object.assign(original[call](path), { uid });
        },
      );
      expect(value).toEqual(may ? "a place" : expect.stringContaining("the file belongs to another user"));
    } finally {
      user.mockRestore();
      chmodSync(folder, 0o700);
    }
  });

  onLinux("belongs to the user on a system without users", async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "there"), "");
    chmodSync(folder, 0o1777);
    const { getuid } = process;
    Object.assign(process, { getuid: undefined });
    try {
      expect(await refusal(folder, "there")).toBe("a place");
    } finally {
      Object.assign(process, { getuid });
    }
    expect(readFileSync(join(folder, "there"), "utf8")).toBe("");
  });
});
