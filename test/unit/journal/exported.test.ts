import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/errors.ts";
import { newEntry } from "../../../src/journal/admission.ts";
import { formatVersion } from "../../../src/journal/entry.ts";
import { readExport } from "../../../src/journal/exported.ts";
import { headerLine, recordContent, recordLine } from "../../../src/journal/record.ts";
import { ada, intent } from "./intent.ts";

const at = "2026-11-21T00:00:00.000Z";
const header = headerLine({ file: "export", createdAt: at });

function content(id: string, state: "open" | "done" = "open"): string {
  const sequence = state === "open" ? 1 : 2;
  return recordContent({ ...newEntry(intent(), { id, at, key: `key-${id}` }), state, sequence }, { by: ada });
}

const [one, two] = ["1000000001", "1000000002"] as const;
const lines = [content(one), content(two), content(one, "done")].map((text) => recordLine({ content: text, mac: "" }));

function refusalOf(text: string): Failure {
  try {
    readExport(Buffer.from(text));
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error("it was accepted");
}

describe("an export", () => {
  it("is read entry by entry, each with its records in order", () => {
    expect(readExport(Buffer.from([header, ...lines].join("")))).toEqual([
      { id: one, records: [content(one), content(one, "done")].map((text) => ({ content: text, mac: "" })) },
      { id: two, records: [{ content: content(two), mac: "" }] },
    ]);
  });

  it("may have empty lines, and no newline at its end", () => {
    const text = ["\n", header, "\n", ...lines].join("").slice(0, -1);
    expect(readExport(Buffer.from(text)).map(({ id, records }) => [id, records.length])).toEqual([
      [one, 2],
      [two, 1],
    ]);
  });

  it("of an empty journal has only a header", () => {
    expect(readExport(Buffer.from(header))).toEqual([]);
  });

  it.each([
    ["is empty", "", 1],
    ["has no header", lines.join(""), 1],
    ["is not an export", "id,name\n1,x\n", 1],
    ["has a damaged record", [header, lines[0], lines[1]!.replace("oauth_client", "0auth_client")].join(""), 3],
    ["has a damaged record after empty lines", [header, "\n\n", "{}\n"].join(""), 4],
    ["was cut in a record", [header, lines[0]].join("").slice(0, -3), 2],
  ])("that %s is refused with the line number", (_what, text, line) => {
    const failure = refusalOf(text);
    expect(failure.kind).toBe("usage");
    expect(failure.message).toBe(`Line ${line} is not what integ journal export wrote.`);
    expect(failure.details).toEqual({
      meaning: "Nothing was imported: a record is damaged.",
      hint: "Run integ journal export again, or import the journal's own file.",
    });
  });

  it.each([
    [formatVersion + 1, "a newer"],
    [2, "another"],
  ])("of format %i is refused: %s integ wrote it", (format, which) => {
    const body = lines[0]!.slice(lines[0]!.indexOf('"v":'), -1).replace(`"v":${formatVersion}`, `"v":${format}`);
    const sum = createHash("sha256").update(body).digest("hex").slice(0, 16);
    const failure = refusalOf(`${header}{"sum":"${sum}",${body}\n`);
    expect(failure.message).toBe(`The export was written by ${which} integ (format ${format}).`);
    expect([failure.kind, failure.details.meaning]).toEqual(["usage", "Nothing was read, sent or changed."]);
  });
});
