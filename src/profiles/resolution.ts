// Chooses the profile of a command without reading a secret. Address and credential always come from the same source.
import { Failure, invalidValue } from "../errors.ts";
import { checkBaseUrl, checkTypedBaseUrl, checkEndpoint, originOf } from "./address.ts";
import {
  oauthOf,
  type Profile,
  type ProfileFacts,
  type ProfileSource,
  type Region,
  type StoredProfiles,
  type OAuthSettings,
} from "./profile.ts";
import { shell, flags } from "../next-step.ts";
import { organizationIdPattern } from "./names.ts";

export interface Resolution extends ProfileFacts {
  readonly from:
    | { readonly kind: "environment" }
    | { readonly kind: "stored"; readonly profile: Profile }
    | { readonly kind: "sandbox" };
}

export interface ResolutionInput {
  readonly flagProfile?: string;
  readonly isOfPolicy?: boolean;
  readonly env: Environment;
  /** Read only if needed: a damaged store does not affect `-p sandbox` or a profile from the environment. */
  readonly stored: StoredProfiles;
}

export const sandboxRegions: ReadonlyMap<string, Region> = new Map([
  ["sandbox", "us"],
  ["sandbox-eu", "eu"],
]);

function unknownProfile(name: string, source: ProfileSource, stored: StoredProfiles): Failure {
  const known = [...stored.list().map((profile) => profile.name), ...sandboxRegions.keys()];
  const origin = {
    flag: `named by ${flags.profile}`,
    policy: "named by the policy file",
    environment: `named by ${flags.profile}`,
    INTEG_PROFILE: "named by INTEG_PROFILE",
    default: "the default",
  };
  return new Failure("usage", `Profile "${name}" not found (${origin[source]}).`, {
    meaning: `Profiles: ${known.join(", ")}.`,
    nextCommand: shell`integ profiles list`,
  });
}

/** With `INTEG_BASE_URL`, `INTEG_ORGANIZATION_ID` belongs to the profile `env`, so it is ignored here. */
function organizationOf(profile: Profile, env: Environment): { organizationId?: string; notes: string[] } {
  const fromEnv = variable(env, "INTEG_BASE_URL") === undefined ? organizationIdFrom(env) : undefined;
  const own = profile.organization_id?.toLowerCase();
  if (own === undefined) return { organizationId: fromEnv, notes: [] };
  const differs = fromEnv !== undefined && fromEnv !== own;
  return {
    organizationId: own,
    notes: differs ? [`INTEG_ORGANIZATION_ID is not used: profile ${profile.name} has its own organization.`] : [],
  };
}

function storedResolution(name: string, source: ProfileSource, { env, stored }: ResolutionInput): Resolution {
  const region = sandboxRegions.get(name);
  if (region !== undefined) {
    const id = `sandbox:${region}`;
    return { id, name, source, region, baseUrl: `sandbox://${region}`, from: { kind: "sandbox" }, notes: [] };
  }
  const profile = stored.get(name);
  if (profile === undefined) throw unknownProfile(name, source, stored);
  return {
    id: profile.id,
    name,
    source,
    region: profile.region,
    baseUrl: checkBaseUrl(profile.base_url),
    ...organizationOf(profile, env),
    serviceVersion: profile.service_version,
    oauth: oauthOf(profile),
    from: { kind: "stored", profile },
  };
}

function withUnused(resolution: Resolution, names: readonly string[], why: string): Resolution {
  if (names.length === 0) return resolution;
  const note = `${names.join(", ")} ${names.length > 1 ? "are" : "is"} not used: ${why}.`;
  return { ...resolution, notes: [...resolution.notes, note] };
}

/**
 * Resolves the profile that `-p` or the policy file names. Except for `env`, the environment's address and credentials
 * are ignored, and a note says so.
 */
function fromFlag(name: string, input: ResolutionInput): Resolution {
  if (name === "env") {
    const resolution = fromEnvironment(input, "flag");
    if (resolution !== undefined) return resolution;
    throw new Failure("usage", "The profile env is the environment's, and INTEG_BASE_URL is not set.", {
      hint: "Set INTEG_BASE_URL and INTEG_REGION, and the credential beside them.",
    });
  }
  const unused = profileVariablesIn(input.env);
  const resolution = storedResolution(name, input.isOfPolicy ? "policy" : "flag", input);
  return withUnused(resolution, unused, `${flags.profile} ${name} was given`);
}

function fromEnvironment({ env }: ResolutionInput, source: ProfileSource): Resolution | undefined {
  const profile = environmentProfile(env);
  if (profile === undefined) return undefined;
  const ignoredProfile = source === "environment" ? variable(env, "INTEG_PROFILE") : undefined;
  return {
    ...profile,
    id: environmentProfileId(profile.baseUrl),
    name: "env",
    source,
    from: { kind: "environment" },
    notes:
      ignoredProfile === undefined || ignoredProfile === "env"
        ? []
        : ["INTEG_PROFILE is not used: INTEG_BASE_URL and a credential are set."],
  };
}

