// `--secret-profile`: makes the secret the credential of an existing profile.
import { Failure } from "../errors.ts";
import { createHash } from "node:crypto";
import type { SecretDigests } from "../journal/keys.ts";
import { originOf } from "../profiles/address.ts";
import { editProfile, type NewCredential, type ProfileStores } from "../profiles/configure.ts";
import type { Credentials } from "../profiles/credentials.ts";
import { oauthOf, type Profile, secretSourceOf } from "../profiles/profile.ts";
import { overwriteFound } from "./delivered-secret.ts";
import {
  type Delivery,
  type DestinationOption,
  type Found,
  hasContentId,
  type Issuer,
  contentId,
  type MayReplace,
  type OneTimeSecret,
  type RecordOf,
  type RememberedDestination,
  type SingleDestinationPlace,
  type SingleRecord,
} from "./destination.ts";
import type { MachineId } from "../disk/machine-id.ts";
import { type NextStep, shell, flags, settingOf } from "../next-step.ts";

export interface ProfileTarget extends Omit<Extract<DestinationOption, { kind: "profile" }>, "kind"> {
  readonly yields?: OneTimeSecret["kind"];
}

export interface ProfileTools {
  readonly stores: ProfileStores;
  readonly digests: SecretDigests;
  readonly machine: MachineId;
  readonly issuedBy?: Issuer;
  readonly note?: (text: string) => void;
}

const otherDestinationStep: NextStep = { hint: "Name another destination for the secret." };

function refuse(name: string, why: string, step: NextStep = otherDestinationStep): Failure {
  return new Failure("usage", `The secret cannot become the credential of profile ${name}: ${why}.`, step);
}

function targetProfile(
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
  const [target, source] = [originOf(profile.base_url), originOf(issuer.baseUrl)];
  if (target !== source) throw refuse(profile.name, `it belongs to ${target}, and ${source} issues the secret`);
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

/** A secret that integ does not store is identified by a digest of its source, such as a command. */
async function foundIn({ credential, ...profile }: Profile, credentials: Credentials): Promise<Found> {
  if (credential === null) return { is: "absent" };
  const of = credential.kind === "client_credentials" ? credential.client_id : credential.key_id;
  const source = secretSourceOf(credential);
  if (source.from !== "stored")
    return {
      is: "hidden",
      version: createHash("sha256").update(JSON.stringify(source)).digest("hex").slice(0, 16),
      of,
    };
  try {
    return { is: "text", text: await credentials.read(source, profile.credential_origins), of };
  } catch (error) {
    // A credential counts as content even if its stored secret is damaged or missing.
    if (error instanceof Failure && error.kind === "auth") return { is: "hidden", version: source.ref, of };
    throw error;
  }
}

export function profileDestination(target: ProfileTarget, tools: ProfileTools): SingleDestinationPlace {
  return new ProfileDestination(target, tools);
}

class ProfileDestination implements SingleDestinationPlace {
  readonly isStdout = false;
  readonly #target: ProfileTarget;
  readonly #tools: ProfileTools;
  #isConsented = false;
  record: RecordOf<"profile">;

  constructor(target: ProfileTarget, tools: ProfileTools) {
    const { name, profileId = tools.stores.store.get(name)?.id ?? "", own, consent } = target;
    this.#target = target;
    this.#tools = tools;
    this.record = { kind: "profile", name, profileId, own, consent };
  }

  async check(): Promise<RecordOf<"profile">> {
    await this.#checkAndRecord(this.#target.yields);
    return this.record;
  }

  async prepare(_work: string, { may }: { readonly may?: MayReplace } = {}): Promise<RecordOf<"profile">> {
    const { stores, machine } = this.#tools;
    const profile = await this.#checkAndRecord(this.#target.yields);
    await may?.(this.record, await foundIn(profile, stores.credentials));
    await stores.credentials.testWrite();
    this.record = { ...this.record, machine: machine.make() };
    return this.record;
  }

  /** `--force` covers only the credential at the first check. */
  async #checkAndRecord(yields: OneTimeSecret["kind"] | undefined): Promise<Profile> {
    const { name, profileId, force } = this.#target;
    const { stores, digests, machine } = this.#tools;
    const profile = targetProfile(name, yields, this.#tools);
    if (profile.id !== (profileId ?? (this.record.profileId || profile.id)))
      throw refuse(name, "it is another profile than the requested one");
    this.record = { ...this.record, profileId: profile.id, machine: machine.find() };
    if (force === true && !this.#isConsented)
      this.record = { ...this.record, consent: contentId(await foundIn(profile, stores.credentials), digests) };
    this.#isConsented = true;
    return profile;
  }

  async deliver(secret: OneTimeSecret, { record, may }: Delivery<SingleRecord>): Promise<void> {
    const { stores, digests, note } = this.#tools;
    const { name } = this.#target;
    try {
      let profile = await this.#checkAndRecord(secret.kind);
      this.record = { ...this.record, proof: digests.of(secret.secret) };
      await record(this.record);
      await overwriteFound(`profile ${name}`, {
        look: async () => foundIn((profile = await this.#checkAndRecord(secret.kind)), stores.credentials),
        may: (found) => may(this.record, found),
        write: async () => {
          try {
            const credential = credentialFor(profile, secret);
            const { notes } = await editProfile(stores, name, { credential }, { over: profile.credential });
            for (const text of notes) note?.(text);
            return true;
          } catch (error) {
            if (error instanceof Failure && error.kind === "conflict") return false;
            throw error;
          }
        },
      });
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      throw new Failure(error.kind === "conflict" ? "conflict" : "undelivered", error.message, error.details);
    }
  }

  async release(): Promise<void> {}
}

export function rememberedProfile(
  { name, profileId, proof }: RecordOf<"profile">,
  { stores, digests }: { readonly stores: () => Promise<ProfileStores>; readonly digests: SecretDigests },
): RememberedDestination {
  const reread = async (): Promise<string | undefined> => {
    if (proof === undefined) return undefined;
    const { store, credentials } = await stores();
    const profile = store.get(name);
    if (profile === undefined || profile.id !== profileId) return undefined;
    const found = await foundIn(profile, credentials);
    return found.is === "text" && hasContentId(found, proof, digests) ? found.text : undefined;
  };
  return { completeDelivery: async () => (await reread()) !== undefined, removeReserve: () => {}, reread };
}
