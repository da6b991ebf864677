// What the journal's file asks of the disk, call by call: of every kind of file, whatever is done to it, and with each call of
// an append failing. One file for each kind in journal-calls/; `npm run docs` prints them again.
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeAll, it } from "vitest";
import { newEntry } from "../../../../src/journal/admission.ts";
import { Failure } from "../../../../src/errors.ts";
import { JournalFile } from "../../../../src/journal/file/journal-file.ts";
import type { Reading } from "../../../../src/journal/file/reading.ts";
import { recordContent } from "../../../../src/journal/record.ts";
import { everyOf } from "../../../support/sample.ts";
import { expectSection } from "../../../support/golden-section.ts";
import { filesIn, shortened, wordsOfCall } from "../../../support/call-golden.ts";
import { idAt, longJournal } from "../../../support/long-journal.ts";
import { type DiskCall, diskError, onDisk } from "../../../support/disk-calls.ts";
import { ada, intent, journalPath } from "../intent.ts";

const now = (): number => Date.UTC(2026, 0, 1);
const content = (number: number): string =>
  recordContent(newEntry(intent({ fingerprint: `n${number}` }), { id: idAt(number), key: "k", at: "2026-01-01" }), {
    by: ada,
  });

let small = "";
let long = "";
let longer = "";
beforeAll(() => {
  small = longJournal(3).join("");
  long = longJournal(12, { padding: "x".repeat(50_000) }).join("");
  longer = longJournal(24, { padding: "x".repeat(100_000) }).join("");
});

/** Makes the file; the journal's folder is there. */
const files: Readonly<Record<string, (path: string) => void>> = {
  none: () => {},
  empty: (path) => write(path, ""),
  small: (path) => write(path, small),
  "small without its last newline": (path) => write(path, small.slice(0, -1)),
  torn: (path) => write(path, `${small}{"sum":"00`),
  damaged: (path) => write(path, `${small}{"sum":"0000000000000000","v":2}\n`),
  "damaged in the middle": (path) => write(path, small.replace("\n", '\n{"sum":"0000000000000000","v":2}\n')),
  "of half a megabyte": (path) => write(path, long),
  "of half a megabyte, with its index": (path) => {
    write(path, long);
    new JournalFile(path, { now }).keepIndex();
  },
  "with an index and more behind it": (path) => {
    write(path, long);
    new JournalFile(path, { now }).keepIndex();
    new JournalFile(path, { now }).append(() => [content(900)]);
  },
  "with an index that is broken": (path) => {
    write(path, long);
    new JournalFile(path, { now }).keepIndex();
    writeFileSync(`${path}.index`, "x");
  },
  "of three pieces": (path) => write(path, longer),
  "of three pieces, damaged in each": (path) =>
    write(path, longer.replaceAll(/\n(?=.{60000})/g, '\n{"sum":"0000000000000000","v":2}\n')),
};

function write(path: string, text: string): void {
  writeFileSync(path, text, { mode: 0o600 });
}

type Action = (file: JournalFile, path: string) => unknown;

/** Each with a `JournalFile` of its own. */
const actions: Readonly<Record<string, Action>> = {
  read: (file) => file.read(),
  "read twice": (file) => [file.read(), file.read()],
  "read, and again after others appended": (file, path) => {
    const before = file.read();
    new JournalFile(path, { now }).append(() => [content(901)]);
    return [before, file.read()];
  },
  "read, and again after damage came": (file, path) => {
    const before = file.read();
    appendFileSync(path, '{"sum":"0000000000000000","v":2}\n', { mode: 0o600 });
    return [before, file.read()];
  },
  "read first": (file) => file.readFirst(),
  "read first, by two at once, then again": async (file) => [
    ...(await Promise.all([file.readFirst(), file.readFirst()])),
    await file.readFirst(),
  ],
  "read as a whole, then read": (file) => [file.readWhole(), file.read()],
  watch: async (file) => {
    const seen: unknown[] = [];
    const reading = await file.watchWhole({
      add: (piece, fold) => void seen.push([piece.found.length, piece.damage.length, fold.count()]),
      takes: () => true,
      addFacts: () => void seen.push("facts"),
    });
    return [reading, file.read(), JSON.stringify(seen)];
  },
  size: (file) => file.size(),
  "where it went": (file) => JSON.stringify(file.movedTo()),
  append: (file) => file.append(() => [content(1000)]),
  "append two": (file) => file.append(() => [content(1000), content(1001)]),
  "append twice": (file) => {
    file.append(() => [content(1000)]);
    file.append((fold) => [content(1001 + fold.count())]);
  },
  "append twice in one sync, then once": (file) => {
    file.inOneSync((count) => {
      file.append(() => [content(1000)]);
      file.append(() => [content(1000 + count())]);
    });
    file.append(() => [content(1002)]);
  },
  "nothing in one sync": (file) => file.inOneSync(() => {}),
  "append what cannot be made": (file) =>
    file.append(() => {
      throw new Failure("usage", "not this one");
    }),
  prepare: (file) => file.prepare(),
  "keep its index": (file) => file.keepIndex(),
  "keep its index twice": (file) => {
    file.keepIndex();
    file.keepIndex();
  },
  "set aside": (file) => file.setAside(file.read()),
  replace: (file) => file.replace(file.read(), (header) => [Buffer.from(header({} as never))]),
};

