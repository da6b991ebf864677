// What each work on a journal asks of the disk and gives, of every kind of file; with what ended processes left, and with one that
// runs in the way. Sections in file-journal-calls/; `npm run docs` prints them again.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { identify, newOwner } from "../../../../src/disk/lock-owner.ts";
import { Failure } from "../../../../src/errors.ts";
import { FileJournal } from "../../../../src/journal/file/file-journal.ts";
import type { Entry } from "../../../../src/journal/entry.ts";
import type { EntryLease } from "../../../../src/journal/journal.ts";
import { headerLine, seal, sumIn } from "../../../../src/journal/record.ts";
import { filesIn, shortened, wordsOfCall } from "../../../support/call-golden.ts";
import { diskError, onDisk } from "../../../support/disk-calls.ts";
import { everyOf } from "../../../support/sample.ts";
import { expectSection } from "../../../support/golden-section.ts";
import { idAt, longJournal } from "../../../support/long-journal.ts";
import { ada, intent, journalPath } from "../intent.ts";

const self = identify(process.pid);
const startMs = Date.UTC(2026, 10, 21);

let small: string[] = [];
beforeAll(() => {
  small = longJournal(4);
});

function write(path: string, lines: readonly string[]): void {
  writeFileSync(path, lines.join(""), { mode: 0o600 });
}

function lock(path: string, isAlive: boolean): void {
  const pid = isAlive ? process.pid : 2 ** 22 + 7;
  writeFileSync(path, JSON.stringify({ ...newOwner(self, false), pid, start: isAlive ? self.start : "1" }), {
    mode: 0o600,
  });
}

const headed = (header: string): string[] => {
  const first = small[1]!;
  const content = first.slice(first.indexOf('"v":')).replace(/(,"after":"[0-9a-f]{16}")?\}\n$/, "");
  return [header, seal(content, sumIn(header))];
};

/** The journal's folder is there. */
const files: Readonly<Record<string, (path: string) => void>> = {
  none: () => {},
  emptied: (path) => write(path, []),
  small: (path) => write(path, small),
  "small, with what ended processes left": (path) => {
    write(path, small);
    for (const name of [`drive-${idAt(0)}.lock`, `drive-${idAt(2)}.lock`, "lock"]) lock(`${path}.${name}`, false);
  },
  "small, with an entry in use": (path) => {
    write(path, small);
    lock(`${path}.drive-${idAt(0)}.lock`, true);
  },
  "small, and in use": (path) => {
    write(path, small);
    lock(`${path}.lock`, true);
  },
  damaged: (path) => write(path, small.toSpliced(3, 0, '{"sum":"0000000000000000","v":2}\n')),
  "damaged at its end": (path) => write(path, [...small, '{"sum":"0000000000000000","v":2}\n']),
  "moved away": (path) =>
    write(
      path,
      headed(headerLine({ file: "f", createdAt: "2026", moved: { to: "postgresql://h/db", isUnfinished: false } })),
    ),
  "of a newer version": (path) =>
    write(path, headed(headerLine({ file: "f", createdAt: "2026" }).replace(/"v":2/, '"v":9'))),
};

const known = intent({ fingerprint: "request 0", profile: "p0" });
const other = intent({ fingerprint: "another" });
const short = ({ id, state, sequence, attempts, resource_id }: Entry): unknown => [
  id,
  state,
  sequence,
  attempts,
  resource_id,
];

async function released(lease: Promise<EntryLease | null>): Promise<unknown> {
  const held = await lease;
  const entry = held && short(held.entry);
  await held?.release();
  return entry;
}

async function admitted(admission: Promise<{ kind: string; lease: EntryLease } | undefined>): Promise<unknown> {
  const done = await admission;
  await done?.lease.release();
  return done && [done.kind, short(done.lease.entry), done.lease.entry.idempotency_key];
}

async function gathered<T>(all: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const one of all) list.push(one);
  return list;
}

