import { addDryRun, defineVerb } from "../verb.ts";
import { creationIntent, createOAuthClient } from "../../operations/client.ts";
import type { Context } from "../../context.ts";
import { parseDuration } from "../options/global.ts";
import { askDestination, addSecretOptions, secretOptionsOf } from "../options/secrets.ts";
import {
  mayReplace,
  printReceipt,
  deliveryWords,
  checkedDeliveryWords,
  actingAs,
  noteUnfinished,
  reportPlan,
  workbenchOf,
} from "../running/change.ts";
import { askAccount, askScopes, oauthClientView } from "./clients.ts";

export const command = defineVerb({
  contract: "v1",
  fields: oauthClientView.columns.map(({ path }) => path),
  result: oauthClientView.columns,
  configure: (command) =>
    addSecretOptions(
      addDryRun(command)
        .option("--service-account <id>", "The service account that will own the client")
        .option("--scope <scope...>", "A permission of the client; repeatable, 1 to 100, no wildcards")
        .option("--idempotency-key <key>", "Idempotency key to send: the same key and values return the same client")
        .option("--new", "Create another client, even if the same creation is unfinished")
        .option("--wait <duration>", "Time to wait for a pending client; 0s: do not wait", "1m")
        .option("--replace-lost-secret", "If the secret is lost, revoke the client and create another"),
    ),
  examples: [
    {
      line: "integ oauth-clients create --service-account sa_1 --scope entity:read --secret-file ./client.secret",
      does: "the secret goes to a new file that only you can read",
    },
    {
      line: "integ oauth-clients create --service-account sa_1 --scope entity:read --json | jq -r .client_secret",
      does: "the secret is on standard output, once",
    },
    {
      line: "integ oauth-clients create --service-account sa_1 --scope entity:read --secret-command 'vault kv put secret/ci value=-'",
      does: "the secret goes to a command's standard input",
    },
  ],
  more: "integ saves the idempotency key and the exact request on disk before it sends anything. After a crash or a lost connection, run the same command again or `integ journal recover`.",
  async run(context, { options }) {
    const service_account_id = options.serviceAccount ?? (await askAccount(context));
    const request = { service_account_id, scopes: options.scope ?? (await askScopes(context, service_account_id)) };
    const waitMs = parseDuration(options.wait, "--wait");
    const { checkCreation } = await import("../../api/oauth-client-creation.ts");
    checkCreation({ ...request, idempotencyKey: options.idempotencyKey });
    const show = (receipt: string): Promise<void> => showReceipt(context, receipt, { withSecret: true });
    const { options: secretOptions } = await askDestination(context, secretOptionsOf(options), options);
    const destination = await context.secrets.destination({ ...secretOptions, yields: "oauth_client" }, show);
    const bench = await workbenchOf(context);
    if (options.dryRun) {
      const { placeholders, requestStep, showRequest } = await import("../running/dry-run.ts");
      const headers = { "Idempotency-Key": options.idempotencyKey ?? placeholders.key };
      return showRequest(context, requestStep("create the client", creationIntent(bench, request), { headers }));
    }
    reportPlan(
      context,
      `${actingAs(bench)}: integ creates a client of ${service_account_id} with ${request.scopes.join(", ")}.`,
    );
    await noteUnfinished(context);
    const { kind, entry, receipt } = await createOAuthClient(bench, request, {
      destination,
      waitMs,
      key: options.idempotencyKey,
      fresh: options.new === true,
      mayReplace: (lost) => mayReplace(context, lost, options.replaceLostSecret),
    });
    if (kind === "delivered_before")
      context.output.note("The secret of this client was delivered before: its receipt does not contain it.");
    if (receipt === undefined || (kind === "delivered" && destination.isStdout)) return;
    await showReceipt(context, receipt, { withSecret: false });
    const place = kind === "delivered" ? deliveryWords(entry) : await checkedDeliveryWords(context, entry);
    if (place) context.output.note(place);
  },
});

async function showReceipt(context: Context, receipt: string, { withSecret }: { withSecret: boolean }): Promise<void> {
  const view = { ...oauthClientView, nulls: withSecret ? [] : ["client_secret"] };
  await printReceipt(() => context.output.resource(receipt, view));
}
