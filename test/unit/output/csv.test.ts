import * as fc from "fast-check";
import { anyCharacter } from "../../support/any-text.ts";
import { describe, expect, it } from "vitest";
import { JsonText } from "../../../src/api/json/json-text.ts";
import type { Cell } from "../../../src/output/formats/cells.ts";
import { stage } from "./streams.ts";
import { csvLine } from "../../../src/output/formats/csv.ts";
import { sampled } from "../../support/sample.ts";

function readCsv(text: string): string[][] {
  const records: string[][] = [];
  const field = /"((?:[^"]|"")*)"(,|\r\n)|([^",\r\n]*)(,|\r\n)/y;
  let record: string[] = [];
  while (field.lastIndex < text.length) {
    const found = field.exec(text);
    if (found === null) throw new Error(`no RFC 4180 at ${JSON.stringify(text.slice(0, 80))}`);
    record.push(found[1]?.replaceAll('""', '"') ?? found[3] ?? "");
    if ((found[2] ?? found[4]) === "\r\n") {
      records.push(record);
      record = [];
    }
  }
  return records;
}

const dangerous = ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"];
const cellText = fc.oneof(
  fc.string({ unit: fc.constantFrom(...'ab,"\r\n\t =+-@0é'.split(""), "\r\n") }),
  fc.string({ unit: anyCharacter }),
  fc.tuple(fc.constantFrom(...dangerous), fc.string()).map((parts) => parts.join("")),
);

describe("CSV", () => {
  it.each(["-s", "+s", "=s", "@s", "\ts"])("never changes a receipt: %j", async (secret) => {
    const { output, stdout } = stage({ format: "csv" });
    const view = { columns: [{ path: "client_secret", heading: "secret" }], secretField: "client_secret" };
    await output.resource(JSON.stringify({ client_secret: secret }), view);
    expect(stdout.text).toBe(`client_secret\r\n${secret}\r\n`);
  });

  it("reads back unchanged, except for the quote before a formula", () => {
    fc.assert(
      fc.property(fc.array(fc.array(cellText, { minLength: 1, maxLength: 4 }), { maxLength: 5 }), (rows) => {
        const read = readCsv(rows.map((row) => csvLine(row)).join(""));
        expect(read).toEqual(
          rows.map((row) => row.map((text) => (dangerous.some((start) => text.startsWith(start)) ? `'${text}` : text))),
        );
      }),
      { numRuns: sampled(2000) },
    );
  });

  it("leaves no text that a spreadsheet would run", () => {
    for (const start of dangerous) {
      expect(readCsv(csvLine([`${start}cmd|' /C calc'!A0`, "x"]))[0]?.[0]).toBe(`'${start}cmd|' /C calc'!A0`);
    }
  });

  it("leaves numbers and nested values unchanged", () => {
    const cells: Cell[] = [...["-1.50", '["=1+1","a"]', "true"].map(JsonText.of), null, undefined, ""];
    expect(csvLine(cells)).toBe('-1.50,"[""=1+1"",""a""]",true,,,\r\n');
  });

  it("writes no empty line, which readers skip", () => {
    for (const nothing of ["", null, undefined]) expect(csvLine([nothing])).toBe('""\r\n');
  });
});