/** Each with a `FileJournal` of its own. */
const works: Readonly<Record<string, (journal: FileJournal, path: string) => unknown>> = {
  "admit another": (journal) => admitted(journal.admit(other)),
  "admit two others": async (journal) => [
    await admitted(journal.admit(other)),
    await admitted(journal.admit(intent({ fingerprint: "a third" }))),
  ],
  "admit two others at once": (journal) =>
    Promise.all([admitted(journal.admit(other)), admitted(journal.admit(intent({ fingerprint: "a third" })))]),
  "admit without a key": (journal) => admitted(journal.admit(intent({ fingerprint: "b", idempotent: false }))),
  "admit what is unfinished": (journal) => admitted(journal.admit(known)),
  "admit it anew": (journal) => admitted(journal.admit(known, { fresh: true })),
  "admit a key that is known": (journal) => admitted(journal.admit(known, { key: "key-0" })),
  "admit a key of another request": (journal) => admitted(journal.admit(other, { key: "key-0" })),
  "admit a new key": (journal) => admitted(journal.admit(other, { key: "k" })),
  "resume what is unfinished": (journal) => admitted(journal.resume(known)),
  "resume another": (journal) => admitted(journal.resume(other)),
  lease: (journal) => released(journal.lease(idAt(0))),
  "lease what is not there": (journal) => released(journal.lease("zzzzzzzzzz")),
  "try a lease": (journal) => released(journal.tryLease(idAt(0))),
  "record twice": async (journal) => {
    const lease = await journal.lease(idAt(0));
    const held = journal.holdsLeases();
    await lease.record({ attempts: 2 });
    const last = await lease.record({ state: "done" });
    await lease.release();
    return [held, short(last), (await journal.history(idAt(0))).length];
  },
  "record two entries at once": async (journal) => {
    const leases = [await journal.lease(idAt(0)), await journal.lease(idAt(1))];
    await Promise.all(leases.map((lease) => lease.record({ attempts: 5 })));
    for (const lease of leases) await lease.release();
    return leases.map(({ entry }) => short(entry));
  },
  "record after its release": async (journal) => {
    const lease = await journal.lease(idAt(0));
    await lease.release();
    return lease.record({ attempts: 2 });
  },
  "take away": async (journal) => {
    await journal.takeAway(idAt(0));
    return released(journal.lease(idAt(0)));
  },
  "ask for all": async (journal) => [
    (await journal.entries()).map(({ id }) => id),
    await journal.count(),
    (await journal.unsettled()).map(({ id }) => id),
    (await journal.select({ all: true, limit: 2 })).map(({ id }) => id),
    (await gathered(journal.each({ all: true, states: ["done"] }))).map(({ id }) => id),
    (await gathered(journal.records())).map(({ id, contents }) => [id, contents.length]),
    (await journal.holders()).size,
  ],
  find: async (journal) => short(await journal.find(idAt(0).slice(0, 9))),
  verify: (journal) => journal.verify(),
  condition: (journal) => journal.condition(),
  "prune as a trial": (journal) => journal.prune(-1e15, { isTrial: true }),
  prune: (journal) => journal.prune(-1e15),
  "prune nothing": (journal) => journal.prune(1e12),
  "mark as moved": async (journal) => {
    await journal.markMoved({ to: "postgresql://h/db", isUnfinished: true });
    return journal.movedTo();
  },
  "mark as moved elsewhere": (journal) => journal.markMoved({ to: "postgresql://other/db", isUnfinished: false }),
  "mark as here": async (journal) => {
    await journal.markMoved(undefined);
    return journal.movedTo();
  },
  "merge its own": async (journal, path) => {
    const source = `${path}.source`;
    write(source, small);
    const records = new FileJournal(source, { now: () => startMs, actor: ada }).records();
    return journal.merge(records);
  },
  "merge nothing": (journal) => journal.merge([]),
  "merge what was moved back": async (journal, path) => {
    const source = `${path}.source`;
    write(source, longJournal(5));
    return journal.merge(new FileJournal(source, { now: () => startMs, actor: ada }).records(), { isMove: true });
  },
  close: (journal) => journal.close(),
};

