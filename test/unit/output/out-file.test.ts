import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { Failure } from "../../../src/errors.ts";
import { OutFile, type OutFileOptions, resumePointPath } from "../../../src/output/out-file.ts";

const folder = mkdtempSync(join(tmpdir(), "integ-out-file-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let path: string;
let files = 0;
let clock: number;
beforeEach(() => {
  path = join(folder, `rows-${++files}`);
  clock = 0;
});

const identity = { list: "entities", profile: "p1", filters: "[]" };

function open(options: Partial<OutFileOptions> = {}): OutFile {
  return new OutFile(path, { force: false, resume: false, identity, own: [], elapsed: () => clock, ...options });
}

const content = (): string => readFileSync(path, "utf8");
const note = (): Record<string, unknown> => JSON.parse(readFileSync(resumePointPath(path), "utf8")) as never;

function refusal(make: () => unknown): Failure {
  try {
    make();
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error("not refused");
}

/** Leaves a file with two pages before its resume point, and a part of a third page after it. */
async function killed(): Promise<void> {
  const file = open();
  await file.write("a\n");
  file.mark({ rows: 1, nextPageToken: "t1", hasMore: true });
  clock += 1000;
  await file.write(Buffer.from("b\n"));
  file.mark({ rows: 2, nextPageToken: "t2", hasMore: true });
  clock += 999;
  await file.write("c\nhalf a r");
  file.mark({ rows: 3, nextPageToken: "t3", hasMore: true });
}

describe("a new file", () => {
  it("in a missing folder is refused before any request, with the command that creates it", () => {
    path = join(folder, "nowhere", "rows");
    expect(refusal(open)).toMatchObject({
      kind: "usage",
      message: `--out: the folder ${join(folder, "nowhere")} does not exist.`,
      details: { nextCommand: `mkdir -p ${join(folder, "nowhere")}` },
    });
  });

  it("appears with the first write, and is complete at the end", async () => {
    const file = open();
    expect(existsSync(path)).toBe(false);
    await file.write("a\n");
    expect(note()).toMatchObject({ rows: 0, bytes: 0, nextPageToken: null, hasMore: true, identity });
    await file.write("b\n");
    expect(file.finish()).toBe(4);
    expect(content()).toBe("a\nb\n");
    expect(existsSync(resumePointPath(path))).toBe(false);
  });

  it("exists even if nothing was written to it", () => {
    expect(open().finish()).toBe(0);
    expect(content()).toBe("");
  });

  it("does not exist if the list stopped before its first row", () => {
    open().abandon();
    expect([existsSync(path), existsSync(resumePointPath(path))]).toEqual([false, false]);
  });

  it("notes the start of a listing that does not begin at the first page", async () => {
    await open({ from: "t9" }).write("a\n");
    expect(note()).toMatchObject({ rows: 0, bytes: 0, nextPageToken: "t9", hasMore: true });
  });

  it.each([
    ["a file", () => writeFileSync(path, "mine"), "already exists"],
    ["a folder", () => mkdirSync(path), "a folder"],
    ["a dangling link", () => symlinkSync(join(folder, "nowhere"), path), "a link"],
    ["a file in place of its folder", () => void (path = join(fileFor("x"), "rows")), "ENOTDIR"],
  ])("is refused if there is %s", (_what, create, words) => {
    create();
    const { kind, message } = refusal(() => open());
    expect([kind, message]).toEqual(["usage", expect.stringContaining(words)]);
  });

  it("replaces a file with the name of its note only on request", async () => {
    const other = resumePointPath(path);
    writeFileSync(other, "mine");
    expect(refusal(() => open())).toMatchObject({ kind: "usage", message: `--out: ${other} already exists.` });
    expect(refusal(() => open({ resume: true })).kind).toBe("usage");
    expect([existsSync(path), readFileSync(other, "utf8")]).toEqual([false, "mine"]);
    const file = open({ force: true });
    await file.write("new\n");
    file.finish();
    expect(content()).toBe("new\n");
  });

  it("replaces a file only with force, and never a link", async () => {
    writeFileSync(path, "what was there is longer");
    const file = open({ force: true });
    expect(content()).toBe("what was there is longer");
    await file.write("new\n");
    file.finish();
    expect(content()).toBe("new\n");
    const target = path;
    path = join(folder, `link-${files}`);
    symlinkSync(target, path);
    expect(refusal(() => open({ force: true })).kind).toBe("usage");
    expect(readFileSync(target, "utf8")).toBe("new\n");
  });

  it("does not overwrite a file that appears there during the command", async () => {
    const file = open();
    writeFileSync(path, "someone else's");
    await expect(file.write("a\n")).rejects.toMatchObject({ kind: "failed" });
    expect([content(), existsSync(resumePointPath(path))]).toEqual(["someone else's", false]);
  });
});

function fileFor(name: string): string {
  const file = join(folder, `${name}-${files}`);
  writeFileSync(file, "");
  return file;
}

describe("resuming", () => {
  it("starts after the last noted offset (one note per second) and truncates the rest", async () => {
    await killed();
    expect(content()).toBe("a\nb\nc\nhalf a r");
    const file = open({ resume: true });
    expect(file.before).toMatchObject({ rows: 2, bytes: 4, nextPageToken: "t2", hasMore: true });
    expect(content()).toBe("a\nb\nc\nhalf a r");
    await file.write("c\n");
    expect(content()).toBe("a\nb\nc\n");
    file.finish();
    expect(content()).toBe("a\nb\nc\n");
    expect(existsSync(resumePointPath(path))).toBe(false);
  });

  it("starts after the last complete page if the listing was interrupted cleanly", async () => {
    const file = open();
    await file.write("a\n");
    file.mark({ rows: 1, nextPageToken: "t1", hasMore: true });
    await file.write("b\n");
    file.mark({ rows: 2, nextPageToken: null, hasMore: false });
    await file.write("no ro");
    file.abandon();
    expect(open({ resume: true }).before).toMatchObject({ rows: 2, bytes: 4, nextPageToken: null, hasMore: false });
  });

  it("a finished list does nothing, prints the alternative, and changes no file", async () => {
    const file = open();
    await file.write("[a");
    file.mark({ rows: 1, nextPageToken: "t1", hasMore: true });
    await file.write("]");
    file.finish();
    const { kind, message, details } = refusal(() => open({ resume: true }));
    expect({ kind, message, hint: details.hint, next: details.nextCommand }).toEqual({
      kind: "usage",
      message: `--resume: there is nothing to resume: ${path} exists and has no resume information.`,
      hint: "Leave --resume out and name a new file, or use --force to read the list again and replace this one.",
      next: undefined,
    });
    expect(content()).toBe("[a]");
  });

  it.each([["the file"], ["a folder of it"], ["the note next to it"], ["another name of it"]])(
    "is refused for %s of the program itself, even with force",
    (what) => {
      const own = join(folder, `own-${files}`);
      mkdirSync(own);
      writeFileSync(join(own, "journal.ndjson"), "entries");
      writeFileSync(join(own, "x.resume"), "entries");
      const journal = join(own, "journal.ndjson");
      if (what === "another name of it") linkSync(journal, path);
      else path = what === "the file" ? journal : join(own, what === "a folder of it" ? "new" : "x");
      const places = what === "a folder of it" ? own : what === "the note next to it" ? join(own, "x.resume") : journal;
      expect(refusal(() => open({ force: true, own: [places] })).message).toContain("integ keeps its own files in");
      expect(readFileSync(journal, "utf8")).toBe("entries");
    },
  );

  it("starts again if nothing was started, or the file is missing", async () => {
    expect(open({ resume: true }).before).toBeUndefined();
    await killed();
    rmSync(path);
    const file = open({ resume: true });
    expect(file.before).toBeUndefined();
    await file.write("a\n");
    file.finish();
    expect(content()).toBe("a\n");
  });

  it.each([
    ["profile", { ...identity, profile: "p2" }],
    ["filters", { ...identity, filters: '[["a","b"]]' }],
    ["service version", { ...identity, service_version: "2026-08-01" }],
  ])("another %s is refused and named", async (what, other) => {
    await killed();
    const { kind, message } = refusal(() => open({ resume: true, identity: other }));
    expect([kind, message]).toEqual(["usage", expect.stringContaining(`(${what})`)]);
    expect(content()).toBe("a\nb\nc\nhalf a r");
  });

  it("is refused if the note lacks the offset, or the file is shorter", async () => {
    writeFileSync(path, "a\nb\n");
    expect(refusal(() => open({ resume: true })).message).toContain("there is nothing to resume");
    rmSync(path);
    await killed();
    writeFileSync(path, "a\n");
    expect(refusal(() => open({ resume: true })).message).toContain("shorter");
    expect(content()).toBe("a\n");
  });

  it("is refused at every truncation of the note except its final newline", async () => {
    await killed();
    const whole = readFileSync(resumePointPath(path));
    for (let length = 0; length < whole.length - 1; length++) {
      writeFileSync(resumePointPath(path), whole.subarray(0, length));
      expect(refusal(() => open({ resume: true })).message).toContain("damaged");
    }
    writeFileSync(resumePointPath(path), whole.subarray(0, -1));
    expect(open({ resume: true }).before).toMatchObject({ rows: 2, bytes: 4 });
  });

  it.each([
    ["version", 2],
    ["rows", -1],
    ["rows", 1.5],
    ["bytes", -1],
    ["bytes", "4"],
    ["nextPageToken", 7],
    ["hasMore", "true"],
    ["identity", null],
    ["object", "list"],
  ])("is refused if the noted %s is %j", async (name, value) => {
    await killed();
    writeFileSync(resumePointPath(path), JSON.stringify({ ...note(), [name]: value }));
    expect(refusal(() => open({ resume: true })).message).toContain("damaged");
  });
});
