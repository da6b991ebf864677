import { spawnSync } from "node:child_process";
import * as fc from "fast-check";
import { anyCharacter } from "../../support/any-text.ts";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import type { ListTarget } from "../../../src/output/formats/format.ts";
import { yaml } from "../../../src/output/formats/yaml.ts";
import { sampled } from "../../support/sample.ts";
import { isMissing } from "../../support/tools.mjs";
import { python } from "../../support/sodium.ts";

const target: ListTarget = {
  sink: { write: async () => {} },
  isTerminal: false,
  hasRelativeTimes: false,
  width: 80,
  color: 0,
  now: () => 0,
  version: "",
  note: () => {},
  reportMissing: () => {},
};

function yamlText(json: string): string {
  return yaml.resource(json, { view: { columns: [] }, target }).slice(0, -1);
}

/** Texts that some readers misinterpret without quotes. */
const mistakable = [
  ["", "~", "null", "Null", "NULL", "true", "True", "false", "yes", "Yes", "no", "NO", "on", "On", "off", "y", "n"],
  ["0", "-0", "007", "0o7", "0x1F", "0b101", "1_000", "1,000", "12:30", "190:20:30", "1.", ".5", "1e3", "+1", "1e400"],
  [".inf", "-.Inf", ".nan", "NaN", "12345678901234567890123"],
  ["2026-11-21", "2026-11-21T12:00:00Z", "2026-11-21 12:00:00"],
  ["=", "<<", "-", "--", "---", "...", "- a", "? a", ": a", "a: b", "a:", "a #b"],
  ["#a", "&a", "*a", "!a", "%a", "@a", "`a`"],
  ["|", ">", "'a'", '"a"', "[a]", "{a}", "a,b", "[", "]", "{", "}", ",", "a, b", "\\", "a\\nb"],
  [" a", "a ", "a  b", "\ta", "a\nb", "a\r\nb", "a\u0085b", "a\u2028b", "\ufeffa"],
  ["\u0007", "\u001b[2J", "\u007f", "é", "山", "🙂"],
].flat();

describe("YAML", () => {
  it.each(["1.1", "1.2"] as const)("is read correctly by every reader of YAML %s", (version) => {
    for (const text of mistakable) {
      expect(parse(yamlText(JSON.stringify([text])), { version }), text).toEqual([text]);
      expect(parse(yamlText(JSON.stringify({ [text]: text })), { version }), text).toEqual({ [text]: text });
    }
  });

  it.skipIf(isMissing("PyYAML"))("is read correctly by PyYAML, a YAML 1.1 reader in another language", () => {
    const value = { list: mistakable, keys: Object.fromEntries(mistakable.map((text) => [text, text])) };
    const code = "import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin.buffer)))";
    const { stdout, stderr } = spawnSync(python, ["-c", code], {
      input: yamlText(JSON.stringify(value)),
      encoding: "utf8",
    });
    expect(stderr).toBe("");
    expect(JSON.parse(stdout)).toEqual(value);
  });

  it("reads back as the original JSON", () => {
    const key = fc.oneof(
      fc.string({ unit: anyCharacter, maxLength: 6 }),
      fc.constantFrom("yes", "n", "1", "-", "a b", "#x"),
    );
    const { value: anyValue } = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: "small" },
        fc.oneof(
          key,
          fc.integer(),
          fc.boolean(),
          fc.constant(null),
          fc.double({ noNaN: true, noDefaultInfinity: true }),
        ),
        fc.array(tie("value"), { maxLength: 3 }),
        fc.dictionary(key, tie("value"), { maxKeys: 3 }),
      ),
    }));
    fc.assert(
      fc.property(anyValue, (value) => {
        const json = JSON.stringify(value);
        fc.pre(!/\\ud[89a-f]/.test(json));
        expect(parse(yamlText(json))).toEqual(JSON.parse(json));
        expect(parse(yamlText(json), { version: "1.1" })).toEqual(JSON.parse(json));
      }),
      { numRuns: sampled(2000) },
    );
  });

  it("escapes invisible characters in YAML's way", () => {
    expect(yamlText(JSON.stringify("a\u{e0041}\u202e"))).toBe('"a\\U000e0041\\u202e"');
  });

  it("keeps digits, and the last of duplicate keys", () => {
    expect(yamlText('{"a":12345678901234567890,"b":1.10,"a":2.50}')).toBe("a: 2.50\nb: 1.10");
    expect(yamlText('[[1,[]],{"a":[{"b":{}}]}]')).toBe("- - 1\n  - []\n- a:\n    - b: {}");
  });
});