function shown(value: unknown, path: string): string {
  const ids = new Map([0, 1, 2, 3, 4].map((number) => [idAt(number), `#${number}`]));
  const text = JSON.stringify(value) ?? "nothing";
  return text
    .replaceAll(path, "J")
    .replaceAll(/\b[0-9a-hjkmnp-tv-z]{10}\b/g, (id) => ids.get(id) ?? (/[a-z]/.test(id) && /\d/.test(id) ? "#new" : id))
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "<key>")
    .replaceAll(String(process.pid), "<pid>");
}

async function endOf(act: () => unknown, path: string): Promise<string> {
  try {
    return shown(await act(), path);
  } catch (error) {
    if (!(error instanceof Failure))
      return `${(error as Error).name}: ${(error as Error).message.replace(/[0-9a-hjkmnp-tv-z]{10}/, "#")}`;
    const { cause: _, ...details } = error.details as Failure["details"] & { cause?: unknown };
    return shown([error.kind, error.message, details], path).replace(/^\["(\w+)","/, "$1: ");
  }
}

async function lived(
  make: (path: string) => void,
  act: (journal: FileJournal, path: string) => unknown,
  failAt = -1,
): Promise<{ calls: number; text: string }> {
  const path = journalPath();
  mkdirSync(dirname(path), { mode: 0o700 });
  make(path);
  let now = startMs;
  const locks = { means: () => ({ self, kernel: undefined }), waitMs: 0 };
  const journal = new FileJournal(path, { now: () => (now += 1000), actor: ada, locks });
  const { calls, value, open } = await onDisk(
    () => endOf(() => act(journal, path), path),
    ({ call }, at) => (at === failAt ? diskError("EIO", call) : undefined),
  );
  // What a lock has in its file is not what this is about.
  const words = calls.map((call) => wordsOfCall(call, dirname(path)).replace(/(lock\S*) [\d ]+$/, "$1"));
  const named = (text: string): string =>
    text.replaceAll(/drive-[0-9a-z]{10}/g, "drive-*").replaceAll(/(\.lock\.(?:take|dead|new))-[^\s;,]*/g, "$1");
  const lines = [
    value!,
    `    ${named(shortened(failAt < 0 ? words : words.slice(failAt, failAt + 12)))}`,
    `    left: ${named(filesIn(dirname(path)).replaceAll(/(lock\S*) \d+/g, "$1"))}${open.length > 0 ? `; open: ${named(open.join(", "))}` : ""}`,
  ];
  return { calls: calls.length, text: lines.join("\n") };
}

const onLinux = it.runIf(process.platform === "linux");
const golden = (name: string): string =>
  join(import.meta.dirname, "file-journal-calls", `${name.replaceAll(/\W+/g, "-")}.txt`);
const pairs = Object.keys(files).flatMap((what) => Object.keys(works).map((name) => [what, name] as const));

onLinux.each(everyOf(pairs, 11))("of a file that is %s: %s", async (what, name) => {
  const { text } = await lived(files[what]!, works[name]!);
  expectSection(golden(what), name, text);
});

const failing = [
  ["small", "admit another"],
  ["small", "lease"],
  ["small", "record twice"],
  ["small", "verify"],
  ["small", "condition"],
  ["small", "prune"],
  ["damaged", "verify"],
  ["none", "admit another"],
] as const;

onLinux.each(everyOf(failing, 5))("of a file that is %s, where a call of %s fails", async (what, name) => {
  const { calls } = await lived(files[what]!, works[name]!);
  const ends: string[] = [];
  for (let at = 0; at < calls; at += 1) ends.push(`(${at}) ${(await lived(files[what]!, works[name]!, at)).text}`);
  expect(ends).toHaveLength(calls);
  expectSection(golden(`${what}, failing`), name, ends.join("\n"));
});
