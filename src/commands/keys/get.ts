import { serviceNow } from "../running/read.ts";
import { defineVerb } from "../verb.ts";
import { findKey } from "./find-key.ts";
import { accessKeyColumns, askKey, revokedKeyView } from "./keys.ts";

export const command = defineVerb({
  fields: accessKeyColumns.map(({ path }) => path),
  configure: (command) => command.argument("<id>", "The key's id or name"),
  examples: [
    { line: "integ keys get ak_123", does: "one key, without its secret" },
    { line: "integ keys get nightly-sync --json | jq -r .expiresAt", does: "by its name, for a script" },
  ],
  more: "The legacy contract has no request for one key: integ searches the list. If several keys have the same name, integ shows the only active one; if several are active, name the key by its id.",
  asks: askKey("Which key?"),
  async run(context, { args: [typed] }) {
    const service = await context.connect();
    const { text } = await findKey(context, service, typed);
    await context.output.resource(text, { ...revokedKeyView, isRead: true, nowMs: serviceNow(context, service) });
  },
});
