// What a secret's file and a kept secret ask of the disk, call by call: as asked, and with each call failing, then what a later
// process makes of it. One file for each work in file-calls/; `npm run docs` prints them again.
import fs, { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { Failure } from "../../../src/errors.ts";
import type { ProofKeys, RecordOf } from "../../../src/secrets/destination.ts";
import { fileDestination, rememberedFile } from "../../../src/secrets/file.ts";
import { Undelivered } from "../../../src/secrets/kept.ts";
import { everyOf } from "../../support/sample.ts";
import { filesIn, shortened, wordsOfCall } from "../../support/call-golden.ts";
import { temporaryFolder } from "../../support/bundle-driver.ts";
import { diskError, onDisk } from "../../support/disk-calls.ts";
import { canary, client, delivery, key } from "./a-secret.ts";

const work = "6k2f9";
const onLinux = it.runIf(process.platform === "linux");

function keysOf(): ProofKeys {
  const made = new Map<string, Buffer>();
  const make = async (entry: string): Promise<Buffer> => {
    if (!made.has(entry)) made.set(entry, Buffer.from(`key of ${entry}`));
    return made.get(entry)!;
  };
  return { make, find: (entry) => made.get(entry) };
}

function errorOf(error: unknown): string {
  if (!(error instanceof Failure)) return (error as Error).message;
  const { cause: _, ...details } = error.details as Failure["details"] & { cause?: unknown };
  return `${error.kind}: ${error.message} ${JSON.stringify(details)}`;
}

async function endOf(act: () => unknown): Promise<string> {
  try {
    const value = await act();
    return typeof value === "object" && value !== null ? "a place" : String(value);
  } catch (error) {
    return errorOf(error);
  }
}

interface Work {
  /** Makes what is there before. */
  readonly make?: (folder: string) => void;
  /** @returns what a later process does about it */
  readonly act: (folder: string, note: (record: RecordOf<"file">) => void) => unknown;
  /** Each as another process. */
  readonly later?: Readonly<Record<string, (folder: string, record: RecordOf<"file">) => unknown>>;
}

async function lived(
  { make, act, later = {} }: Work,
  name: string,
  failAt = -1,
): Promise<{ calls: number; lines: string[] }> {
  const folder = temporaryFolder();
  make?.(folder);
  let record: RecordOf<"file"> | undefined;
  let failed = "";
  const { calls, value, open } = await onDisk(
    () => endOf(() => act(folder, (known) => (record = known))),
    (call, at) => {
      if (at !== failAt) return undefined;
      failed = wordsOfCall(call, folder);
      return diskError("EIO", call.call);
    },
  );
  const words = calls.map((call) => wordsOfCall(call, folder));
  const lines = [
    `${name}${failed && `, ${failed} (${failAt}) fails`}: ${value}`,
    `    ${shortened(failAt < 0 ? words : words.slice(failAt))}`,
    `    left: ${filesIn(folder)}${open.length > 0 ? `; open: ${open.join(", ")}` : ""}`,
  ];
  for (const [what, does] of Object.entries(later)) {
    if (record === undefined) break;
    const known = record;
    const more = await onDisk(() => endOf(() => does(folder, known)));
    lines.push(
      `    later, ${what}: ${more.value}`,
      `        ${shortened(more.calls.map((call) => wordsOfCall(call, folder)))}`,
      `        left: ${filesIn(folder)}${more.open.length > 0 ? `; open: ${more.open.join(", ")}` : ""}`,
    );
  }
  return {
    calls: calls.length,
    lines: lines.map((line) => line.replaceAll(folder, "folder").replaceAll(canary, "secret")),
  };
}

function toFile(
  options: { force?: boolean; as?: "line" | "raw" | "json"; proven?: boolean; path?: string } = {},
): Work {
  const { force = false, as = "line", proven = false, path = "client" } = options;
  const keys = proven ? keysOf() : undefined;
  const forget = (record: RecordOf<"file">) => rememberedFile(record, keys);
  return {
    act: async (folder, note) => {
      const to = fileDestination({ path, as, force }, folder, { keys });
      await to.check();
      note((await to.prepare(work)) as RecordOf<"file">);
      try {
        await to.deliver(client, { ...delivery, record: async (record) => note(record as RecordOf<"file">) });
      } finally {
        await to.release();
        await to.release();
      }
    },
    later: {
      "asked whether it is there": (_folder, record) => forget(record).completeDelivery({}),
      "asked what it is": (_folder, record) => forget(record).reread(),
      "asked again": (_folder, record) => forget(record).completeDelivery({}),
      "given back": (_folder, record) => forget(record).removeReserve(work),
    },
  };
}

/** Of a process that ended before it gave back what it had reserved. */
function unfinished({ as = "line", proven = false }: { as?: "line" | "raw" | "json"; proven?: boolean } = {}): Work {
  const keys = proven ? keysOf() : undefined;
  const { later } = toFile({ as });
  const forget = (record: RecordOf<"file">) => rememberedFile(record, keys);
  return {
    act: async (folder, note) => {
      const to = fileDestination({ path: "client", as, force: false }, folder, { keys });
      note((await to.prepare(work)) as RecordOf<"file">);
      await to.deliver(client, { ...delivery, record: async (record) => note(record as RecordOf<"file">) });
    },
    later: proven
      ? {
          "given back as kept": (_folder, record) => forget(record).removeReserve(work, { isKept: true }),
          "asked whether it is there": (_folder, record) => forget(record).completeDelivery({}),
          "given back by another entry": (_folder, record) => forget(record).removeReserve("other", { isKept: true }),
        }
      : later!,
  };
}

const exists = (folder: string): void => writeFileSync(join(folder, "client"), "before");

const works: Readonly<Record<string, Work>> = {
  "a file": toFile(),
  "a file with a digest": toFile({ proven: true }),
  "a file in place of another": { ...toFile({ force: true, as: "json" }), make: exists },
  "a file that another has": { ...toFile(), make: exists },
  "a file of a process that ended": unfinished(),
  "a file of a process that ended, as it came": unfinished({ as: "raw" }),
  "a file of a process that ended, with a digest": unfinished({ proven: true }),
  "a place that is prepared twice": {
    act: async (folder, note) => {
      const to = fileDestination({ path: "client", as: "line", force: false }, folder);
      await to.prepare(work);
      note((await to.prepare(work)) as RecordOf<"file">);
      note((await to.prepare("other")) as RecordOf<"file">);
      await to.release();
    },
    later: { "given back": (_folder, record) => rememberedFile(record).removeReserve("other") },
  },
  "a reserve that is left": {
    act: async (folder, note) =>
      note(
        (await fileDestination({ path: "client", as: "line", force: false }, folder).prepare(work)) as RecordOf<"file">,
      ),
    later: {
      "asked whether it is there": (_folder, record) => rememberedFile(record).completeDelivery({}),
      "given back": (_folder, record) => rememberedFile(record).removeReserve(work),
      "given back again": (_folder, record) => rememberedFile(record).removeReserve(work),
    },
  },
  "a reserve with the secret of an earlier run": {
    make: (folder) => writeFileSync(join(folder, ".client.integ-6k2f9"), `${canary}\n`, { mode: 0o600 }),
    act: (folder) => fileDestination({ path: "client", as: "line", force: false }, folder).prepare(work),
  },
  "a delivery without a reserve": {
    act: (folder) => fileDestination({ path: "client", as: "line", force: false }, folder).deliver(client, delivery),
  },
  "a secret that is kept": {
    act: async (folder) => {
      const kept = new Undelivered(folder);
      await kept.reserve("e1");
      await kept.keep("e1", client);
      return JSON.stringify([kept.isKept("e1"), kept.read("e1"), kept.list(), kept.rooms()]);
    },
  },
  "a secret that is kept without space": { act: (folder) => new Undelivered(folder).keep("e1", key) },
  "a kept secret that is destroyed": {
    act: async (folder) => {
      const kept = new Undelivered(folder);
      await kept.keep("e1", client);
      await kept.proofKeys.make("e1");
      await kept.release("e1");
      await kept.destroy("e1", { keepsProof: true });
      await kept.destroy("e1");
      await kept.destroy("e1");
    },
  },
  "a key of a digest": {
    act: async (folder) => {
      const { proofKeys } = new Undelivered(folder);
      const made = await proofKeys.make("e1");
      return [
        made.length,
        made.equals(await proofKeys.make("e1")),
        proofKeys.find("e1")?.equals(made),
        proofKeys.find("e2"),
      ].join(" ");
    },
  },
};

describe.each(everyOf(Object.entries(works), 4))("%s", (name, what) => {
  onLinux("asks of the disk what it asks", async () => {
    const { calls, lines } = await lived(what, "as asked");
    for (let at = 0; at < calls; at += 1) lines.push(...(await lived(what, "then", at)).lines);
    const file = `${name.replaceAll(/\W+/g, "-")}.txt`;
    await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot(join(import.meta.dirname, "file-calls", file));
  });
});

describe("a target", () => {
  const refusal = (folder: string, path: string, { force = true, own = [] as string[] } = {}): Promise<string> =>
    endOf(() => fileDestination({ path, as: "line", force }, folder, { own }).check());
  const refused = (path: string, why: string): string => `usage: The secret cannot go to ${path}: ${why}.`;

  it("is refused with what is in its way", async () => {
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

  /** As they are while no call is watched. */
  const looking = { stat: fs.statSync, lstat: fs.lstatSync };

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
          return (path: string) => Object.assign(looking[call](path), { uid });
        },
      );
      expect(value).toEqual(may ? "a place" : expect.stringContaining("the file belongs to another user"));
    } finally {
      user.mockRestore();
      chmodSync(folder, 0o700);
    }
  });

  onLinux("is the user's own where the system knows no users", async () => {
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