/** Without `INTEG_BASE_URL`, the other address variables are ignored, and a note says so. */
function fromProfiles(input: ResolutionInput): Resolution {
  const { env, stored } = input;
  const unused = profileVariablesIn(env);
  const chosen = variable(env, "INTEG_PROFILE");
  const name = chosen ?? stored.default ?? undefined;
  if (name === undefined) throw noProfileFailure(stored);
  const resolution = storedResolution(name, chosen === undefined ? "default" : "INTEG_PROFILE", input);
  return withUnused(resolution, unused, "INTEG_BASE_URL is not set");
}

function noProfileFailure(stored: StoredProfiles): Failure {
  const [first] = stored.list();
  if (first !== undefined) {
    return new Failure("usage", "No default profile is set, and no profile was named.", {
      nextCommand: shell`integ profiles use ${first.name}`,
    });
  }
  return new Failure("auth", "No profiles are configured.", {
    meaning: `To try integ without an account, add ${flags.profile} sandbox to the command.`,
    nextCommand: shell`integ help profiles add`,
    hint: "Add a profile with integ profiles add.",
  });
}

/** Replaces the stored profiles if `needsStored` is false. */
export const emptyStore: StoredProfiles = { default: null, list: () => [], get: () => undefined };

/** False if the choice does not need the stored profiles, which take long to read. */
export function needsStored({ flagProfile, env }: Pick<ResolutionInput, "flagProfile" | "env">): boolean {
  if (flagProfile === "env") return false;
  if (flagProfile === undefined && variable(env, "INTEG_BASE_URL") !== undefined) return false;
  const chosen = flagProfile ?? variable(env, "INTEG_PROFILE");
  return chosen === undefined || !sandboxRegions.has(chosen);
}

export function needsChoice({ flagProfile, env, stored }: ResolutionInput): boolean {
  const isChosen = [flagProfile, variable(env, "INTEG_BASE_URL"), variable(env, "INTEG_PROFILE"), stored.default].some(
    (name) => name !== undefined && name !== null,
  );
  return !isChosen && credentialVariablesIn(env).length === 0 && stored.list().length > 0;
}

/**
 * Chooses `-p`, else `INTEG_BASE_URL` with a credential (profile `env`), else `INTEG_PROFILE`, else the default.
 * @throws Failure `usage` as `environmentProfile`, and for a credential variable without `INTEG_BASE_URL`, an unknown
 * name or a missing default; `auth` if no profile is configured
 */
export function resolveProfile(input: ResolutionInput): Resolution {
  if (input.flagProfile !== undefined) return fromFlag(input.flagProfile, input);
  const environment = fromEnvironment(input, "environment");
  if (environment !== undefined) return environment;
  const unusedVariables = credentialVariablesIn(input.env);
  if (unusedVariables.length > 0) {
    const are = unusedVariables.length > 1 ? "are" : "is";
    throw new Failure("usage", `${unusedVariables.join(" and ")} ${are} set, but INTEG_BASE_URL is not.`, {
      meaning: "A credential is only used with its own address, never with that of a profile.",
      hint: `Set INTEG_BASE_URL and INTEG_REGION, or choose a profile with ${flags.profile} <name>.`,
    });
  }
  return fromProfiles(input);
}

// Reads the profile that environment variables define (§5), as CI jobs use it.

export type Environment = Readonly<Record<string, string | undefined>>;

const credentialVariables = [
  "INTEG_API_KEY",
  "INTEG_CLIENT_ID",
  "INTEG_CLIENT_SECRET",
  "INTEG_CLIENT_ASSERTION_COMMAND",
  "INTEG_ACCESS_TOKEN",
] as const;

/** Variables that have an effect only with `INTEG_BASE_URL`. */
const companionVariables = ["INTEG_REGION", "INTEG_TOKEN_ENDPOINT", "INTEG_AUDIENCE", "INTEG_TOKEN_SCOPE"] as const;

/**
 * An empty variable counts as unset, because CI passes missing secrets as empty variables.
 * @throws Failure `usage` for a line break or another control character; the message omits the value
 */
export function variable(env: Environment, name: string): string | undefined {
  const value = env[name];
  if (value === undefined || value === "") return undefined;
  if (/[\u0000-\u001f\u007f-\u009f\uFEFF]/.test(value)) {
    throw new Failure("usage", `${name} contains a line break, a byte order mark or another control character.`, {
      meaning: "A value read from a file often keeps the newline at its end.",
    });
  }
  return value;
}

export function credentialVariablesIn(env: Environment): string[] {
  return credentialVariables.filter((name) => variable(env, name) !== undefined);
}

export function profileVariablesIn(env: Environment): string[] {
  return ["INTEG_BASE_URL", ...credentialVariables, ...companionVariables].filter(
    (name) => variable(env, name) !== undefined,
  );
}

export interface EnvironmentProfile {
  readonly baseUrl: string;
  readonly region: Region;
  readonly organizationId?: string;
  readonly oauth?: OAuthSettings;
}

