// Scripts rely on the schemas of outputs: a missing key breaks a script.
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import { surfaceOf } from "../../../src/commands/commands/list.ts";
import { outputJsonSchema, outputs } from "../../../src/commands/schema/outputs.ts";
import { isRunnable, nodesBelow } from "../../../src/completion/tree.ts";
import { policyJsonSchema } from "../../../src/policy/schema.ts";
import { wholeTree } from "../../../src/program.ts";
import { outputFaults } from "../../support/check-output.ts";

interface Schema {
  readonly type?: string;
  readonly const?: string | number;
  readonly enum?: readonly string[];
  readonly anyOf?: readonly Schema[];
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
}

function typeOf(schema: Schema): string {
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" or ");
  if (schema.items) return `array of ${typeOf(schema.items)}`;
  return schema.enum?.join("|") ?? (schema.const === undefined ? (schema.type ?? "anything") : String(schema.const));
}

function* keysOf(schema: Schema, path: string): Iterable<string> {
  const { properties = {}, required = [], items, anyOf = [] } = schema;
  const keys = Object.entries(properties);
  const words = keys.map(([key, of]) => `${key}${required.includes(key) ? "" : "?"}: ${typeOf(of)}`);
  if (words.length > 0) yield `${path} has ${words.join(", ")}`;
  for (const [key, of] of keys) yield* keysOf(of, `${path}.${key}`);
  if (items) yield* keysOf(items, `${path}[]`);
  for (const one of anyOf) yield* keysOf(one, path);
}

/** Commands that print text, nothing, a document of the service, or rows of other schemas. */
const without = new Set(
  "api|completion|spec show|journal forget|profiles remove|sandbox reset|sandbox tour".split("|"),
);

describe("the schemas of outputs", () => {
  it("keep every key and its type", async () => {
    const lines = Object.keys(outputs).flatMap((name) => [...keysOf(outputJsonSchema(name) as Schema, name)]);
    await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("./schemas.golden.txt");
  });

  it("are JSON Schema 2020-12, and say what they describe", () => {
    for (const name of ["policy", ...Object.keys(outputs)]) {
      const schema = name === "policy" ? policyJsonSchema() : outputJsonSchema(name)!;
      const [title, description] = [expect.stringMatching(/^integ \w/), expect.stringMatching(/^[A-Z].+\.$/)];
      expect(schema).toMatchObject({ $schema: "https://json-schema.org/draft/2020-12/schema", title, description });
      expect(() => new Ajv2020({ allowUnionTypes: true, validateFormats: false }).compile(schema), name).not.toThrow();
    }
  });

  it("cover every command that prints an object of integ's own", async () => {
    const { tree } = await surfaceOf(wholeTree);
    const commands = [...nodesBelow(tree.root)].filter(isRunnable).map(({ path }) => path.join(" "));
    const printed = new Set(Object.values(outputs).flatMap(({ printedBy }) => printedBy));
    expect(commands.filter((name) => name !== "" && !printed.has(name) && !without.has(name))).toEqual([]);
    const changes = /^any change|^journal claim| --fix$/;
    expect([...printed].filter((name) => !commands.includes(name) && !changes.test(name))).toEqual([]);
  });

  it("are the ones that tests compare each output with", () => {
    const row = { due_at: null, next_step: null, topic: "slots", name: "sa_1", state: "1 of 20" };
    const runOf = (data: readonly object[]): { code: number; stdout: string; stderr: string } => {
      const list = { object: "list", data, next_page_token: null, has_more: false };
      return { code: 0, stdout: JSON.stringify(list), stderr: "" };
    };
    const faults = (data: readonly object[]): string[] => outputFaults(["status", "--json"], {}, { said: runOf(data) });
    expect(faults([row])).toEqual([]);
    const { state: _removed, ...less } = row;
    expect(faults([less])).toEqual([expect.stringContaining("state")]);
    expect(faults([{ ...row, name: 1 }])).toEqual([expect.stringContaining("/name")]);
    const fields = ["status", "--json", "--fields", "topic,due"];
    expect(outputFaults(fields, {}, { said: runOf([{ topic: "slots", due: null }]) })).toEqual([]);
    expect(outputFaults(fields, {}, { said: runOf([{ topic: "slots", x: 1 }]) })).toEqual([
      expect.stringContaining("no field x"),
    ]);
    const line = { code: 0, stdout: '{"object":"journal_path"}\n', stderr: "" };
    expect(outputFaults(["journal", "path", "--ndjson"], {}, { said: line })).toEqual([
      expect.stringContaining("path"),
    ]);
    const error = { said: { code: 2, stdout: "", stderr: '{"error":{"kind":"usage","exit_code":2}}' } };
    expect(outputFaults(["status"], { INTEG_OUTPUT: "json" }, error)).toEqual([expect.stringContaining("message")]);
  });
});
