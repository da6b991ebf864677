import { defineVerb } from "../verb.ts";
import { askClient, oauthClientView, readClient } from "./clients.ts";

export const command = defineVerb({
  fields: oauthClientView.columns.map(({ path }) => path),
  configure: (command) => command.argument("<id>", "The client's resource id (not its client_id)"),
  examples: [
    { line: "integ oauth-clients get oc_123", does: "one client, without its secret" },
    { line: "integ oauth-clients get oc_123 --json | jq -r .status", does: "its status, for a script" },
  ],
  asks: askClient("Which client?", { withRevoked: true }),
  async run(context, { args: [id] }) {
    const answer = await readClient(context, await context.connect(), id);
    await context.output.resource(answer.body.toString(), { ...oauthClientView, isRead: true });
  },
});
