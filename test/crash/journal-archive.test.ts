import fs, { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import { afterAll, beforeEach, expect, test } from "vitest";
import type { Entry } from "../../src/journal/entry.ts";
import type { Journal } from "../../src/journal/journal.ts";
import { type DiskCall, diskError, onDisk } from "../support/disk-calls.ts";
import { recordFigure } from "../support/figures.mjs";
import { fileJournal } from "../support/file-journal.ts";
import { ada, clock, intent } from "../unit/journal/intent.ts";
import {
  type FileOperation,
  fingerprintOf,
  type Image,
  readImage,
  statesAfter,
  writeImage,
} from "./power-loss-disk.ts";

/** Saved before `onDisk` replaces the functions of `fs`. */
const real = { ...fs };
const home = mkdtempSync(join(tmpdir(), "integ-archive-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const folder = join(home, "state");
const path = join(folder, "journal.ndjson");
const now = clock();
const opened = (archiveBytes = 2000): Journal => fileJournal(path, { now, actor: ada, archiveBytes, locks: unlocked });
/** The false start time makes a lock that a simulated kill leaves look like the lock of an ended process. */
const unlocked = { means: () => ({ self, kernel: undefined }), waitMs: 2000 };
const self = { pid: process.pid, start: "1", boot: "b", space: null, host: "h" };

let start: Image;
let before: readonly Entry[];

async function admitAndRelease(journal: Journal, fingerprint: string, state?: "refused" | "unknown"): Promise<void> {
  const { lease } = await journal.admit(intent({ fingerprint }));
  if (state) await lease.record({ state, attempts: 1 });
  await lease.release();
}

const all = (): Promise<Entry[]> => opened().select({ all: true, archived: true });
/** The change moves finished entries, and then admits another entry. */
const change = (): Promise<void> => admitAndRelease(opened(), "next");

beforeEach(async () => {
  if (before === undefined) {
    fs.mkdirSync(folder, { mode: 0o700 });
    for (let number = 0; number < 3; number += 1) await admitAndRelease(opened(1e9), `first ${number}`, "refused");
    await admitAndRelease(opened(), "moved");
    for (let number = 0; number < 3; number += 1) await admitAndRelease(opened(1e9), `refused ${number}`, "refused");
    await admitAndRelease(opened(1e9), "unknown", "unknown");
    start = readImage(folder);
    before = await all();
  }
  writeImage(start, folder);
});

async function expectWhole(where: string): Promise<void> {
  for (const name of fs.readdirSync(folder)) if (/\.lock/.test(name)) rmSync(join(folder, name));
  const found = await all();
  const old = found.filter(({ fingerprint }) => fingerprint !== "next");
  expect(old, where).toEqual(before);
  expect(found.length - old.length, where).toBeLessThanOrEqual(1);
  const problems = (await opened().verify()).filter(({ severity }) => severity === "problem");
  expect(problems, where).toEqual([]);
  await change();
  const again = await all();
  expect(
    again.filter(({ fingerprint }) => fingerprint !== "next"),
    where,
  ).toEqual(before);
  expect(
    (await opened().verify()).filter(({ severity }) => severity === "problem"),
    where,
  ).toEqual([]);
  expect(
    (await opened().unsettled()).map(({ fingerprint }) => fingerprint),
    where,
  ).toEqual(["next", "unknown", "moved"]);
}

test("a change moves finished entries with these calls", async () => {
  const { calls, error } = await onDisk(change);
  expect(error).toBeUndefined();
  const lasting = calls.filter(({ call, file }) => /^(?:write|fsync|rename)$/.test(call) && !/\.lock/.test(file));
  expect(lasting.map(({ call, file }) => `${call} ${file.replace(/(\.new).*/, "$1")}`)).toEqual([
    "write archive.ndjson",
    "fsync archive.ndjson",
    "fsync state",
    `fsync ${basename(home)}`,
    "write journal.ndjson.new",
    "fsync journal.ndjson.new",
    "rename journal.ndjson.new",
    "fsync state",
    "write journal.ndjson",
    "fsync journal.ndjson",
    "fsync state",
    `fsync ${basename(home)}`,
  ]);
});

test("a kill before any call loses nothing", async () => {
  const { calls } = await onDisk(change);
  let hit = 0;
  for (let number = 0; number < calls.length; number += 1) {
    // A killed write may be partial.
    for (const part of calls[number]!.call === "write" ? [0, 1, 2] : [0]) {
      writeImage(start, folder);
      const { error } = await onDisk(change, ({ call, args }, place) => {
        if (place < number) return undefined;
        if (place === number && part > 0 && call === "write") {
          const [fd, bytes, offset, length, at] = args as [number, Buffer, number, number, number | null];
          real.writeSync(fd, bytes, offset, Math.floor((length * part) / 3), at);
        }
        return diskError("EIO", call);
      });
      // The change succeeds even if a lock cannot be removed.
      if (error === undefined) expect(calls[number]!.file).toMatch(/\.lock|^$/);
      hit += 1;
      await expectWhole(`killed before ${number}: ${calls[number]!.call} ${calls[number]!.file}, part ${part}`);
    }
  }
  recordFigure("journal kill", { points: hit, hit, violations: 0 }, "archive");
}, 120_000);

/** @returns for each file operation of `work`, all operations up to and including it */
async function operationsOf(work: () => Promise<void>): Promise<FileOperation[][]> {
  const operations: FileOperation[] = [];
  const cuts: FileOperation[][] = [];
  const nodes = new Map<string, number>(start.names);
  const fds = new Map<number, number>();
  let next = 1000;
  const inside = (at: unknown): string => relative(folder, String(at));
  const observe = ({ call, args }: DiskCall): unknown => {
    const [first, second] = args;
    const node = typeof first === "number" ? fds.get(first) : nodes.get(inside(first));
    const add = (...done: FileOperation[]): void => {
      operations.push(...done);
      cuts.push([...operations]);
    };
    if (call === "open")
      return (...given: Parameters<typeof fs.openSync>) => {
        const name = inside(given[0]);
        const isNew = !real.existsSync(given[0]);
        const fd = real.openSync(...given);
        if (isNew && !name.startsWith("..")) {
          nodes.set(name, (next += 1));
          add({ kind: "create", path: name, node: next, isFolder: false });
        }
        const known = nodes.get(name);
        if (known !== undefined) fds.set(fd, known);
        return fd;
      };
    if (node === undefined) return undefined;
    if (call === "write") {
      const [fd, bytes, offset, length, at] = args as [number, Buffer, number, number, number | null];
      const place = at ?? real.fstatSync(fd).size;
      add({ kind: "write", node, at: place, bytes: Buffer.from(bytes.subarray(offset, offset + length)) });
    } else if (call === "ftruncate") add({ kind: "cut", node, length: Number(second) });
    else if (call === "fsync") add({ kind: "sync", node });
    else if (call === "unlink") add({ kind: "remove", path: inside(first) });
    else if (call === "rename" || call === "link") {
      add({ kind: call, from: inside(first), to: inside(second), node });
      nodes.set(inside(second), node);
    }
    return undefined;
  };
  const { error } = await onDisk(work, observe);
  expect(error).toBeUndefined();
  return cuts;
}

test("a power cut after any call loses nothing", async () => {
  const cuts = await operationsOf(change);
  const states = new Map<string, { readonly how: string; readonly image: Image }>();
  for (const operations of cuts)
    for (const { how, image } of statesAfter(start, operations))
      states.set(fingerprintOf(image), { how: `${operations.length}: ${how}`, image });
  let played = 0;
  for (const { how, image } of states.values()) {
    played += 1;
    writeImage(image, folder);
    await expectWhole(`power cut after ${how}`);
  }
  expect(played).toBeGreaterThan(50);
  recordFigure("journal kill", { points: played, hit: played, violations: 0 }, "archive, power cuts");
}, 300_000);

test.each(["ENOSPC", "EDQUOT", "EFBIG"])("a write that fails with %s leaves both files unchanged", async (code) => {
  const { calls } = await onDisk(change);
  const writes = calls.flatMap(({ call, file }, place) => (call === "write" && !/\.lock/.test(file) ? [place] : []));
  expect(writes.length).toBe(3);
  for (const number of writes) {
    writeImage(start, folder);
    const { error } = await onDisk(change, ({ call }, place) => (place === number ? diskError(code, call) : undefined));
    expect(error).toMatchObject({ kind: "failed" });
    expect(fs.readdirSync(folder).filter((name) => /\.(?:lock|new)/.test(name))).toEqual([]);
    await expectWhole(`${code} of ${calls[number]!.file}`);
  }
});

test("a failed sync ends all writing of the process", async () => {
  const { calls } = await onDisk(change);
  for (const [number, { call, file }] of calls.entries()) {
    if (call !== "fsync" || /\.lock/.test(file)) continue;
    writeImage(start, folder);
    const journal = opened();
    const { error } = await onDisk(
      () => admitAndRelease(journal, "next"),
      (_, place) => (place === number ? diskError("EIO", call) : undefined),
    );
    expect(error).toMatchObject({ kind: "failed" });
    const again = await onDisk(() => admitAndRelease(journal, "again"));
    expect(again.error).toMatchObject({ message: expect.stringContaining("could not be synced") });
    expect(again.calls.filter((one) => one.call === "write" && !/\.lock/.test(one.file))).toEqual([]);
    await expectWhole(`fsync ${number} of ${dirname(file)}`);
  }
});

test("each entry of several simultaneous processes exists once", async () => {
  const journals = Array.from({ length: 6 }, () => fileJournal(path, { now, actor: ada, archiveBytes: 2000 }));
  await Promise.all(
    journals.map(async (journal, number) => {
      for (let round = 0; round < 5; round += 1) await admitAndRelease(journal, `of ${number} ${round}`, "refused");
    }),
  );
  const found = await all();
  expect(new Set(found.map(({ id }) => id)).size).toBe(found.length);
  expect(found.filter(({ fingerprint }) => fingerprint.startsWith("of "))).toHaveLength(30);
  expect(found.filter(({ fingerprint }) => !fingerprint.startsWith("of "))).toEqual(before);
  expect(await opened().verify()).toEqual([]);
});
