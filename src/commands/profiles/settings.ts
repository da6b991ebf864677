// Reads and checks the flags of a profile and its credential.
import { resolve } from "node:path";
import { findProfileKey } from "../keys/own-key.ts";
import { type FlagsOf, sharedOptions } from "../verb.ts";
import type { Context } from "../../context.ts";
import { Failure, invalidValue } from "../../errors.ts";
import type { GivenProof, GivenSecret, NewCredential, ProfileSettings } from "../../profiles/configure.ts";
import type { Profile } from "../../profiles/profile.ts";

/** Other users can see arguments, so no flag takes a secret. */
export const addProfileOptions = sharedOptions((command) =>
  command
    .addOption(command.createOption("--region <region>", "Region of the organization").choices(["us", "eu"] as const))
    .option("--base-url <url>", "The organization's regional API host, https://…")
    .option("--organization-id <uuid>", "The organization's id; the legacy contract (keys, people) needs it")
    .option("--journal <address>", "Address of a team's journal, without a password (postgresql://…); empty: none")
    .option("--journal-key-command <command>", "Command that prints the keys of that journal; empty: none")
    .option("--escrow <recipient...>", "Age public keys that undelivered secrets are encrypted to; empty: none")
    .option(
      "--allow-destination <place...>",
      "Secrets go only to these: file:<path>, profile:<name>, command:<text>, a store's address, stdout; a * at the end matches any ending; empty: anywhere",
    )
    .option("--api-key-stdin", "Read the API key from standard input")
    .option("--api-key-command <command>", "Command that prints the API key; runs at each use")
    .option("--api-key-id <id>", "Resource id of the access key, so that keys rotate knows the profile's own")
    .addOption(
      command
        .createOption(
          "--basic-style <style>",
          "How HTTP Basic sends the key (one of: apikey-user, key-as-user; default: apikey-user)",
        )
        .choices(["apikey-user", "key-as-user"] as const),
    )
    .option("--client-id <id>", "Client id, to use OAuth client credentials instead of an API key")
    .option("--client-secret-stdin", "Read the client secret from standard input")
    .option("--client-secret-command <command>", "Command that prints the client secret; runs at each use")
    .option(
      "--client-assertion-command <command>",
      "Command that prints a new assertion (a JWT) in place of a client secret; runs for each exchange",
    )
    .option("--client-key-file <path>", "File of the client's private key (PEM), to authenticate by private_key_jwt")
    .option("--token-endpoint <url>", "Token endpoint of the client")
    .option("--audience <audience>", "Audience of the tokens")
    .option("--token-scope <scope>", "Scope of the tokens, if the token endpoint needs it: names separated by spaces")
    .option("--issuer <issuer>", "Issuer of the tokens; integ doctor checks the token endpoint against it")
    .addOption(
      command
        .createOption(
          "--client-auth <method>",
          "Client authentication (one of: client_secret_basic, client_secret_post; default: client_secret_basic)",
        )
        .choices(["client_secret_basic", "client_secret_post"] as const),
    )
    .option(
      "--access-token-command <command>",
      "Command that reads the key on standard input and prints a legacy bearer token",
    )
    .option("--access-token-endpoint <url>", "Endpoint that exchanges the key for a legacy bearer token")
    .option("--verify", "Fail if the test request gets no answer")
    .option("--no-verify", "Store the credential untested, and accept a host of another region"),
);
export type ProfileFlags = FlagsOf<typeof addProfileOptions>;