/** @returns the UUID in lower case (§4.4, RFC 9562 §4); undefined if unset. @throws Failure `usage` for other text */
export function organizationIdFrom(env: Environment): string | undefined {
  const value = variable(env, "INTEG_ORGANIZATION_ID");
  if (value !== undefined && !organizationIdPattern.test(value)) {
    throw invalidValue("INTEG_ORGANIZATION_ID", undefined, {
      why: "it is not a UUID",
      hint: "Write it like 3f2b8c1e-9a4d-4e6f-8b7a-0c1d2e3f4a5b.",
    });
  }
  return value?.toLowerCase();
}

function checkCredentials(env: Environment): void {
  const present = new Set(credentialVariablesIn(env));
  if (present.size === 0) {
    const empty = credentialVariables.filter((name) => env[name] === "");
    throw new Failure("usage", "INTEG_BASE_URL is set without a credential.", {
      meaning:
        empty.length > 0
          ? `${empty.join(" and ")} ${empty.length > 1 ? "are" : "is"} set but empty.`
          : "An address and its credential come from the same place: the environment or a profile, never one of each.",
      hint: "Set INTEG_API_KEY, or INTEG_CLIENT_ID with INTEG_CLIENT_SECRET and INTEG_TOKEN_ENDPOINT, or unset INTEG_BASE_URL.",
    });
  }
  const proofs = ["INTEG_CLIENT_SECRET", "INTEG_CLIENT_ASSERTION_COMMAND"].filter((name) => present.has(name));
  const client = present.has("INTEG_CLIENT_ID") || proofs.length > 0;
  if (client && present.has("INTEG_API_KEY")) {
    throw new Failure(
      "usage",
      "INTEG_API_KEY and INTEG_CLIENT_ID or INTEG_CLIENT_SECRET are two credentials for /v1.",
      { hint: "Unset INTEG_API_KEY, or unset INTEG_CLIENT_ID and INTEG_CLIENT_SECRET." },
    );
  }
  if (proofs.length > 1)
    throw new Failure("usage", `${proofs.join(" and ")} are two ways for one client to authenticate.`, {
      hint: `Unset ${proofs.join(" or ")}.`,
    });
  if (!client) return;
  const missing = ["INTEG_CLIENT_ID", proofs[0] ?? "INTEG_CLIENT_SECRET", "INTEG_TOKEN_ENDPOINT"].filter(
    (name) => variable(env, name) === undefined,
  );
  if (missing.length > 0) {
    throw new Failure("usage", `OAuth client credentials in the environment lack ${missing.join(" and ")}.`, {
      hint: `Set ${missing.join(" and ")}.`,
    });
  }
}

function regionFrom(env: Environment): Region {
  const region = variable(env, "INTEG_REGION");
  if (region === "us" || region === "eu") return region;
  const details = {
    meaning: "INTEG_BASE_URL is the host of one region, and the journal records which one.",
    hint: "Set INTEG_REGION to us or eu.",
  } as const;
  throw region === undefined
    ? new Failure("usage", "INTEG_REGION is not set.", details)
    : invalidValue("INTEG_REGION", undefined, { why: "it is neither us nor eu", ...details });
}

/** @throws Failure `usage` for an invalid list of scopes (RFC 6749 §3.3) */
export function checkTokenScope(scope: string | undefined, what: string): string | undefined {
  if (scope === undefined || /^[!#-[\]-~]+(?: [!#-[\]-~]+)*$/.test(scope)) return scope;
  throw invalidValue(what, undefined, {
    why: "it is not a list of scopes",
    hint: "Write their names separated by single spaces.",
  });
}

function oauthFrom(env: Environment): OAuthSettings | undefined {
  const endpoint = variable(env, "INTEG_TOKEN_ENDPOINT");
  if (endpoint === undefined) return undefined;
  return {
    token_endpoint: checkEndpoint(endpoint, "INTEG_TOKEN_ENDPOINT"),
    client_auth: "client_secret_basic",
    audience: variable(env, "INTEG_AUDIENCE"),
    scope: checkTokenScope(variable(env, "INTEG_TOKEN_SCOPE"), "INTEG_TOKEN_SCOPE"),
  };
}

/**
 * @returns undefined without `INTEG_BASE_URL`
 * @throws Failure `usage` for a missing, ambiguous or incomplete credential, or an invalid variable
 */
export function environmentProfile(env: Environment): EnvironmentProfile | undefined {
  const address = variable(env, "INTEG_BASE_URL");
  if (address === undefined) return undefined;
  const baseUrl = checkTypedBaseUrl(address, "INTEG_BASE_URL=");
  checkCredentials(env);
  const organizationId = organizationIdFrom(env);
  const oauth = oauthFrom(env);
  return { baseUrl, region: regionFrom(env), organizationId, oauth };
}

/** The journal records this id, which is the same for all addresses of one origin. */
export function environmentProfileId(baseUrl: string): string {
  return `env:${originOf(baseUrl)}`;
}