function valueOf(value: unknown): string {
  if (Array.isArray(value)) return value.map(valueOf).join(" | ");
  if (typeof value !== "object" || value === null) return String(value);
  const { fold, damage, torn, size, isEmptied } = value as Reading;
  return [
    `${fold.count()} of ${fold.format}`,
    fold.earlier && "indexed",
    `damage ${fold.damage.length}+${damage.length}`,
    torn && `torn ${torn.offset}`,
    size,
    isEmptied && "emptied",
  ]
    .filter(Boolean)
    .join(", ");
}

function errorOf(error: unknown): string {
  return error instanceof Failure ? `${error.kind}: ${error.message}` : (error as Error).message;
}

interface Work {
  readonly make: (path: string) => void;
  readonly act: Action;
}

/** @returns how many calls there were, and what is said of them */
async function lived(name: string, { make, act }: Work, failAt = -1): Promise<{ calls: number; lines: string[] }> {
  const path = journalPath();
  mkdirSync(dirname(path), { mode: 0o700 });
  make(path);
  const file = new JournalFile(path, { now });
  let last: DiskCall | undefined;
  const { calls, value, error, open } = await onDisk(
    () => act(file, path),
    (call, at) => (at === failAt ? ((last = call), diskError("EIO", call.call)) : undefined),
  );
  const words = calls.map((call) => wordsOfCall(call, dirname(path)));
  const shown = failAt < 0 ? words : words.slice(failAt);
  const end = error === undefined ? valueOf(value) : errorOf(error);
  const said = end.replaceAll(path, "J").replaceAll(dirname(path), "folder");
  const kept = open.map((one) => one.replace("journal.ndjson", "J"));
  const lines = [
    `${name}${last ? `, ${wordsOfCall(last, dirname(path))} (${failAt}) fails` : ""}: ${said}`,
    `    ${shortened(shown)}`,
    `    left: ${filesIn(dirname(path))}${kept.length > 0 ? `; open: ${kept.join(", ")}` : ""}${file.lacksIndex ? "; lacks its index" : ""}`,
  ];
  return { calls: calls.length, lines };
}

/** What takes long is done to few of the long files. */
const brief = ["read", "read twice", "read first, by two at once, then again", "watch", "append", "keep its index"];

const golden = (name: string): string =>
  join(import.meta.dirname, "journal-calls", `${name.replaceAll(/\W+/g, "-")}.txt`);

/** Other systems have other calls. */
const onLinux = it.runIf(process.platform === "linux");

const pairs = Object.entries(files).flatMap(([what, make]) =>
  Object.entries(actions)
    .filter(([name]) => !what.startsWith("of three") || brief.includes(name))
    .map(([name, act]) => [what, name, { make, act }] as const),
);

onLinux.each(everyOf(pairs, 9))("of a file that is %s: %s", async (what, name, work) => {
  const { lines } = await lived(name, work);
  expectSection(golden(what), name, lines.join("\n"));
});

const failing = [
  ["none", "append"],
  ["small", "append"],
  ["small", "append twice in one sync, then once"],
  ["torn", "append"],
  ["damaged", "append"],
  ["of half a megabyte", "append"],
  ["of half a megabyte, with its index", "read"],
  ["damaged", "replace"],
] as const;

onLinux.each(everyOf(failing, 4))("of a file that is %s, where a call of %s fails", async (what, name) => {
  const work: Work = { make: files[what]!, act: actions[name]! };
  const lines: string[] = [];
  const { calls } = await lived(name, work);
  for (let at = 0; at < calls; at += 1) lines.push(...(await lived(name, work, at)).lines);
  expectSection(golden(`${what}, failing`), name, lines.join("\n"));
});