/** @param before has the stored client and endpoint that a new secret needs */
export async function settingsOf(context: Context, typed: ProfileFlags, before?: Profile): Promise<ProfileSettings> {
  const flags = before === undefined ? typed : await withStored(typed, before);
  refuseBoth(flags, "apiKeyStdin", "apiKeyCommand");
  for (const [index, one] of clientProofs.entries())
    for (const other of clientProofs.slice(index + 1)) refuseBoth(flags, one, other);
  refuseBoth(flags, "accessTokenCommand", "accessTokenEndpoint");
  await checkAddresses(flags);
  await checkRegion(flags, before);
  await checkJournal(flags);
  const legacy = legacyOf(flags);
  const oauth = wantsClient(flags) ? undefined : oauthOf(flags);
  const key = before?.credential?.kind === "api_key" ? keyChangesOf(flags) : undefined;
  // The credential is read last, because a question for its secret must not precede an error about another flag.
  const credential = key === undefined ? await credentialOf(context, flags) : undefined;
  return {
    ...(flags.region !== undefined && { region: flags.region }),
    ...(flags.baseUrl !== undefined && { base_url: flags.baseUrl }),
    ...(flags.organizationId !== undefined && { organization_id: flags.organizationId.toLowerCase() || null }),
    ...(flags.journal !== undefined && { journal: flags.journal || null }),
    ...(flags.journalKeyCommand !== undefined && { journal_key_command: flags.journalKeyCommand.trim() || null }),
    ...(flags.escrow !== undefined && { escrow: recipientsIn(flags.escrow) }),
    ...(flags.allowDestination !== undefined && { destinations: allowedIn(flags.allowDestination) }),
    ...(legacy !== undefined && { legacy }),
    ...(credential !== undefined && { credential }),
    ...(key !== undefined && { key }),
    ...(oauth !== undefined && { oauth }),
  };
}

async function checkJournal({ journal, escrow }: ProfileFlags): Promise<void> {
  const recipients = escrow && recipientsIn(escrow);
  const wrong = recipients?.find((one) => !/^age1[0-9a-z]{50,4000}$/.test(one));
  if (wrong !== undefined)
    throw invalidValue("--escrow", undefined, {
      why: "a recipient is not a public key of age",
      meaning: "Nothing was changed.",
      hint: "Use the public key that age-keygen prints (age1…).",
    });
  if (!journal) return;
  const { readAddress, shownAddress } = await import("../../journal/postgres/address.ts");
  if (shownAddress(journal) !== journal)
    throw invalidValue("--journal", undefined, {
      why: "the address contains a password",
      meaning: "Arguments are seen by others, and a profile is not a place for a secret. Nothing was changed.",
      hint: "Put the password into PGPASSWORD or ~/.pgpass, and leave it out of the address.",
    });
  readAddress(journal, { env: {} });
}

function recipientsIn(typed: readonly string[]): string[] | null {
  const recipients = typed.filter((one) => one !== "");
  return recipients.length === 0 ? null : recipients;
}

function allowedIn(typed: readonly string[]): ProfileSettings["destinations"] {
  const allow = typed.filter((one) => one !== "");
  return allow.length === 0 ? null : { allow };
}

/**
 * A new client secret keeps the stored client and endpoint, and a new setting of the endpoint keeps the others. For a
 * base URL of another origin, only the Basic style is kept.
 */
async function withStored(flags: ProfileFlags, before: Profile): Promise<ProfileFlags> {
  const { credential } = before;
  const stored: ProfileFlags = {};
  const hasNewKey = flags.apiKeyStdin !== undefined || flags.apiKeyCommand !== undefined;
  if (credential?.kind === "api_key" && hasNewKey) stored.basicStyle = credential.basic_style;
  if (await isOtherOrigin(before.base_url, flags.baseUrl)) return { ...stored, ...flags };
  if (credential?.kind === "client_credentials" && wantsClient(flags)) stored.clientId = credential.client_id;
  return { ...stored, ...(await storedEndpoint(flags, before)), ...flags };
}

/** @returns no settings for a typed endpoint of another origin, which has its own */
async function storedEndpoint(flags: ProfileFlags, before: Profile): Promise<ProfileFlags> {
  const { oauthOf } = await import("../../profiles/profile.ts");
  const endpoint = oauthOf(before);
  const { audience, issuer, tokenScope, clientAuth, tokenEndpoint } = flags;
  const isTyped = [audience, issuer, tokenScope, clientAuth, tokenEndpoint].some((value) => value !== undefined);
  if (endpoint === undefined || !(isTyped || wantsClient(flags))) return {};
  if (await isOtherOrigin(endpoint.token_endpoint, tokenEndpoint)) return {};
  return {
    tokenEndpoint: endpoint.token_endpoint,
    clientAuth: endpoint.client_auth,
    ...(endpoint.audience !== undefined && { audience: endpoint.audience }),
    ...(endpoint.issuer !== undefined && { issuer: endpoint.issuer }),
    ...(endpoint.scope !== undefined && { tokenScope: endpoint.scope }),
  };
}

