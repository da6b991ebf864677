import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/errors.ts";
import { newEntry } from "../../../src/journal/admission.ts";
import { formatVersion } from "../../../src/journal/entry.ts";
import { readExport } from "../../../src/journal/exported.ts";
import { headerLine, recordContent, seal } from "../../../src/journal/record.ts";
import { ada, intent } from "./intent.ts";

const at = "2026-11-21T00:00:00.000Z";
const header = headerLine({ file: "export", createdAt: at });

function content(id: string, state: "open" | "done" = "open"): string {
  return recordContent({ ...newEntry(intent(), { id, at, key: `key-${id}` }), state }, { by: ada });
}

const [one, two] = ["1000000001", "1000000002"] as const;
const lines = [content(one), content(two), content(one, "done")].map((text) => seal(text));

function refusalOf(text: string): Failure {
  try {
    readExport(Buffer.from(text));
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error("it was taken");
}

describe("an export", () => {
  it("is read entry by entry, each with its records in their order", () => {
    expect(readExport(Buffer.from([header, ...lines].join("")))).toEqual([
      { id: one, contents: [content(one), content(one, "done")] },
      { id: two, contents: [content(two)] },
    ]);
  });

  it("may have empty lines, and none at its end", () => {
    const text = ["\n", header, "\n", ...lines].join("").slice(0, -1);
    expect(readExport(Buffer.from(text)).map(({ id, contents }) => [id, contents.length])).toEqual([
      [one, 2],
      [two, 1],
    ]);
  });

  it("of an empty journal has a header alone", () => {
    expect(readExport(Buffer.from(header))).toEqual([]);
  });

  it.each([
    ["is empty", "", 1],
    ["has no header", lines.join(""), 1],
    ["is not an export", "id,name\n1,x\n", 1],
    ["has a damaged record", [header, lines[0], lines[1]!.replace("oauth_client", "0auth_client")].join(""), 3],
    ["has a damaged record after empty lines", [header, "\n\n", "{}\n"].join(""), 4],
    ["was cut in a record", [header, lines[0]].join("").slice(0, -3), 2],
  ])("that %s is refused with the line", (_what, text, line) => {
    const failure = refusalOf(text);
    expect(failure.kind).toBe("usage");
    expect(failure.message).toBe(`Line ${line} is not what integ journal export wrote.`);
    expect(failure.details).toEqual({
      meaning: "Nothing was imported: a record is damaged or missing.",
      hint: "Run integ journal export again, or import the journal's own file.",
    });
  });

  it("of a newer format is refused, one of this format is not", () => {
    const newer = content(one).replace(`"v":${formatVersion}`, `"v":${formatVersion + 1}`);
    const failure = refusalOf([header, seal(newer)].join(""));
    expect(failure.kind).toBe("usage");
    expect(failure.message).toBe(`It was exported by a newer integ (format ${formatVersion + 1}).`);
    expect(failure.details).toEqual({
      meaning: "Nothing was imported.",
      hint: "Upgrade integ, then run the command again.",
    });
  });
});
