import { printRows, read } from "../running/read.ts";
import { defineVerb } from "../verb.ts";
import { accessKeyColumns } from "./keys.ts";

export const command = defineVerb({
  fields: accessKeyColumns.map(({ path }) => path),
  configure: (command) => command,
  examples: [
    { line: "integ keys list", does: "every access key that the API shows" },
    {
      line: "integ keys list --json | jq -r '.data[] | select(.status == \"active\") | .id'",
      does: "active keys, for a script",
    },
    { line: "integ keys list --fields id,name,expiresAt", does: "these fields, in this order" },
  ],
  more: "The API document does not show the format of the list: integ accepts an array or an object that contains one, and prints the rows unchanged.",
  async run(context) {
    const service = await context.connect();
    const { value } = await read(context, "list access keys", () => service.accessKeys.list());
    await printRows(context, value, { columns: accessKeyColumns, singular: "key", plural: "keys" });
  },
});