/** True for an invalid address too, which `checkAddresses` refuses. */
async function isOtherOrigin(from: string, to: string | undefined): Promise<boolean> {
  const { originOf } = await import("../../profiles/address.ts");
  return to !== undefined && (!URL.canParse(to) || originOf(from) !== originOf(to));
}

/** @returns undefined for a new credential or an unchanged key */
function keyChangesOf(flags: ProfileFlags): ProfileSettings["key"] {
  const { apiKeyStdin, apiKeyCommand, apiKeyId, basicStyle } = flags;
  if (apiKeyStdin || apiKeyCommand !== undefined || wantsClient(flags)) return undefined;
  if (apiKeyId === undefined && basicStyle === undefined) return undefined;
  return {
    ...(apiKeyId !== undefined && { key_id: apiKeyId || null }),
    ...(basicStyle !== undefined && { basic_style: basicStyle }),
  };
}

async function checkAddresses(flags: ProfileFlags): Promise<void> {
  const { baseUrl, tokenEndpoint, tokenScope, accessTokenEndpoint, organizationId } = flags;
  const { checkTypedBaseUrl, checkEndpoint } = await import("../../profiles/address.ts");
  if (baseUrl !== undefined) checkTypedBaseUrl(baseUrl, "--base-url ");
  if (tokenEndpoint) checkEndpoint(tokenEndpoint, "--token-endpoint");
  if (accessTokenEndpoint !== undefined) checkEndpoint(accessTokenEndpoint, "--access-token-endpoint");
  const { checkTokenScope } = await import("../../profiles/resolution.ts");
  checkTokenScope(tokenScope || undefined, "--token-scope");
  const { organizationIdPattern } = await import("../../profiles/names.ts");
  if (organizationId && !organizationIdPattern.test(organizationId))
    throw invalidValue("--organization-id", undefined, { why: "it is not a UUID" });
}

async function checkRegion({ region, baseUrl, verify }: ProfileFlags, before: Profile | undefined): Promise<void> {
  const base = baseUrl ?? before?.base_url;
  const expected = region ?? before?.region;
  const isTyped = region !== undefined || baseUrl !== undefined;
  if (verify === false || !isTyped || base === undefined || expected === undefined) return;
  (await import("../../profiles/address.ts")).checkRegionOfHost(base, expected);
}

/** These flags exclude each other. */
const clientProofs = ["clientSecretStdin", "clientSecretCommand", "clientAssertionCommand", "clientKeyFile"] as const;

function wantsClient(flags: ProfileFlags): boolean {
  return flags.clientId !== undefined || clientProofs.some((flag) => flags[flag] !== undefined);
}

function legacyOf({ accessTokenCommand, accessTokenEndpoint }: ProfileFlags): ProfileSettings["legacy"] {
  if (accessTokenCommand !== undefined) return { kind: "access_token_command", command: accessTokenCommand };
  if (accessTokenEndpoint !== undefined) return { kind: "access_token_endpoint", url: accessTokenEndpoint };
  return undefined;
}

async function credentialOf(context: Context, flags: ProfileFlags): Promise<NewCredential | undefined> {
  const wantsKey =
    flags.apiKeyStdin ||
    flags.apiKeyCommand !== undefined ||
    flags.apiKeyId !== undefined ||
    flags.basicStyle !== undefined;
  if (wantsKey && wantsClient(flags))
    throw new Failure(
      "usage",
      "A profile has one credential for /v1: an API key or OAuth client credentials, not both.",
      {
        hint: "Leave the --api-key… flags or the --client-… flags out.",
      },
    );
  if (wantsClient(flags)) return clientOf(context, flags);
  if (!wantsKey) return undefined;
  const basic_style = flags.basicStyle ?? "apikey-user";
  const given = await secretOf(context, { stdin: flags.apiKeyStdin, command: flags.apiKeyCommand, what: "API key" });
  const key_id = flags.apiKeyId || undefined;
  return { kind: "api_key", basic_style, ...(key_id !== undefined && { key_id }), ...given };
}

