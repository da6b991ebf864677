// Which profile a command acts as, and from where address and credential come: always the same source. Pure; no secret
// passes through here.
import { Failure } from "../errors.ts";
import { checkBaseUrl } from "./address.ts";
import {
  credentialVariablesIn,
  type Environment,
  environmentProfile,
  environmentProfileId,
  organizationIdFrom,
  profileVariablesIn,
  variable,
} from "./environment.ts";
import {
  oauthOf,
  type Profile,
  type ProfileFacts,
  type ProfileSource,
  type Region,
  type StoredProfiles,
} from "./profile.ts";
import { shell } from "../next-step.ts";

/** The chosen profile, and where its credential will come from. */
export interface Resolution extends ProfileFacts {
  readonly from:
    | { readonly kind: "environment" }
    | { readonly kind: "stored"; readonly profile: Profile }
    | { readonly kind: "sandbox" };
}

export interface ResolutionInput {
  /** The value of `-p`. */
  readonly flagProfile?: string;
  readonly env: Environment;
  /** Read only where it is needed: a broken store does not stop a command that the environment or `-p sandbox` serves. */
  readonly stored: StoredProfiles;
}

/** The profiles that always exist. */
export const sandboxRegions: ReadonlyMap<string, Region> = new Map([
  ["sandbox", "us"],
  ["sandbox-eu", "eu"],
]);

function unknownProfile(name: string, source: ProfileSource, stored: StoredProfiles): Failure {
  const known = [...stored.list().map((profile) => profile.name), ...sandboxRegions.keys()];
  const origin = {
    flag: "named by --profile",
    environment: "named by --profile",
    INTEG_PROFILE: "named by INTEG_PROFILE",
    default: "the default",
  };
  return new Failure("usage", `Profile "${name}" not found (${origin[source]}).`, {
    meaning: `Profiles: ${known.join(", ")}.`,
    nextCommand: shell`integ profiles list`,
  });
}

/** `INTEG_ORGANIZATION_ID` serves a profile that names no organization; one that does keeps its own. */
function organizationOf(profile: Profile, env: Environment): { organizationId?: string; notes: string[] } {
  const asked = variable(env, "INTEG_BASE_URL") === undefined ? organizationIdFrom(env) : undefined;
  const own = profile.organization_id?.toLowerCase();
  if (own === undefined) return { organizationId: asked, notes: [] };
  const differs = asked !== undefined && asked !== own;
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
  const oauth = oauthOf(profile);
  return {
    id: profile.id,
    name,
    source,
    region: profile.region,
    baseUrl: checkBaseUrl(profile.base_url),
    ...organizationOf(profile, env),
    serviceVersion: profile.service_version,
    oauth,
    from: { kind: "stored", profile },
  };
}

function withNotes(resolution: Resolution, ...notes: readonly string[]): Resolution {
  return { ...resolution, notes: [...resolution.notes, ...notes] };
}

function listed(names: readonly string[]): string {
  return `${names.join(", ")} ${names.length > 1 ? "are" : "is"} not used`;
}

/** `-p` wins over everything: the environment's address and credentials are ignored, and a note says so. */
function fromFlag(name: string, input: ResolutionInput): Resolution {
  if (name === "env") {
    const resolution = fromEnvironment(input, "flag");
    if (resolution !== undefined) return resolution;
    throw new Failure("usage", "The profile env is the environment's, and INTEG_BASE_URL is not set.", {
      hint: "Set INTEG_BASE_URL and INTEG_REGION, and the credential beside them.",
    });
  }
  const unused = profileVariablesIn(input.env);
  const resolution = storedResolution(name, "flag", input);
  return unused.length === 0 ? resolution : withNotes(resolution, `${listed(unused)}: --profile ${name} was given.`);
}

function fromEnvironment({ env }: ResolutionInput, source: ProfileSource): Resolution | undefined {
  const profile = environmentProfile(env);
  if (profile === undefined) return undefined;
  const passedOver = source === "environment" ? variable(env, "INTEG_PROFILE") : undefined;
  return {
    ...profile,
    id: environmentProfileId(profile.baseUrl),
    name: "env",
    source,
    from: { kind: "environment" },
    notes:
      passedOver === undefined || passedOver === "env"
        ? []
        : ["INTEG_PROFILE is not used: INTEG_BASE_URL and a credential are set."],
  };
}

/** Address variables without an address and a credential are reported; the profile's own values hold. */
function fromProfiles(input: ResolutionInput): Resolution {
  const { env, stored } = input;
  const unused = profileVariablesIn(env);
  const named = variable(env, "INTEG_PROFILE");
  const name = named ?? stored.default ?? undefined;
  if (name === undefined) throw nothingChosen(stored);
  const resolution = storedResolution(name, named === undefined ? "default" : "INTEG_PROFILE", input);
  return unused.length === 0 ? resolution : withNotes(resolution, `${listed(unused)}: INTEG_BASE_URL is not set.`);
}

function nothingChosen(stored: StoredProfiles): Failure {
  const [first] = stored.list();
  if (first !== undefined) {
    return new Failure("usage", "No default profile is set, and no profile was named.", {
      nextCommand: shell`integ profiles use ${first.name}`,
    });
  }
  return new Failure("auth", "No profiles are configured.", {
    meaning: "To try integ without an account, add --profile sandbox to the command.",
    nextCommand: shell`integ help profiles add`,
    hint: "Add a profile: integ profiles add <name> --region us|eu --base-url <url>.",
  });
}

/** What stands for the stored profiles where they have no say. */
export const noneStored: StoredProfiles = { default: null, list: () => [], get: () => undefined };

/** Whether the stored profiles have a say in the choice: reading them is a good part of a start. */
export function needsStored({ flagProfile, env }: Pick<ResolutionInput, "flagProfile" | "env">): boolean {
  if (flagProfile === "env") return false;
  if (flagProfile === undefined && variable(env, "INTEG_BASE_URL") !== undefined) return false;
  const named = flagProfile ?? variable(env, "INTEG_PROFILE");
  return named === undefined || !sandboxRegions.has(named);
}

/** Whether nothing says which of the stored profiles it is: a person can be asked then. */
export function leavesTheChoice({ flagProfile, env, stored }: ResolutionInput): boolean {
  const isSaid = [flagProfile, variable(env, "INTEG_BASE_URL"), variable(env, "INTEG_PROFILE"), stored.default].some(
    (name) => name !== undefined && name !== null,
  );
  return !isSaid && credentialVariablesIn(env).length === 0 && stored.list().length > 0;
}

/**
 * Chooses the profile, in this order: `-p`; else `INTEG_BASE_URL` with a credential (profile `env`); else
 * `INTEG_PROFILE`; else the default. Address and credential always come from the same place.
 * @throws Failure `usage` for a credential variable without `INTEG_BASE_URL`, two /v1 credentials, an address
 *   without a credential, an unknown name; `auth` where nothing is set up at all
 */
export function resolveProfile(input: ResolutionInput): Resolution {
  if (input.flagProfile !== undefined) return fromFlag(input.flagProfile, input);
  const environment = fromEnvironment(input, "environment");
  if (environment !== undefined) return environment;
  const stray = credentialVariablesIn(input.env);
  if (stray.length > 0) {
    const are = stray.length > 1 ? "are" : "is";
    throw new Failure("usage", `${stray.join(" and ")} ${are} set, but INTEG_BASE_URL is not.`, {
      meaning: "A credential is only used with its own address, never with that of a profile.",
      hint: "Set INTEG_BASE_URL and INTEG_REGION, or choose a profile with --profile <name>.",
    });
  }
  return fromProfiles(input);
}
