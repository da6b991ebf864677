import { readAccessKey } from "../../api/access-keys.ts";
import type { Row } from "../../api/json/unknown-list.ts";
import { printRows, read, serviceNow } from "../running/read.ts";
import { defineVerb } from "../verb.ts";
import { accessKeyColumns } from "./keys.ts";

export const command = defineVerb({
  isPaged: true,
  fields: accessKeyColumns.map(({ path }) => path),
  configure: (command) =>
    command
      .option("--status <status>", "Only keys with this status, such as active, expired or revoked")
      .option("--name <name>", "Only keys with this name; * stands for any characters"),
  examples: [
    { line: "integ keys list", does: "every access key that the API shows" },
    { line: "integ keys list --status active --name 'nightly-*'", does: "active keys whose names start with nightly-" },
    {
      line: "integ keys list --status active --json | jq -r '.data[].id'",
      does: "keys that are active and not expired, for a script",
    },
    { line: "integ keys list --fields id,name,expiresAt", does: "these fields, in this order" },
  ],
  more: "The API document does not show the format of the list: integ accepts an array or an object that contains one, and prints the rows unchanged. If the expiresAt of an active key has passed, a table and --status show the key as expired; the other formats show it as active, as the API does.",
  async run(context, { options: { status, name } }) {
    const service = await context.connect();
    const { value } = await read(context, "list access keys", () => service.accessKeys.list());
    const nowMs = serviceNow(context, service);
    const isNamed = name === undefined ? () => true : matcher(name);
    const isShown = (row: Row): boolean => {
      const key = readAccessKey(row.value);
      // The service may show an expired key as active.
      const hasExpired = key.status === "active" && Date.parse(key.expiresAt ?? "") <= nowMs;
      const isOfStatus = status === undefined || (hasExpired ? "expired" : key.status) === status;
      return isOfStatus && isNamed(key.name ?? "");
    };
    function* shown(): Iterable<Row> {
      for (const row of value.rows) if (isShown(row)) yield row;
    }
    // A list may have 100,000 keys, so without a filter integ does not parse each row.
    const isAll = status === undefined && name === undefined;
    const rows = { [Symbol.iterator]: () => (isAll ? value.rows : shown())[Symbol.iterator]() };
    await printRows(context, { ...value, rows }, { columns: accessKeyColumns, singular: "key", plural: "keys", nowMs });
  },
});

function matcher(pattern: string): (text: string) => boolean {
  const parts = pattern.split("*").map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, "\\$&"));
  const form = new RegExp(`^${parts.join(".*")}$`, "su");
  return (text) => form.test(text);
}
