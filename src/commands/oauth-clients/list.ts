// Lists the journal's clients, because the API cannot list clients. Without `--offline`, the service gives their state.
import { maxClients } from "../../api/oauth-client-creation.ts";
import type { OAuthClients } from "../../api/oauth-clients.ts";
import type { Context } from "../../context.ts";
import { inPages, pageOf } from "../../output/row-page.ts";
import { warnOfMove } from "../running/change.ts";
import { read } from "../running/read.ts";
import { defineVerb } from "../verb.ts";
import type { Journal } from "../../journal/journal.ts";
import { clientsOf, type KnownClient, KnownClients, oauthClientView, journalName } from "./clients.ts";
import { shell } from "../../next-step.ts";

export const command = defineVerb({
  isPaged: true,
  fields: oauthClientView.columns.map(({ path }) => path),
  configure: (command) =>
    command
      .option("--offline", "Show clients as last seen, without the network")
      .option("--service-account <id>", "Only clients of this service account"),
  examples: [
    { line: "integ oauth-clients list", does: "clients of the journal, with their current state" },
    { line: "integ oauth-clients list --offline --json | jq '.data[].id'", does: "without the network" },
  ],
  more: "The API has no list of clients: clients created elsewhere are not shown, but they use slots too.",
  async run(context, { options }) {
    const profile = await context.profiles.active();
    const journal = await context.journal();
    await warnOfMove(context);
    const { baseUrl } = profile;
    const { serviceAccount } = options;
    const clients =
      serviceAccount === undefined
        ? await clientsAt(journal, baseUrl)
        : await clientsOf(journal, { baseUrl, serviceAccount });
    const service = options.offline ? undefined : await context.connect(profile);
    const rows: string[] = [];
    const slots = new Slots();
    for (const client of clients) {
      const row = service ? await currentRow(context, client, service.oauthClients) : lastKnownRow(client);
      slots.add(row);
      rows.push(row.text);
    }
    const whose = await journalName(context);
    const list = context.output.list({
      columns: oauthClientView.columns.filter(({ path }) => path !== "client_secret"),
      extraColumns: [...oauthClientView.columns, { path: "object", heading: "object" }],
      singular: "client",
      plural: "clients",
      isWhole: rows.length < 100,
      empty: `No clients of this account in ${whose}. The API has no list of clients: clients created elsewhere are not shown.`,
    });
    for await (const page of inPages(rows)) await list.page(pageOf(page));
    await list.end({ nextPageToken: null, hasMore: false });
    if (rows.length === 0) return;
    context.output.note(
      `The API has no list of clients: this list has the ones in ${whose}${options.offline ? ", as last seen" : ""}.`,
    );
    if (!options.offline) for (const line of slots.lines()) context.output.note(line);
  },
});

interface Row {
  readonly text: string;
  readonly service_account_id: string;
  readonly usesSlot: boolean;
  readonly mayUseSlot: boolean;
}

function lastKnownRow({ created_at, ...client }: KnownClient): Row {
  const text = JSON.stringify({ object: "oauth_client", ...client, created_at, client_secret: null });
  const isRevoked = client.status === "revoked";
  return { text, service_account_id: client.service_account_id, usesSlot: !isRevoked, mayUseSlot: isRevoked };
}

const temporaryKinds: ReadonlySet<string> = new Set(["unreachable", "failed", "rate_limited"]);

async function currentRow(context: Context, client: KnownClient, clients: OAuthClients): Promise<Row> {
  try {
    const { body, value } = await read(context, `get the OAuth client ${client.id}`, () => clients.get(client.id));
    const isRevoked = value.status === "revoked";
    return {
      text: body.toString(),
      service_account_id: value.service_account_id,
      usesSlot: !isRevoked,
      mayUseSlot: isRevoked,
    };
  } catch (error) {
    const { Failure } = await import("../../errors.ts");
    if (error instanceof Failure && temporaryKinds.has(error.kind))
      throw new Failure(error.kind, error.message, {
        ...error.details,
        meaning: "Without the service the clients can be shown as this machine last saw them.",
        nextCommand: shell`integ oauth-clients list --offline`,
      });
    if (!(error instanceof Failure) || error.kind !== "not_found") throw error;
    context.output.warn(`The service does not find ${client.id} (any more): shown as last seen.`);
    return { ...lastKnownRow(client), usesSlot: false, mayUseSlot: false };
  }
}

async function clientsAt(journal: Pick<Journal, "each">, baseUrl: string): Promise<Iterable<KnownClient>> {
  const clients = new KnownClients(baseUrl);
  for await (const entry of journal.each({ all: true })) clients.add(entry);
  return clients.all();
}

/** A revoked client keeps its slot until its cleanup, which the service does not show (§3.1). */
class Slots {
  readonly #accounts = new Map<string, { used: number; revoked: number }>();

  add({ service_account_id: account, usesSlot, mayUseSlot }: Row): void {
    const counts = this.#accounts.get(account) ?? { used: 0, revoked: 0 };
    this.#accounts.set(account, counts);
    if (usesSlot) counts.used += 1;
    if (mayUseSlot) counts.revoked += 1;
  }

  *lines(): Iterable<string> {
    for (const [account, { used, revoked }] of this.#accounts) {
      const others =
        revoked === 0
          ? ""
          : ` Until their cleanup is confirmed, ${revoked} revoked ${revoked === 1 ? "client" : "clients"} may use slots too.`;
      yield `${account}: at least ${used} of ${maxClients} slots used.${others}`;
    }
  }
}