async function clientOf(context: Context, flags: ProfileFlags): Promise<NewCredential> {
  const { clientId, tokenEndpoint } = flags;
  if (!clientId)
    throw new Failure("usage", "--client-id is missing.", {
      hint: "Give --client-id, a secret (or an assertion, or a key) and --token-endpoint together.",
    });
  if (!tokenEndpoint) throw new Failure("usage", "--token-endpoint is missing: OAuth client credentials need it.");
  const endpoint = endpointOf(flags, tokenEndpoint);
  return { kind: "client_credentials", client_id: clientId, ...endpoint, ...(await proofOf(context, flags)) };
}

async function proofOf(context: Context, flags: ProfileFlags): Promise<GivenProof> {
  const { clientAssertionCommand: command, clientKeyFile: file } = flags;
  if (command?.trim() === "") throw new Failure("usage", "The command that prints the client assertion is empty.");
  if (command !== undefined) return { assertion_command: command };
  if (file !== undefined) return { key_file: resolve(file) };
  return secretOf(context, {
    stdin: flags.clientSecretStdin,
    command: flags.clientSecretCommand,
    what: "client secret",
  });
}

function endpointOf(flags: ProfileFlags, tokenEndpoint: string): NonNullable<ProfileSettings["oauth"]> {
  return {
    token_endpoint: tokenEndpoint,
    client_auth: flags.clientAuth ?? "client_secret_basic",
    ...(flags.audience !== undefined && { audience: flags.audience }),
    ...(flags.issuer !== undefined && { issuer: flags.issuer }),
    ...(flags.tokenScope && { scope: flags.tokenScope }),
  };
}

/** @returns the settings of the token endpoint, for flags without client credentials */
function oauthOf(flags: ProfileFlags): ProfileSettings["oauth"] {
  if (flags.tokenEndpoint !== undefined) return endpointOf(flags, flags.tokenEndpoint);
  const stray = [
    flags.audience && "--audience",
    flags.issuer && "--issuer",
    flags.tokenScope && "--token-scope",
    flags.clientAuth && "--client-auth",
  ].find(Boolean);
  if (stray) throw new Failure("usage", `${stray} needs --token-endpoint.`);
  return undefined;
}

async function secretOf(
  context: Context,
  { stdin, command, what }: { stdin?: true; command?: string; what: string },
): Promise<GivenSecret> {
  if (command !== undefined) {
    if (command.trim() === "") throw new Failure("usage", `The command that prints the ${what} is empty.`);
    return { command };
  }
  const isPiped = stdin === true && !context.output.interactive;
  return { secret: isPiped ? await context.secrets.fromStdin(what) : await askSecret(context, what, stdin) };
}

export function askSecret(context: Context, what: string, isFlagTyped = false): Promise<string> {
  const flag = isFlagTyped
    ? undefined
    : what === "API key"
      ? "--api-key-stdin or --api-key-command"
      : "--client-secret-stdin or --client-secret-command";
  return context.output.ask(what, { hidden: true, flag });
}

function refuseBoth(flags: ProfileFlags, one: keyof ProfileFlags, other: keyof ProfileFlags): void {
  if (flags[one] === undefined || flags[other] === undefined) return;
  const flagNames = [one, other].map(
    (name) => `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`,
  );
  throw new Failure("usage", `${flagNames.join(" and ")} contradict each other.`, { hint: "Keep one of them." });
}

/** If the profile lacks its key's id, a rotation of the key could lock the profile out. */
export async function learnKeyId(context: Context, profile: Profile): Promise<Profile> {
  const { credential, legacy, name } = profile;
  if (credential?.kind !== "api_key" || legacy === undefined) return profile;
  const key = await findProfileKey(context, profile);
  const why = credential.key_id === undefined ? ", the only key that may list keys" : "";
  context.output.note(
    key === undefined
      ? `The id of this key is not known. Set it in profile ${name} with --api-key-id, so that a rotation cannot lock the profile out.`
      : `The profile uses the key ${key.id}${key.words}${why}.`,
  );
  if (key === undefined || credential.key_id !== undefined) return profile;
  return (await context.profiles.edit(name, { key: { key_id: key.id } }, { over: credential })).profile;
}
