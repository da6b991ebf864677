// Owns: what a person is asked about OAuth clients, with what this machine's journal knows to pick from.
// Must not know: the service, how a question is drawn.
import type { Context } from "../../context.ts";
import type { Choice } from "../../output/output.ts";
import { complaintOf } from "../complaint.ts";
import { clientsIn, requestsIn, type KnownClient, type KnownRequest } from "./known-clients.ts";

/** The service account that will own a client. @throws Failure `usage` where nobody can be asked or no answer is given */
export async function askAccount(context: Context): Promise<string> {
  const question = "Service account that will own the client";
  const choices = (await requestsMade(context)).map(({ service_account_id, created_at }) => ({
    value: service_account_id,
    hint: lastUsed(created_at),
  }));
  return context.output.pick(question, {
    choices: eachOnce(choices),
    flag: "--service-account <id>",
    other: { label: "another…", question },
  });
}

/**
 * The scopes of a client of that service account: those it was last given are taken to begin with.
 * @throws Failure `usage` where nobody can be asked or no answer is given
 */
export async function askScopes(context: Context, account: string): Promise<string[]> {
  const { checkCreation } = await import("../../api/oauth-client-creation.ts");
  const requests = await requestsMade(context);
  const chosen = requests.find(({ service_account_id }) => service_account_id === account)?.scopes ?? [];
  const used = requests.flatMap(({ scopes, created_at }) =>
    scopes.map((value) => ({ value, hint: lastUsed(created_at) })),
  );
  const choices = eachOnce(used).sort((a, b) => Number(chosen.includes(b.value)) - Number(chosen.includes(a.value)));
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
          : complaintOf(() => checkCreation({ service_account_id: account, scopes: scopesIn(text) })),
    },
    split: scopesIn,
  });
}

/**
 * Which client is meant, of those that this machine made and that are not known to be revoked.
 * @returns nothing where none is known
 */
export function askClient(
  question: string,
  { withRevoked = false } = {},
): (context: Context) => Promise<string | undefined> {
  return async (context) => {
    const clients = await clientsMade(context);
    const choices = clients
      .filter(({ status }) => withRevoked || status !== "revoked")
      .map((client) => ({ value: client.id, hint: hintOf(client) }));
    if (choices.length === 0) return undefined;
    const other = { label: "another…", question: "Resource id of the client" };
    return context.output.pick(question, { choices, flag: "<id>", other });
  };
}

/** The `client_id` of a client, for a token exchange. @throws Failure `usage` where no answer is given */
export async function askClientId(context: Context): Promise<string> {
  const choices = (await clientsMade(context)).flatMap((client) =>
    client.client_id === null || client.status === "revoked"
      ? []
      : [{ value: client.client_id, hint: `${client.id}, ${hintOf(client)}` }],
  );
  const question = "client_id of the client";
  return context.output.pick(question, { choices, flag: "--client-id <id>", other: { label: "another…", question } });
}

async function clientsMade(context: Context): Promise<KnownClient[]> {
  const { baseUrl } = await context.profiles.active();
  return clientsIn(await (await context.journal()).entries(), baseUrl);
}

/** Nothing is looked up where nobody can be asked. */
async function requestsMade(context: Context): Promise<KnownRequest[]> {
  if (!context.output.interactive) return [];
  const { baseUrl } = await context.profiles.active();
  return requestsIn(await (await context.journal()).entries(), baseUrl);
}

function hintOf({ service_account_id, status, created_at }: KnownClient): string {
  return `${service_account_id}, ${status}, ${created_at.slice(0, 10)}`;
}

function lastUsed(time: string): string {
  return `last used ${time.slice(0, 10)}`;
}

/** The first of each name, which is the newest. */
function eachOnce(choices: readonly Choice[]): Choice[] {
  return [...new Map(choices.toReversed().map((choice) => [choice.value, choice])).values()].reverse();
}

function scopesIn(text: string): string[] {
  return text.split(/[\s,]+/).filter((scope) => scope !== "");
}
