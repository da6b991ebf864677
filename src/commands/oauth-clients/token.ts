// Exchanges client credentials for a token (§5.2, RFC 6749 §4.4).
import type { ClientProof, TokenEndpoint } from "../../api/auth/credential.ts";
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import { read } from "../running/read.ts";
import { defineVerb } from "../verb.ts";
import { askClientId } from "./clients.ts";
import { shell, settingOf } from "../../next-step.ts";

export const command = defineVerb({
  configure: (command) =>
    command
      .option("--client-id <id>", "The client's client_id (not its resource id)")
      .option("--client-secret-stdin", "Read its secret from standard input")
      .option(
        "--scope <scope...>",
        "A permission of the token; repeatable (default: the profile's, else all that the endpoint gives)",
      )
      .option("--from-profile", "Use the profile's own client credentials"),
  examples: [
    {
      line: "integ oauth-clients token --client-id cid_1 --client-secret-stdin < client.secret",
      does: "check whether this secret works",
    },
    {
      line: "integ oauth-clients token --from-profile --json | jq -r .access_token",
      does: "a token for another program",
    },
    {
      line: "integ oauth-clients token --from-profile --scope entity:read --json | jq -r .access_token",
      does: "one that may do less",
    },
  ],
  more: "The token endpoint is the profile's. The token is printed: it has the client's permissions, or those of --scope, until it expires.",
  async run(context, { options }) {
    const client = { ...(await clientOf(context, options)), scopes: options.scope };
    await context.secrets.checkMask();
    const service = await context.connect();
    const answer = await read(context, "exchange client credentials for a token", async () => {
      const attempt = await service.tokens.exchangeClient(client);
      if (attempt) return attempt;
      const { name } = await context.profiles.active();
      throw new Failure("usage", `Profile ${name} has no token endpoint.`, {
        meaning: "It is part of your organization's OAuth setup.",
        ...(name === "env" ? { hint: "Set INTEG_TOKEN_ENDPOINT." } : settingOf(name, "--token-endpoint")),
      });
    }).catch((error: unknown) => {
      throw options.fromProfile ? error : refusedClient(error);
    });
    await context.secrets.mask(answer.value.token, answer.body.toString());
    await context.output.resource(answer.body.toString(), {
      columns: [
        { path: "access_token", heading: "access token" },
        { path: "token_type", heading: "type" },
        { path: "expires_in", heading: "expires in (s)" },
        { path: "scope", heading: "scope" },
      ],
    });
  },
});

/** Replaces the next step `integ doctor`, which checks only the profile's own credential. */
function refusedClient(error: unknown): unknown {
  if (!(error instanceof Failure) || error.details.problem?.status !== 401) return error;
  const hint = "Check the client_id and the secret, and that the client is active.";
  return new Failure(error.kind, error.message, { ...error.details, hint, nextCommand: undefined });
}

async function clientOf(
  context: Context,
  options: { clientId?: string; clientSecretStdin?: true; fromProfile?: true },
): Promise<ClientProof & { clientId: string; at?: TokenEndpoint }> {
  if (options.fromProfile && (options.clientId !== undefined || options.clientSecretStdin))
    throw new Failure("usage", "--from-profile and --client-id contradict each other.", { hint: "Keep one of them." });
  if (!options.fromProfile) {
    const clientId = options.clientId ?? (context.output.interactive ? await askClientId(context) : "");
    if (clientId === "")
      throw new Failure("usage", "--client-id or --from-profile is missing.", {
        nextCommand: shell`integ help oauth-clients token`,
      });
    const clientSecret = options.clientSecretStdin
      ? await context.secrets.fromStdin("client secret")
      : await context.output.ask("client secret", { hidden: true, flag: "--client-secret-stdin" });
    return { clientId, clientSecret };
  }
  const profile = await context.profiles.active();
  const credential = await profile.credential();
  if (credential.kind !== "client_credentials")
    throw new Failure("usage", `Profile ${profile.name} has an API key, not client credentials.`, {
      hint: "Name the client with --client-id and --client-secret-stdin.",
    });
  const { tokenEndpoint, clientAuth, audience, issuer, scope, ...client } = credential;
  return { ...client, at: { tokenEndpoint, clientAuth, audience, issuer, scope } };
}
