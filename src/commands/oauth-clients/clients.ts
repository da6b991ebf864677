// Finds clients in the journal, because the API cannot list clients (§4.2).
import type { Service } from "../../api/connect.ts";
import type { Answered } from "../../api/call/attempt.ts";
import type { OAuthClient } from "../../api/oauth-clients.ts";
import type { Context } from "../../context.ts";
import { Failure, validationMessage } from "../../errors.ts";
import { type Entry, revokedBy, revokedEntry } from "../../journal/entry.ts";
import type { Journal } from "../../journal/journal.ts";
import type { Choice } from "../../output/asking/pick-list.ts";
import type { ResourceView } from "../../output/formats/format.ts";

export const oauthClientView: ResourceView = {
  columns: [
    { path: "id", heading: "id" },
    { path: "service_account_id", heading: "service account" },
    { path: "client_id", heading: "client id" },
    { path: "client_secret", heading: "client secret" },
    { path: "scopes", heading: "scopes", kind: "list" },
    { path: "status", heading: "status", kind: "status" },
    { path: "created_at", heading: "created", kind: "time" },
  ],
  secretField: "client_secret",
};

export interface KnownClient {
  readonly id: string;
  readonly service_account_id: string;
  readonly scopes: readonly string[];
  readonly client_id: string | null;
  /** The status that the journal shows: `active`, `pending` or `revoked`. */
  readonly status: string;
  readonly created_at: string;
}

export interface KnownRequest {
  readonly service_account_id: string;
  readonly scopes: readonly string[];
  readonly created_at: string;
}

function requestOf(entry: Entry): KnownRequest {
  const { service_account_id, scopes } = JSON.parse(entry.request_text) as Omit<KnownRequest, "created_at">;
  return { service_account_id, scopes, created_at: entry.created_at };
}

function isCreationAt({ operation, base_url }: Entry, baseUrl: string): boolean {
  return (operation === "oauth_client.create" || operation === "oauth_client.adopt") && base_url === baseUrl;
}

/** Takes entries one by one, so that a long journal need not fit into memory. */
export class KnownClients {
  readonly #baseUrl: string;
  readonly #revoked = new Set<string>();
  /** Ids of entries whose clients integ revoked to replace them. */
  readonly #replaced = new Set<string | null>();
  readonly #clients = new Map<string, KnownClient>();

  constructor(baseUrl: string) {
    this.#baseUrl = baseUrl;
  }

