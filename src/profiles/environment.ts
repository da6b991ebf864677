// The profile that the environment spells out (CI, §5): which variables belong together, and what is missing. Pure.
import { Failure } from "../errors.ts";
import { checkTypedBaseUrl, checkEndpoint, originOf } from "./address.ts";
import { organizationIdPattern } from "./names.ts";
import type { OAuthSettings, Region } from "./profile.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Variables that are a credential or a part of one. */
const credentialVariables = ["INTEG_API_KEY", "INTEG_CLIENT_ID", "INTEG_CLIENT_SECRET", "INTEG_ACCESS_TOKEN"] as const;

/** Variables that only mean something beside `INTEG_BASE_URL`. */
const companionVariables = ["INTEG_REGION", "INTEG_TOKEN_ENDPOINT", "INTEG_AUDIENCE"] as const;

/** Variables whose value is a secret: no child process gets them. */
const secretVariables: ReadonlySet<string> = new Set(["INTEG_API_KEY", "INTEG_CLIENT_SECRET", "INTEG_ACCESS_TOKEN"]);

/**
 * The environment as a child process may see it: without our secrets, and without a journal address that
 * carries a password.
 */
export function withoutSecrets(env: Environment): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(env).filter(
      ([name, value]) => !secretVariables.has(name) && !(name === "INTEG_JOURNAL" && value?.includes("://")),
    ),
  );
}

/**
 * The value of a variable; an empty one counts as not set (a CI secret that does not exist is delivered as empty).
 * @throws Failure `usage` where it holds a line break or another control character; the value is never quoted
 */
export function variable(env: Environment, name: string): string | undefined {
  const value = env[name];
  if (value === undefined || value === "") return undefined;
  if (/[\p{Cc}\uFEFF]/u.test(value)) {
    throw new Failure("usage", `${name} contains a line break, a byte order mark or another control character.`, {
      meaning: "A value read from a file often keeps the newline at its end.",
    });
  }
  return value;
}

/** Names of the credential variables that are set. */
export function credentialVariablesIn(env: Environment): string[] {
  return credentialVariables.filter((name) => variable(env, name) !== undefined);
}

/** Names of the address and credential variables that are set: what `-p` leaves unused. */
export function profileVariablesIn(env: Environment): string[] {
  return ["INTEG_BASE_URL", ...credentialVariables, ...companionVariables].filter(
    (name) => variable(env, name) !== undefined,
  );
}

/** What the environment says, secrets left where they are. */
export interface EnvironmentProfile {
  readonly baseUrl: string;
  readonly region: Region;
  readonly organizationId?: string;
  readonly oauth?: OAuthSettings;
}

/** `INTEG_ORGANIZATION_ID`, checked (§4.4: a UUID, whose letters may be of either case: RFC 9562 §4). */
export function organizationIdFrom(env: Environment): string | undefined {
  const value = variable(env, "INTEG_ORGANIZATION_ID");
  if (value !== undefined && !organizationIdPattern.test(value)) {
    throw new Failure("usage", "INTEG_ORGANIZATION_ID is not a UUID.");
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
  const client = present.has("INTEG_CLIENT_ID") || present.has("INTEG_CLIENT_SECRET");
  if (client && present.has("INTEG_API_KEY")) {
    throw new Failure(
      "usage",
      "INTEG_API_KEY and INTEG_CLIENT_ID or INTEG_CLIENT_SECRET are two credentials for /v1.",
      { hint: "Unset INTEG_API_KEY, or unset INTEG_CLIENT_ID and INTEG_CLIENT_SECRET." },
    );
  }
  if (!client) return;
  const missing = ["INTEG_CLIENT_ID", "INTEG_CLIENT_SECRET", "INTEG_TOKEN_ENDPOINT"].filter(
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
  throw new Failure("usage", region === undefined ? "INTEG_REGION is not set." : "INTEG_REGION is neither us nor eu.", {
    meaning: "INTEG_BASE_URL is the host of one region, and the journal records which one.",
    hint: "Set INTEG_REGION to us or eu.",
  });
}

function oauthFrom(env: Environment): OAuthSettings | undefined {
  const endpoint = variable(env, "INTEG_TOKEN_ENDPOINT");
  if (endpoint === undefined) return undefined;
  const audience = variable(env, "INTEG_AUDIENCE");
  return {
    token_endpoint: checkEndpoint(endpoint, "INTEG_TOKEN_ENDPOINT"),
    client_auth: "client_secret_basic",
    audience,
  };
}

/**
 * The profile `env`, where `INTEG_BASE_URL` is set.
 * @throws Failure `usage` where the credential is missing, double or incomplete, or the region or an address is wrong
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

/** The id under which the journal keeps work of the environment's profile: the same for the same origin. */
export function environmentProfileId(baseUrl: string): string {
  return `env:${originOf(baseUrl)}`;
}
