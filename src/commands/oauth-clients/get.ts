import { defineVerb } from "../verb.ts";
import { read } from "../running/read.ts";
import { askClient, oauthClientView } from "./clients.ts";

export const command = defineVerb({
  configure: (command) => command.argument("<id>", "The client's resource id (not its client_id)"),
  examples: [
    { line: "integ oauth-clients get oc_123", does: "one client, without its secret" },
    { line: "integ oauth-clients get oc_123 --json | jq -r .status", does: "its status, for a script" },
  ],
  asks: askClient("Which client?", { withRevoked: true }),
  async run(context, { args: [id] }) {
    const service = await context.connect();
    const answer = await read(context, "get OAuth client", () => service.oauthClients.get(id));
    await context.output.resource(answer.text, { ...oauthClientView, isRead: true });
  },
});
