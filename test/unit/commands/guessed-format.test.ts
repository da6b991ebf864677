// An error may occur before the options are parsed, so integ guesses its format from the words.
import { expect, it } from "vitest";
import { guessFormat } from "../../../src/commands/options/global.ts";

it.each([
  ["entities list", undefined, "table"],
  ["entities list --json", undefined, "json"],
  ["entities list --ndjson", undefined, "ndjson"],
  ["entities list -o csv", undefined, "csv"],
  ["entities list --output yaml", undefined, "yaml"],
  ["entities list --output=json", undefined, "json"],
  ["entities list -ojson", undefined, "json"],
  ["entities list", "json", "json"],
  ["entities list", "xml", "table"],
  ["entities list -o csv", "json", "csv"],
  // A format that is invalid, or only a word after `--`, does not count.
  ["journal export --json -o", undefined, "json"],
  ["entities list --json -o xml", undefined, "json"],
  ["entities list -o xml --json", undefined, "json"],
  ["entities list -o xml", "json", "json"],
  ["entities list -o", undefined, "table"],
  ["api /x -- --json", undefined, "table"],
])("of integ %s with INTEG_OUTPUT=%s is %s", (line, variable, format) => {
  expect(guessFormat(line.split(" "), { INTEG_OUTPUT: variable })).toBe(format);
});
