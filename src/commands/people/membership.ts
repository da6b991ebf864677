import { Failure } from "../../errors.ts";
import { columnsFor, printRows, read } from "../running/read.ts";
import { defineVerb } from "../verb.ts";
import { shell } from "../../next-step.ts";
import { isObject } from "../../json.ts";

export const command = defineVerb({
  isPaged: true,
  configure: (command) => command.argument("<person-id>", "The person's id, as people search shows it"),
  examples: [
    { line: "integ people membership per_123", does: "one person's membership, unchanged" },
    { line: "integ people membership per_123 --json | jq .", does: "for a script" },
  ],
  async run(context, { args: [id] }) {
    if (id.trim() === "")
      throw new Failure("usage", "The person's id is empty.", { nextCommand: shell`integ help people membership` });
    const service = await context.connect();
    const answer = await read(context, "get the membership", () => service.people.membership(id));
    const { value, body } = answer;
    if (Array.isArray(value) && value.every(isObject)) {
      const rows = value.map((row) => ({ value: row, text: JSON.stringify(row) }));
      const list = { rows, saysMore: false };
      return printRows(context, list, { columns: [], singular: "membership", plural: "memberships" });
    }
    if (!isObject(value))
      throw new Failure("unreachable", "The response is neither an object nor a list of objects: it cannot be shown.");
    await context.output.resource(body.toString(), { columns: columnsFor([value], []), isRead: true });
  },
});