  /** Call with the newest entry first. */
  add(entry: Entry): void {
    if (entry.base_url !== this.#baseUrl) return;
    const { state, detail, resource_id: id } = entry;
    this.#replaced.add(revokedEntry(entry));
    const revoked = revokedBy(entry);
    if (revoked !== undefined) this.#revoked.add(revoked);
    if (id === null || this.#clients.has(id) || !isCreationAt(entry, this.#baseUrl)) return;
    if (state === "replaced" || state === "unusable" || this.#replaced.has(entry.id)) this.#revoked.add(id);
    const client_id = typeof detail.client_id === "string" ? detail.client_id : null;
    const status = state === "pending" ? "pending" : "active";
    const { service_account_id, scopes, created_at } = requestOf(entry);
    this.#clients.set(id, { id, service_account_id, scopes, client_id, status, created_at });
  }

  *all(): Iterable<KnownClient> {
    for (const client of this.#clients.values())
      yield this.#revoked.has(client.id) ? { ...client, status: "revoked" } : client;
  }
}

/** @param entries the newest first */
export function clientsIn(entries: readonly Entry[], baseUrl: string): KnownClient[] {
  const clients = new KnownClients(baseUrl);
  for (const entry of entries) clients.add(entry);
  return [...clients.all()];
}

/** False if only entries without a valid HMAC name the client: integ then revokes it only if a person types its id. */
export async function isTrustedClient(journal: Pick<Journal, "select">, id: string): Promise<boolean> {
  return (await journal.select({ all: true, resource: id, trusted: true })).length > 0;
}

/** Searches the journal by service account instead of reading it all. */
export async function clientsOf(
  journal: Pick<Journal, "select">,
  about: { readonly baseUrl: string; readonly serviceAccount: string; readonly trusted?: true },
): Promise<KnownClient[]> {
  const { baseUrl, serviceAccount, trusted } = about;
  const creations = await journal.select({ all: true, serviceAccount, trusted });
  const byId = new Map(creations.map((entry) => [entry.id, entry]));
  for (const { id } of clientsIn(creations, baseUrl))
    for (const entry of await journal.select({ all: true, resource: id, trusted })) byId.set(entry.id, entry);
  const entries = [...byId.values()].sort((a, b) => (a.id < b.id ? 1 : -1));
  return clientsIn(entries, baseUrl).filter((client) => client.service_account_id === serviceAccount);
}

/** Omits refused creations, whose service account or scope may be mistyped. */
export function requestsIn(entries: readonly Entry[], baseUrl: string): KnownRequest[] {
  return entries.filter((entry) => isCreationAt(entry, baseUrl) && entry.state !== "refused").map(requestOf);
}

export async function askAccount(context: Context): Promise<string> {
  const question = "Service account that will own the client";
  const choices = (await recentRequests(context)).map(({ service_account_id, created_at }) => ({
    value: service_account_id,
    hint: lastUsed(created_at),
  }));
  return context.output.pick(question, {
    choices: distinct(choices),
    flag: "--service-account <id>",
    other: { label: "another…", question },
  });
}

export async function askScopes(context: Context, account: string): Promise<string[]> {
  const { checkCreation } = await import("../../api/oauth-client-creation.ts");
  const requests = await recentRequests(context);
  const chosen = requests.find(({ service_account_id }) => service_account_id === account)?.scopes ?? [];
  const used = requests.flatMap(({ scopes, created_at }) =>
    scopes.map((value) => ({ value, hint: lastUsed(created_at) })),
  );
  const choices = distinct(used).sort((a, b) => Number(chosen.includes(b.value)) - Number(chosen.includes(a.value)));
  return context.output.pickSome("Scopes", {
    choices,
    chosen,
    flag: "--scope <scope>",
    other: {
      label: "others…",
      question: "Scopes, with spaces between them",
      validate: (text) =>
        scopesIn(text).length === 0
          ? "At least one scope is needed."
          : validationMessage(() => checkCreation({ service_account_id: account, scopes: scopesIn(text) })),
    },
    split: scopesIn,
  });
}

export function askClient(
  question: string,
  { withRevoked = false } = {},
): (context: Context) => Promise<string | undefined> {
  return async (context) => {
    const clients = await recentClients(context);
    const choices = clients
      .filter(({ status }) => withRevoked || status !== "revoked")
      .map((client) => ({ value: client.id, hint: hintOf(client) }));
    if (choices.length === 0) return undefined;
    const other = { label: "another…", question: "Resource id of the client" };
    return context.output.pick(question, { choices, flag: "<id>", other });
  };
}

export async function askClientId(context: Context): Promise<string> {
  const choices = (await recentClients(context)).flatMap((client) =>
    client.client_id === null || client.status === "revoked"
      ? []
      : [{ value: client.client_id, hint: `${client.id}, ${hintOf(client)}` }],
  );
  const question = "client_id of the client";
  return context.output.pick(question, { choices, flag: "--client-id <id>", other: { label: "another…", question } });
}

/** @param typed a resource id, or a `client_id` in the journal */
export async function readClient(
  context: Context,
  { oauthClients }: Service,
  typed: string,
): Promise<Answered<OAuthClient>> {
  const { read } = await import("../running/read.ts");
  const get = (id: string) => read(context, "get the OAuth client", () => oauthClients.get(id));
  try {
    return await get(typed);
  } catch (error) {
    const id = isNotFound(error) ? await resourceIdOf(context, typed) : undefined;
    if (id === undefined) throw await unknownClient(context, typed, error);
    return get(id);
  }
}

/** @returns the resource id for a `client_id`; undefined for a resource id, or an id that the journal lacks */
export async function resourceIdOf(context: Context, typed: string): Promise<string | undefined> {
  const clients = await clientsNamed(context, typed);
  const client = clients.some(({ id }) => id === typed)
    ? undefined
    : clients.find(({ client_id }) => client_id === typed);
  if (client === undefined) return undefined;
  context.output.note(`${typed} is the client_id of the client ${client.id}.`);
  return client.id;
}

/** Adds an explanation to a 404 failure if the journal does not contain the resource id either. */
export async function unknownClient(context: Context, typed: string, error: unknown): Promise<unknown> {
  if (!isNotFound(error) || (await clientsNamed(context, typed)).some(({ id }) => id === typed)) return error;
  return new Failure(error.kind, error.message, {
    ...error.details,
    meaning: `No trusted entry in ${await journalName(context)} has this id or client_id. If you typed a client_id, use the client's resource id instead.`,
  });
}

export async function journalName({ journal }: Context): Promise<string> {
  return (await journal()).isShared ? "the team's journal" : "this machine's journal";
}

function isNotFound(error: unknown): error is Failure {
  return error instanceof Failure && error.kind === "not_found";
}

/** An untrusted entry must not decide which client an id means. */
async function clientsNamed(context: Context, typed: string): Promise<KnownClient[]> {
  const { baseUrl } = await context.profiles.active();
  return clientsIn(await (await context.journal()).select({ all: true, resource: typed, trusted: true }), baseUrl);
}

async function recentClients(context: Context): Promise<KnownClient[]> {
  const { baseUrl } = await context.profiles.active();
  const { newestEntries } = await import("../options/known-names.ts");
  return clientsIn(await newestEntries(await context.journal()), baseUrl);
}

/** Only questions need these requests, and integ asks only at a terminal. */
async function recentRequests(context: Context): Promise<KnownRequest[]> {
  if (!context.output.interactive) return [];
  const { baseUrl } = await context.profiles.active();
  const { newestEntries } = await import("../options/known-names.ts");
  return requestsIn(await newestEntries(await context.journal()), baseUrl);
}

function hintOf({ service_account_id, status, created_at }: KnownClient): string {
  return `${service_account_id}, ${status}, ${created_at.slice(0, 10)}`;
}

function lastUsed(time: string): string {
  return `last used ${time.slice(0, 10)}`;
}

function distinct(choices: readonly Choice[]): Choice[] {
  return [...new Map(choices.toReversed().map((choice) => [choice.value, choice])).values()].reverse();
}

function scopesIn(text: string): string[] {
  return text.split(/[\s,]+/).filter((scope) => scope !== "");
}
