import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, it, vi } from "vitest";
import { Failure, type FailureDetails, type Problem } from "../../src/errors.ts";
import { renderBug, renderFailure } from "../../src/output/failure.ts";
import { pageOf } from "../../src/output/row-page.ts";
import type { Column, Format } from "../../src/output/formats/format.ts";
import { stage } from "../unit/output/streams.ts";
import { corpus } from "./corpus.ts";
import { shown } from "./screen.ts";
import "../support/fixed-seed.ts";
import { isFull } from "../support/sample.ts";
import { shell } from "../../src/next-step.ts";
import { recordFigure } from "../support/figures.mjs";

const formats: readonly Format[] = ["table", "json", "ndjson", "csv", "yaml"];
const kinds = ["text", "status", "time", "list"] as const;
const columns: readonly Column[] = kinds.map((kind) => ({ path: kind, heading: kind, kind }));
let stringCount = 0;
let effects = 0;
afterAll(() => recordFigure("hostile text", { strings: stringCount, effects }));

async function onlyText(output: string, count: number): Promise<readonly string[]> {
  const screen = await shown(output, { columns: 100 });
  stringCount += count;
  effects += screen.effects.length;
  expect(screen.effects).toEqual([]);
  expect(screen.cursor.x).toBe(0);
  // The screen shows exactly the written letters, without moving, overwriting or dropping any.
  const written = output.split("\n").map((line) => line.trimEnd());
  while (written.at(-1) === "") written.pop();
  expect(screen.lines).toEqual(written);
  return screen.lines;
}

function rowOf(text: string): string {
  return JSON.stringify({ text, status: text, time: text, list: [text, text], other: text, [`key${text}`]: text });
}

describe("the test's terminal", () => {
  it("interprets the corpus, so that the tests below can fail", async () => {
    const { effects: raw, lines } = await shown(corpus.join("\n"));
    expect(raw).toEqual(expect.arrayContaining(["bell", 'title "owned"']));
    expect(raw.some((effect) => effect.startsWith("answer"))).toBe(true);
    expect(lines.join("\n")).not.toBe(corpus.join("\n"));
  });

  it.each([
    ["style at 0,0", "\u001b[31mred"],
    ["other buffer", "\u001b[?1049h"],
    ["modes", "\u001b[?2004h"],
    ["bell", "\u0007"],
    ["answer", "\u001b[6n"],
    ["title", "\u009d0;x\u009c"],
  ])("detects each kind of effect: %s", async (effect, text) => {
    expect(corpus.some((hostile) => hostile.includes(text.slice(0, 2)))).toBe(true);
    expect((await shown(text)).effects).toEqual([expect.stringContaining(effect)]);
  });
});

function everyThird(first: number): readonly string[] {
  return isFull ? corpus : corpus.filter((_, index) => index % 3 === first % 3);
}

describe.each(formats)("%s", (format) => {
  it("shows a list as text", async () => {
    const { output, stdout, stderr } = stage({ tty: true, format, columns: 100 });
    const writer = output.list({ columns, singular: "row", plural: "rows" });
    for (let at = 0; at < corpus.length; at += 50) await writer.page(pageOf(corpus.slice(at, at + 50).map(rowOf)));
    await writer.end({ nextPageToken: `\u001b]0;owned\u0007`, hasMore: true });
    await sleep(5);
    const lines = await onlyText(stdout.text, corpus.length * 6);
    await onlyText(stderr.text, 0);
    if (format === "table") expect(lines).toHaveLength(corpus.length + 1);
    if (format === "ndjson") for (const line of lines) expect(line).toMatch(/^{.*}$/);
  });

  it("shows a resource as text", async () => {
    let written = "";
    const texts = everyThird(formats.indexOf(format));
    for (const text of texts) {
      const { output, stdout, stderr } = stage({ tty: true, format, columns: 100 });
      await output.resource(rowOf(text), { title: `thing ${text}`, columns, secretField: "other" });
      await output.document({ [text]: text, nested: { [text]: [text] } });
      await sleep(0);
      written += stdout.text + stderr.text;
    }
    await onlyText(written, texts.length * 10);
  });
});

describe("an error", () => {
  const words = ["code", "title", "detail", "param", "request_id", "doc_url"] as const;
  const details = ["meaning", "hint", "nextCommand", "where", "entry"] as const;

  it.each(formats)("shows every field as text: %s", async (format) => {
    let written = "";
    for (const text of corpus) {
      const problem: Problem = Object.fromEntries(words.map((word) => [word, text]));
      const rest: FailureDetails = Object.fromEntries(details.map((detail) => [detail, text]));
      const failure = new Failure("conflict", text, { ...rest, problem });
      const rendered = renderFailure(failure, { format, color: 0, exitCode: 5 });
      if (format.endsWith("json")) expect(JSON.parse(rendered).error.detail).toBe(text);
      written += rendered + renderBug(new Error(text));
    }
    await onlyText(written, corpus.length * (words.length + details.length + 2));
  });
});

describe("messages next to the result", () => {
  it("show notes, warnings, hints and text as text", async () => {
    let written = "";
    for (const text of corpus) {
      const { output, stdout, stderr } = stage({ tty: true, columns: 100 });
      output.note(text);
      output.warn(text);
      output.next(shell`integ journal show ${text}`);
      await output.text(text.replaceAll("\t", " "));
      await sleep(0);
      written += stderr.text + stdout.text;
    }
    await onlyText(written, corpus.length * 4);
  });

  it("show a spinner that erases only itself", async () => {
    const spin = async (text: string): Promise<void> => {
      const { output, stderr } = stage({ tty: true, columns: 100, env: { NO_COLOR: "" } });
      const progress = output.progress(text);
      const isShown = (): void => expect(stderr.text).toContain("?2026h");
      await vi.waitFor(isShown, { timeout: 20_000 });
      output.warn("in between");
      await sleep(100);
      progress.done();
      await vi.waitFor(() => expect(stderr.writableLength).toBe(0), { timeout: 20_000 });
      const { effects: found, lines } = await shown(stderr.text, { columns: 100, mayStyle: true });
      stringCount += 1;
      effects += found.length;
      expect(found).toEqual([]);
      expect(lines).toEqual(["Warning: in between"]);
    };
    await Promise.all(everyThird(0).map(spin));
  });
});
