import { warnOfUsers } from "../running/users.ts";
import { revocationIntent, revokeNamed } from "../../operations/revocation.ts";
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import { addDryRun, defineVerb } from "../verb.ts";
import { noteUnfinished, workbenchOf } from "../running/change.ts";
import { changeEach, eachOnce } from "../running/several.ts";
import { shell } from "../../next-step.ts";
import { askClient, clientsOf, oauthClientView, resourceIdOf, unknownClient } from "./clients.ts";

export const command = defineVerb({
  contract: "v1",
  fields: oauthClientView.columns.map(({ path }) => path),
  result: oauthClientView.columns,
  configure: (command) =>
    addDryRun(
      command
        .argument("[id...]", "Resource ids of the clients")
        .option("--service-account <id>", "With --all: the service account whose clients are revoked")
        .option("--all", "Revoke every client of the service account that the journal knows"),
    ),
  examples: [
    { line: "integ oauth-clients revoke oc_123", does: "confirm first; the client's tokens stop working immediately" },
    { line: "integ oauth-clients revoke oc_123 oc_124 --yes", does: "several; skip the question; safe to repeat" },
    { line: "integ oauth-clients revoke --service-account sa_1 --all", does: "list them, confirm, then revoke" },
  ],
  more: "The API has no list of clients: --all means those that the journal knows.",
  async run(context, { args: [typed], options }) {
    const ids = await selectedIds(context, typed, options);
    const bench = await workbenchOf(context);
    if (options.dryRun) {
      const { requestStep, showSteps } = await import("../running/dry-run.ts");
      const steps = ids.map((id) => requestStep(`revoke ${id}`, revocationIntent(bench, "client", id)));
      return showSteps(context, steps);
    }
    await warnOfUsers(context, ids);
    const { profile, region } = bench.account;
    const [what, whose] =
      ids.length === 1
        ? [`client ${ids[0]}`, "Its requests are"]
        : [`${ids.length} clients (${ids.join(", ")})`, "Their requests are"];
    const agreed = await context.output.confirm(
      `Revoke ${what} as profile ${profile} (${region})? ${whose} denied immediately, even with ${ids.length === 1 ? "an existing token" : "existing tokens"}.`,
      { destructive: true },
    );
    if (!agreed) throw new Failure("usage", "Not revoked: the answer was no.");
    await noteUnfinished(context);
    const change = async (id: string): Promise<string> => {
      const { receipt } = await revokeNamed(bench, "client", id).catch(async (error: unknown) => {
        throw await unknownClient(context, id, error);
      });
      return receipt;
    };
    await changeEach(context, { ids, view: oauthClientView, change, states: ["revoking", "revoked"] });
  },
});

async function selectedIds(
  context: Context,
  typed: readonly string[],
  { serviceAccount, all }: { readonly serviceAccount?: string; readonly all?: true },
): Promise<string[]> {
  if (all === true || serviceAccount !== undefined) return idsOfAccount(context, { serviceAccount, all, typed });
  const picked = typed.length === 0 && context.output.interactive ? await pick(context) : undefined;
  const ids = eachOnce(picked === undefined ? typed : [picked], shell`integ oauth-clients list`);
  if (ids.length === 0)
    throw new Failure("usage", "<id> is missing.", { nextCommand: shell`integ oauth-clients list` });
  const resourceIds: string[] = [];
  for (const id of ids) resourceIds.push((await resourceIdOf(context, id)) ?? id);
  return [...new Set(resourceIds)];
}

const pick = askClient("Which client should be revoked?");

async function idsOfAccount(
  context: Context,
  {
    serviceAccount,
    all,
    typed,
  }: { readonly serviceAccount: string | undefined; readonly all: true | undefined; readonly typed: readonly string[] },
): Promise<string[]> {
  if (all !== true || serviceAccount === undefined || typed.length > 0)
    throw new Failure("usage", "--service-account and --all belong together, without ids.", {
      meaning: "Nothing was sent.",
      hint: "Use both, or name clients by their ids.",
    });
  const { baseUrl } = await context.profiles.active();
  const journal = await context.journal();
  const clients = await clientsOf(journal, { baseUrl, serviceAccount, trusted: true });
  const unrevoked = clients.filter(({ status }) => status !== "revoked");
  for (const { id } of await clientsOf(journal, { baseUrl, serviceAccount }))
    if (!clients.some((client) => client.id === id))
      context.output.warn(
        `${id} stays: only an untrusted entry says that it belongs to ${serviceAccount}. To revoke it: integ oauth-clients revoke ${id}`,
      );
  if (unrevoked.length === 0)
    throw new Failure("not_found", `The journal knows no client of ${serviceAccount} that is not revoked.`, {
      meaning: "Nothing was sent. Clients created elsewhere are not known here.",
      nextCommand: shell`integ oauth-clients list`,
    });
  for (const { id, status, created_at, scopes } of unrevoked)
    context.output.note(`${id} (${status}, ${scopes.join(" ")}, made ${created_at.slice(0, 10)})`);
  return unrevoked.map(({ id }) => id);
}
