import { invalidValue } from "../../errors.ts";
import { defineVerb } from "../verb.ts";

const schemas: Readonly<Record<string, () => Promise<unknown>>> = {
  policy: async () => (await import("../../policy/schema.ts")).policyJsonSchema(),
};

export const command = defineVerb({
  configure: (command) => command.argument("<object>", "Name of the object to describe: policy"),
  examples: [
    { line: "integ schema policy > integ.schema.json", does: "let an editor complete and check the policy file" },
    { line: "integ schema policy | jq '.properties | keys'", does: "list the keys of a policy file" },
  ],
  more: "An editor with a YAML language server reads it from a comment in the policy file: # yaml-language-server: $schema=integ.schema.json",
  neverAsks: true,
  async run({ output }, { args: [object] }) {
    const schema = Object.hasOwn(schemas, object) ? await schemas[object]!() : undefined;
    if (schema === undefined)
      throw invalidValue("object", object, { hint: `Choose one of ${Object.keys(schemas).join(", ")}.` });
    await (output.format === "table"
      ? output.text(JSON.stringify(schema, null, 2))
      : output.document(schema, { isRead: true }));
  },
});
