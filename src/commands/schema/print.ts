import { invalidValue } from "../../errors.ts";
import { defineVerb } from "../verb.ts";

const columns = [
  { path: "name", heading: "name", kind: "id" },
  { path: "printed_by", heading: "printed by", kind: "list" },
] as const;

export const command = defineVerb({
  fields: columns.map(({ path }) => path),
  configure: (command) =>
    command.argument("[object]", "Name of an output, or policy for the policy file; without it, integ lists all names"),
  examples: [
    { line: "integ schema", does: "list what has a schema, and the commands that print it" },
    { line: "integ schema journal_entry", does: "the JSON Schema of an entry of the journal" },
    { line: "integ schema policy > integ.schema.json", does: "let an editor complete and check the policy file" },
    { line: "integ schema policy | jq '.properties | keys'", does: "list the keys of a policy file" },
  ],
  more: "To check a policy file in an editor with a YAML language server, add this comment to the file: # yaml-language-server: $schema=integ.schema.json. Schemas are JSON Schema 2020-12. Later versions may add keys, but remove no key and change no type.",
  neverAsks: true,
  async run({ output }, { args: [object] }) {
    const { outputJsonSchema, outputs } = await import("./outputs.ts");
    if (object === undefined) {
      const rows = Object.entries(outputs).map(([name, { printedBy }]) => ({ name, printed_by: printedBy }));
      const list = output.list({ columns, singular: "schema", plural: "schemas" });
      return list.whole([{ name: "policy", printed_by: [] }, ...rows]);
    }
    const schema =
      object === "policy" ? (await import("../../policy/schema.ts")).policyJsonSchema() : outputJsonSchema(object);
    if (schema === undefined)
      throw invalidValue("object", object, { hint: `Choose one of policy, ${Object.keys(outputs).join(", ")}.` });
    await (output.format === "table"
      ? output.text(JSON.stringify(schema, null, 2))
      : output.document(schema, { isRead: true }));
  },
});
