import { invalidValue } from "../../errors.ts";
import { defineVerb } from "../verb.ts";

const columns = [
  { path: "name", heading: "name", kind: "id" },
  { path: "printed_by", heading: "printed by", kind: "list" },
] as const;

export const command = defineVerb({
  fields: columns.map(({ path }) => path),
  configure: (command) => command.argument("[object]", "Policy, or an output; without it, their list"),
  examples: [
    { line: "integ schema", does: "list what has a schema, and the commands that print it" },
    { line: "integ schema journal_entry", does: "the JSON Schema of an entry of the journal" },
    { line: "integ schema policy > integ.schema.json", does: "let an editor complete and check the policy file" },
    { line: "integ schema policy | jq '.properties | keys'", does: "list the keys of a policy file" },
  ],
  more: "An editor with a YAML language server reads it from a comment in the policy file: # yaml-language-server: $schema=integ.schema.json. The schemas of outputs are JSON Schema 2020-12. With --dry-run every change prints rows of step instead. A key may be added to an output; none is removed and none changes its type.",
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
