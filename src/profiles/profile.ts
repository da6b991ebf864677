// Types and rules of profiles, without the schema library, which takes long to load.
import type { Credential, LegacyCredential } from "../api/auth/credential.ts";
import { Failure } from "../errors.ts";
import { areSameOrigins, originOf } from "./address.ts";
import type { OAuthSettings, Profile, Region, SecretFields } from "./profile-file.ts";
import { type NextCommand, type NextStep, shell, flags, settingOf } from "../next-step.ts";

export type { Credential, LegacyCredential } from "../api/auth/credential.ts";
export type {
  BasicStyle,
  LegacyAccess,
  OAuthSettings,
  Profile,
  Region,
  StoredCredential,
} from "./profile-file.ts";

/**
 * The origins that a profile's credential is sent to: the base URL's, preceded by the token endpoint's for client
 * credentials. A stored credential is used only while its origins are unchanged.
 */
export function originsOf(profile: {
  readonly base_url: string;
  readonly credential: { readonly kind: string; readonly token_endpoint?: unknown } | null;
}): string[] {
  const { credential } = profile;
  const base = originOf(profile.base_url);
  return typeof credential?.token_endpoint === "string" ? [originOf(credential.token_endpoint), base] : [base];
}

export type SecretSource =
  | { readonly from: "stored"; readonly ref: string; readonly kept: "keychain" | "file" }
  | { readonly from: "command"; readonly command: string }
  /** Instead of a secret, the service gets an assertion. A command prints it, or integ signs it with a private key. */
  | { readonly from: "assertion"; readonly command: string }
  | { readonly from: "key_file"; readonly path: string };

export function secretSourceOf(credential: SecretFields): SecretSource {
  const { source, command, key_file, ref, kept } = credential;
  if (source === "command" && command !== undefined) return { from: "command", command };
  if (source === "assertion_command" && command !== undefined) return { from: "assertion", command };
  if (source === "key_file" && key_file !== undefined) return { from: "key_file", path: key_file };
  if (ref !== undefined && kept !== undefined) return { from: "stored", ref, kept };
  throw new Error("a stored credential without its source passed the schema");
}

export function credentialPlace(
  profile: Profile,
): "keychain" | "file" | "command" | "assertion command" | "key file" | null {
  if (profile.credential === null) return null;
  const source = secretSourceOf(profile.credential);
  if (source.from === "stored") return source.kept;
  return ({ command: "command", assertion: "assertion command", key_file: "key file" } as const)[source.from];
}

export function commandForCredential({ name, credential }: Profile): NextCommand {
  const source = credential === null ? undefined : secretSourceOf(credential);
  if (source?.from === "assertion")
    return shell`integ profiles edit ${name} ${flags.clientAssertionCommand} ${source.command}`;
  if (source?.from === "key_file") return shell`integ profiles edit ${name} ${flags.clientKeyFile} ${source.path}`;
  const flag = credential?.kind === "client_credentials" ? flags.clientSecretStdin : flags.apiKeyStdin;
  return shell`integ profiles edit ${name} ${flag}`;
}

export type Contract = "v1" | "legacy";

/** Does not read the secret. @returns undefined if the settings permit the contract */
export function missingCredentialOf(profile: Profile, contract: Contract): Failure | undefined {
  if (contract === "v1" && profile.credential === null) return noCredential(profile.name);
  if (contract === "legacy" && profile.legacy === undefined) return noLegacy(profile.name);
  const now = originsOf(profile);
  const given = profile.credential_origins;
  if (areSameOrigins(given, now)) return undefined;
  return new Failure(
    "auth",
    `The credential of profile ${profile.name} was given for ${given.join(" and ") || "no address"}.`,
    {
      meaning: `It is not sent to ${now.join(" and ")}. If the new address is right, give the credential again.`,
      nextCommand: commandForCredential(profile),
    },
  );
}

export function noCredential(name: string): Failure {
  const step: NextStep =
    name === "env"
      ? { hint: "Set INTEG_API_KEY." }
      : { nextCommand: shell`integ profiles edit ${name} ${flags.apiKeyStdin}` };
  return new Failure("auth", `Profile ${name} has no credential for /v1.`, step);
}

function noLegacy(name: string): Failure {
  return new Failure("auth", `Profile ${name} does not define how its key becomes a legacy bearer token.`, {
    meaning: "The API document does not show that exchange: name an endpoint or a command.",
    ...settingOf(name, flags.accessTokenEndpoint),
  });
}

export function oauthOf(profile: Profile): OAuthSettings | undefined {
  const { credential } = profile;
  if (credential?.kind !== "client_credentials") return profile.oauth;
  const { token_endpoint, audience, issuer, scope, client_auth } = credential;
  return { token_endpoint, client_auth, audience, issuer, scope };
}

export interface StoredProfiles {
  readonly default: string | null;
  get(name: string): Profile | undefined;
  list(): readonly Profile[];
}

export type ProfileSource = "flag" | "policy" | "environment" | "INTEG_PROFILE" | "default";

export interface ProfileFacts {
  /** Permanent id: the stored profile's own, `env:<origin>`, or `sandbox:<region>`. */
  readonly id: string;
  readonly name: string;
  readonly source: ProfileSource;
  readonly region: Region;
  /** Without a final slash. `sandbox://us` and `sandbox://eu` are logical: only the running sandbox knows its port. */
  readonly baseUrl: string;
  readonly organizationId?: string;
  readonly serviceVersion?: string;
  readonly oauth?: OAuthSettings;
  readonly notes: readonly string[];
}

/** Reads no secret before `credential` or `legacy` is called. */
export interface ActiveProfile extends ProfileFacts {
  /** The resource id of the profile's own access key, if it is known. */
  readonly keyId?: string;
  /** The client id of client credentials, which is the same on every machine. */
  readonly principal?: string;
  /** How to exchange a key's secret for a token; absent if not configured. The sandbox's endpoint has no `url`. */
  readonly keyExchange?: { readonly kind: "command" } | { readonly kind: "endpoint"; readonly url?: string };
  /** @throws Failure `auth` if the credential is missing, unreadable or for another origin */
  credential(): Promise<Credential>;
  /**
   * @throws Failure `usage` without an organization id; `auth` if no token or token exchange is configured, or if the
   * exchanged API key is missing, unreadable or for another origin
   */
  legacy(): Promise<LegacyCredential>;
}
