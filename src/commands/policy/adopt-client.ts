import { addDryRun, defineVerb } from "../verb.ts";
import { actingFor } from "./acting.ts";
import { adoptAsItem, namedItem } from "./adoption.ts";
import { addPolicyFile, loadPolicy } from "./policy-file.ts";
import { workbenchOf } from "../running/change.ts";
import { askClient, readClient } from "../oauth-clients/clients.ts";

export const command = defineVerb({
  configure: (command) =>
    addDryRun(addPolicyFile(command))
      .argument("<id>", "Resource id or client_id of the client")
      .requiredOption("--name <name>", "Name of the item in the policy"),
  examples: [
    {
      line: "integ adopt oauth-client oc_123 --name reporting",
      does: "a client that was created by hand or elsewhere",
    },
  ],
  more: "integ only reads from the API. The client keeps its secret; the first rotation delivers a new one to the destination in the policy. integ does not adopt a client of another policy.",
  asks: askClient("Which client?"),
  async run(given, { args: [typed], options }) {
    const { policy } = await loadPolicy(given, options.file);
    const item = namedItem(given, policy, "oauth_client", options.name);
    const context = actingFor(given, policy);
    const bench = await workbenchOf(context);
    const { value: client } = await readClient(context, bench.account.service, typed);
    const { id, status, service_account_id: serviceAccount, client_id: clientId, scopes } = client;
    await adoptAsItem(context, {
      bench,
      isTrial: options.dryRun === true,
      adoption: { item, status, credential: { id, serviceAccount, clientId, scopes } },
    });
  },
});
