// `--secret-profile`: the secret becomes an existing profile's credential.
import { Failure } from "../errors.ts";
import { originOf } from "../profiles/address.ts";
import { editProfile, type NewCredential, type ProfileStores } from "../profiles/configure.ts";
import { oauthOf, type Profile } from "../profiles/profile.ts";
import type { ProfileStore } from "../profiles/store.ts";
import type { Issuer, OneTimeSecret, RecordOf, RememberedDestination, SingleDestinationPlace } from "./destination.ts";
import { type NextStep, shell, flags, settingOf } from "../next-step.ts";

export interface ProfileTarget {
  readonly name: string;
  /** What will come, if it is known: an OAuth client needs a token endpoint. */
  readonly yields?: OneTimeSecret["kind"];
}

export interface ProfileTools {
  readonly stores: ProfileStores;
  readonly issuedBy?: Issuer;
  readonly note?: (text: string) => void;
}

const anotherProfile: NextStep = { hint: "Name another destination for the secret." };

function refuse(name: string, why: string, step: NextStep = anotherProfile): Failure {
  return new Failure("usage", `The secret cannot become the credential of profile ${name}: ${why}.`, step);
}

/** The profile, if it can take what will come. */
function checkedProfile(
  name: string,
  yields: OneTimeSecret["kind"] | undefined,
  { stores, issuedBy }: ProfileTools,
): Profile {
  if (name === "env") throw refuse(name, "it is the environment's");
  if (name === "sandbox" || name === "sandbox-eu") throw refuse(name, "its credentials are its own");
  const profile = stores.store.get(name);
  if (profile === undefined) throw refuse(name, "it does not exist", { nextCommand: shell`integ profiles list` });
  if (issuedBy !== undefined) refuseForeign(profile, issuedBy);
  if (yields === "oauth_client" && oauthOf(profile) === undefined) {
    throw refuse(name, "it has no token endpoint", settingOf(name, flags.tokenEndpoint));
  }
  return profile;
}

function refuseForeign(profile: Profile, issuer: Issuer): void {
  const [here, there] = [originOf(profile.base_url), originOf(issuer.baseUrl)];
  if (here !== there) throw refuse(profile.name, `it belongs to ${here}, and ${there} issues the secret`);
  const [own, other] = [profile.organization_id?.toLowerCase(), issuer.organizationId?.toLowerCase()];
  if (own !== undefined && other !== undefined && own !== other)
    throw refuse(profile.name, "it is another organization's");
}

function credentialFor(profile: Profile, secret: OneTimeSecret): NewCredential {
  if (secret.kind === "access_key") {
    const style = profile.credential?.kind === "api_key" ? profile.credential.basic_style : "apikey-user";
    return { kind: "api_key", basic_style: style, key_id: secret.id, secret: secret.secret };
  }
  const oauth = oauthOf(profile);
  if (oauth === undefined || secret.clientId === undefined) {
    throw refuse(profile.name, oauth === undefined ? "it has no token endpoint" : "the client has no client id");
  }
  const { token_endpoint, audience, issuer, scope, client_auth } = oauth;
  return {
    kind: "client_credentials",
    client_id: secret.clientId,
    secret: secret.secret,
    token_endpoint,
    client_auth,
    audience,
    issuer,
    scope,
  };
}

/** A stored profile as the place for a secret. */
export function profileDestination({ name, yields }: ProfileTarget, tools: ProfileTools): SingleDestinationPlace {
  const { stores, note } = tools;
  let prepared: string | undefined;
  const recordOf = (profileId = ""): RecordOf<"profile"> => ({ kind: "profile", name, profileId });
  return {
    isStdout: false,
    record: recordOf(stores.store.get(name)?.id),
    async check() {
      return recordOf(checkedProfile(name, yields, tools).id);
    },
    async prepare() {
      const { id } = checkedProfile(name, yields, tools);
      await stores.credentials.tryOut();
      prepared = id;
      return recordOf(id);
    },
    async deliver(secret) {
      try {
        const profile = checkedProfile(name, secret.kind, tools);
        if (prepared !== undefined && profile.id !== prepared) throw refuse(name, "it is another profile now");
        const { notes } = await editProfile(stores, name, { credential: credentialFor(profile, secret) });
        for (const text of notes) note?.(text);
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        throw new Failure("undelivered", error.message, error.details);
      }
    },
    async release() {},
  };
}

/** A profile that a journal entry remembers. */
export function rememberedProfile(
  record: RecordOf<"profile">,
  store: () => Promise<ProfileStore>,
): RememberedDestination {
  return {
    async completeDelivery(facts) {
      const profile = (await store()).get(record.name);
      if (profile?.id !== record.profileId || profile.credential === null) return false;
      const { credential } = profile;
      if (credential.kind === "client_credentials")
        return facts.clientId !== undefined && credential.client_id === facts.clientId;
      return facts.id !== undefined && credential.key_id === facts.id;
    },
    removeReserve: () => {},
    reread: async () => undefined,
  };
}
