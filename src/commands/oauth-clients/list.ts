// `integ oauth-clients list`. The API has no list: this is what the journal knows, each client asked for.
import type { OAuthClients } from "../../api/oauth-clients.ts";
import type { Context } from "../../context.ts";
import { pageOf } from "../../output/row-page.ts";
import { mentionMove } from "../running/change.ts";
import { read } from "../running/read.ts";
import { defineVerb } from "../verb.ts";
import { clientsIn, clientsOf, type KnownClient, oauthClientView, whoseJournal } from "./clients.ts";
import { shell } from "../../next-step.ts";

/** §8: clients a service account may have. */
const slots = 20;

export const command = defineVerb({
  fields: oauthClientView.columns.map(({ path }) => path),
  configure: (command) =>
    command
      .option("--offline", "Show clients as last seen, without the network")
      .option("--service-account <id>", "Only clients of this service account"),
  examples: [
    { line: "integ oauth-clients list", does: "clients that this machine created, with their current state" },
    { line: "integ oauth-clients list --offline --json | jq '.data[].id'", does: "without the network" },
  ],
  more: "The API has no list of clients: clients created elsewhere are not shown, but they use slots too.",
  async run(context, { options }) {
    const profile = await context.profiles.active();
    const journal = await context.journal();
    await mentionMove(context);
    const { baseUrl } = profile;
    const { serviceAccount } = options;
    const known =
      serviceAccount === undefined
        ? clientsIn(await journal.entries(), baseUrl)
        : await clientsOf(journal, { baseUrl, serviceAccount });
    const service = options.offline ? undefined : await context.connect(profile);
    const rows: Row[] = [];
    for (const client of known)
      rows.push(service ? await refreshed(context, client, service.oauthClients) : asSeen(client));
    const whose = await whoseJournal(context);
    const list = context.output.list({
      columns: oauthClientView.columns.filter(({ path }) => path !== "client_secret"),
      singular: "client",
      plural: "clients",
      empty: `No clients in ${whose}. The API has no list of clients: clients created elsewhere are not shown.`,
    });
    await list.page(pageOf(rows.map((row) => row.text)));
    await list.end({ nextPageToken: null, hasMore: false });
    if (rows.length === 0) return;
    context.output.note(
      `The API has no list of clients: this list has the ones in ${whose}${options.offline ? ", as last seen" : ""}.`,
    );
    if (!options.offline) tellSlots(context, rows);
  },
});

interface Row {
  readonly text: string;
  readonly service_account_id: string;
  /** True if the client is known to hold a slot. */
  readonly holds: boolean;
  /** True if it is revoked, and may hold one until its cleanup is confirmed. */
  readonly mayHold: boolean;
}

function asSeen({ created_at, ...client }: KnownClient): Row {
  const text = JSON.stringify({ object: "oauth_client", ...client, created_at, client_secret: null });
  const isRevoked = client.status === "revoked";
  return { text, service_account_id: client.service_account_id, holds: !isRevoked, mayHold: isRevoked };
}

/** Kinds of a service that cannot be asked at the moment. */
const mayPass: ReadonlySet<string> = new Set(["unreachable", "failed", "rate_limited"]);

async function refreshed(context: Context, client: KnownClient, clients: OAuthClients): Promise<Row> {
  try {
    const { text, value } = await read(context, `get the OAuth client ${client.id}`, () => clients.get(client.id));
    const isRevoked = value.status === "revoked";
    return { text, service_account_id: value.service_account_id, holds: !isRevoked, mayHold: isRevoked };
  } catch (error) {
    const { Failure } = await import("../../errors.ts");
    if (error instanceof Failure && mayPass.has(error.kind))
      throw new Failure(error.kind, error.message, {
        ...error.details,
        meaning: "Without the service the clients can be shown as this machine last saw them.",
        nextCommand: shell`integ oauth-clients list --offline`,
      });
    if (!(error instanceof Failure) || error.kind !== "not_found") throw error;
    context.output.warn(`The service does not find ${client.id} (any more): shown as last seen.`);
    return { ...asSeen(client), holds: false, mayHold: false };
  }
}

/** A revoked client holds its slot until its cleanup is confirmed (§3.1), and the service does not say when that is. */
function tellSlots(context: Context, rows: readonly Row[]): void {
  for (const account of new Set(rows.map((row) => row.service_account_id))) {
    const own = rows.filter((row) => row.service_account_id === account);
    const held = own.filter(({ holds }) => holds).length;
    const revoked = own.filter(({ mayHold }) => mayHold).length;
    const others =
      revoked === 0
        ? ""
        : ` Until their cleanup is confirmed, ${revoked} revoked ${revoked === 1 ? "client" : "clients"} may use slots too.`;
    context.output.note(`${account}: at least ${held} of ${slots} slots used.${others}`);
  }
}
