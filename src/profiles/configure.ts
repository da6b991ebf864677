// Adds, changes and removes profiles and their secrets in a crash-safe order: save the new secret under a new name,
// switch profiles.json atomically, then remove the old secret.
import { Failure } from "../errors.ts";
import { areSameOrigins, checkBaseUrl, checkEndpoint, originOf } from "./address.ts";
import type { Credentials, SavedSecret } from "./credentials.ts";
import { checkProfileName, nameTaken } from "./names.ts";
import {
  type BasicStyle,
  type LegacyAccess,
  oauthOf,
  type OAuthSettings,
  originsOf,
  type Profile,
  type Region,
  secretSourceOf,
  type StoredCredential,
} from "./profile.ts";
import type { ProfileStore } from "./store.ts";

export type GivenSecret = { readonly secret: string } | { readonly command: string };

export type GivenProof = GivenSecret | { readonly assertion_command: string } | { readonly key_file: string };

export type NewCredential =
  | (GivenSecret & { readonly kind: "api_key"; readonly basic_style: BasicStyle; readonly key_id?: string })
  | (GivenProof & { readonly kind: "client_credentials"; readonly client_id: string } & NewOAuthSettings);

export type NewOAuthSettings = Pick<OAuthSettings, "token_endpoint" | "audience" | "issuer" | "scope" | "client_auth">;

/** Settings of a profile. In a change, an absent key keeps the old value, and null removes it. */
export interface ProfileSettings {
  readonly region?: Region;
  readonly base_url?: string;
  readonly organization_id?: string | null;
  readonly service_version?: string | null;
  readonly oauth?: NewOAuthSettings | null;
  readonly legacy?: LegacyAccess | null;
  readonly journal?: string | null;
  readonly journal_key_command?: string | null;
  readonly escrow?: string[] | null;
  readonly destinations?: { readonly allow: string[] } | null;
  readonly credential?: NewCredential | null;
  /** Changes facts about the current API key, not its secret; ignored for other credentials. */
  readonly key?: { readonly basic_style?: BasicStyle; readonly key_id?: string | null };
}

export interface ProfileStores {
  readonly store: ProfileStore;
  readonly credentials: Credentials;
}

export interface ConfiguredProfile {
  readonly profile: Profile;
  readonly notes: readonly string[];
}

/** Client credentials have a copy of the token exchange's settings, which changes too. */
function patched(profile: Profile, settings: ProfileSettings): Profile {
  const next: Profile = { ...profile };
  if (settings.region !== undefined) next.region = settings.region;
  if (settings.base_url !== undefined) next.base_url = checkBaseUrl(settings.base_url);
  for (const key of [
    "organization_id",
    "service_version",
    "oauth",
    "legacy",
    "journal",
    "journal_key_command",
    "escrow",
    "destinations",
  ] as const) {
    const value = settings[key];
    if (value === undefined) continue;
    if (value === null) delete next[key];
    else Object.assign(next, { [key]: value });
  }
  if (settings.oauth && next.credential?.kind === "client_credentials") {
    const { audience, issuer, scope } = settings.oauth;
    next.credential = { ...next.credential, ...settings.oauth, audience, issuer, scope };
  }
  if (settings.key && next.credential?.kind === "api_key") {
    const { key_id = next.credential.key_id, basic_style = next.credential.basic_style } = settings.key;
    const { key_id: _before, ...credential } = next.credential;
    next.credential = { ...credential, basic_style, key_id: key_id ?? undefined };
  }
  return next;
}

/**
 * Removes settings that were given for the old address. The credential is removed if its origins change. If the base
 * URL has another origin, the token endpoint, which receives new clients' secrets, and the legacy token settings are
 * removed too. Settings that the same change sets are kept.
 */
function withoutOldAddress(
  before: Profile,
  after: Profile,
  settings: ProfileSettings,
): { profile: Profile; notes: string[] } {
  const profile: Profile = { ...after };
  const notes: string[] = [];
  const { credential_origins: given, name } = before;
  const host = originOf(before.base_url);
  const hasMoved = host !== originOf(after.base_url);
  if (after.credential !== null && !areSameOrigins(given, originsOf(after))) {
    Object.assign(profile, { credential: null, credential_origins: [] });
    if (!settings.credential) notes.push(`The credential of profile ${name} was given for ${given.join(" and ")}`);
  }
  if (hasMoved && settings.oauth === undefined && settings.credential?.kind !== "client_credentials") {
    const oauth = oauthOf(before);
    delete profile.oauth;
    if (oauth !== undefined) notes.push(`The ${namesOf(oauth)} of profile ${name} was given for ${host}`);
  }
  if (hasMoved && settings.legacy === undefined && before.legacy !== undefined) {
    delete profile.legacy;
    notes.push(`The legacy token settings of profile ${name} were given for ${host}`);
  }
  return { profile, notes: notes.map((note) => `${note}: removed.`) };
}

function namesOf({ audience, issuer, scope }: OAuthSettings): string {
  const more = Object.entries({ audience, issuer, scope }).flatMap(([name, value]) =>
    value === undefined ? [] : name,
  );
  return more.length === 0 ? "token endpoint" : `token endpoint (with its ${more.join(" and ")})`;
}

/** Client credentials contain the token endpoint; if an API key replaces them, the profile keeps the endpoint. */
function withCredential(profile: Profile, credential: StoredCredential | null): Profile {
  const oauth = oauthOf(profile);
  const next: Profile = { ...profile, credential, oauth };
  next.credential_origins = credential === null ? [] : originsOf(next);
  return next;
}

/** Headers cannot contain control characters, such as the newline at the end of a file. */
function checkSecret(secret: string, what: string): string {
  if (secret === "") throw new Failure("usage", `The ${what} is empty.`);
  if (/\p{Cc}/u.test(secret))
    throw new Failure("usage", `The ${what} contains a line break or another control character.`);
  if (/\p{Cs}/u.test(secret))
    throw new Failure(
      "usage",
      `The ${what} contains half a character (a lone surrogate), which a header cannot contain.`,
    );
  return secret;
}

function storedForm(credential: NewCredential, saved: SavedSecret | undefined): StoredCredential {
  if (credential.kind === "api_key") {
    const { kind, basic_style, key_id } = credential;
    return { kind, basic_style, key_id, ...storedSource(credential, saved) };
  }
  const { kind, client_id, token_endpoint, audience, issuer, scope, client_auth } = credential;
  return {
    kind,
    client_id,
    token_endpoint: checkEndpoint(token_endpoint, "token endpoint"),
    audience,
    issuer,
    scope,
    client_auth,
    ...storedProof(credential, saved),
  };
}

function storedSource(given: GivenSecret, saved: SavedSecret | undefined) {
  return "command" in given
    ? { source: "command" as const, command: given.command }
    : { source: "stored" as const, ref: saved!.ref, kept: saved!.kept };
}

function storedProof(given: GivenProof, saved: SavedSecret | undefined) {
  if ("assertion_command" in given) return { source: "assertion_command" as const, command: given.assertion_command };
  if ("key_file" in given) return { source: "key_file" as const, key_file: given.key_file };
  return storedSource(given, saved);
}

async function saveSecret(
  given: NewCredential | null | undefined,
  { baseUrl, credentials }: { baseUrl: string; credentials: Credentials },
): Promise<SavedSecret | undefined> {
  if (!given || !("secret" in given)) return undefined;
  const secret = checkSecret(given.secret, given.kind === "api_key" ? "API key" : "client secret");
  return credentials.save(secret, originsOf({ base_url: checkBaseUrl(baseUrl), credential: given }));
}

/**
 * Removes a saved secret if the step that assigns it to the profile fails. If the step fails after profiles.json has
 * changed, the secret stays, because the file may refer to it.
 */
async function removeOnFailure<T>(
  { store, credentials }: ProfileStores,
  { name, saved }: { readonly name: string; readonly saved: SavedSecret | undefined },
  step: () => Promise<T>,
): Promise<T> {
  try {
    return await step();
  } catch (error) {
    if (saved !== undefined && !mayReferTo(store, { name, ref: saved.ref })) await credentials.destroy(saved);
    throw error;
  }
}

function mayReferTo(store: ProfileStore, { name, ref }: { name: string; ref: string }): boolean {
  try {
    return store.get(name)?.credential?.ref === ref;
  } catch {
    return true;
  }
}

export async function addProfile(
  { store, credentials }: ProfileStores,
  settings: ProfileSettings & { readonly name: string; readonly region: Region; readonly base_url: string },
  options: { readonly use?: boolean } = {},
): Promise<ConfiguredProfile> {
  checkProfileName(settings.name);
  if (store.get(settings.name) !== undefined) throw nameTaken(settings.name);
  const { name, region, base_url } = settings;
  const bare: Profile = { id: crypto.randomUUID(), name, region, base_url, credential: null, credential_origins: [] };
  const blank = patched(bare, settings);
  const saved = await saveSecret(settings.credential, { baseUrl: base_url, credentials });
  return removeOnFailure({ store, credentials }, { name, saved }, async () => {
    const credential = settings.credential ? storedForm(settings.credential, saved) : null;
    const profile = await store.add(withCredential(blank, credential), options);
    return { profile, notes: saved?.note === undefined ? [] : [saved.note] };
  });
}

/**
 * A base URL with another origin removes and reports the old origin's settings.
 * @param options.over the credential that the change may replace
 * @throws Failure `usage` for an unknown profile or an invalid setting; `conflict` if the profile's credential is not
 * `over`; `failed` if another process changed the address for which a new secret was given
 */
export async function editProfile(
  { store, credentials }: ProfileStores,
  name: string,
  settings: ProfileSettings,
  { over }: { readonly over?: StoredCredential | null } = {},
): Promise<ConfiguredProfile> {
  const first = store.get(name);
  const baseUrl = settings.base_url ?? first?.base_url;
  const saved = baseUrl === undefined ? undefined : await saveSecret(settings.credential, { baseUrl, credentials });
  const notes: string[] = [];
  let before: Profile | undefined;
  const profile = await removeOnFailure({ store, credentials }, { name, saved }, () =>
    store.edit(name, (current) => {
      if (over !== undefined) assertHasCredential(current, over);
      before = current;
      if (saved !== undefined && current.base_url !== first?.base_url) {
        throw new Failure("failed", `Profile ${name} was moved to another address at the same time; try again.`);
      }
      const moved = withoutOldAddress(current, patched(current, settings), settings);
      notes.push(...moved.notes);
      if (settings.credential === undefined) return moved.profile;
      const stored = settings.credential === null ? null : storedForm(settings.credential, saved);
      return withCredential(moved.profile, stored);
    }),
  );
  if (saved?.note !== undefined) notes.push(saved.note);
  try {
    await removeReplaced(credentials, before, profile);
  } catch (error) {
    // The change is complete, so a failed cleanup causes only a note.
    if (!(error instanceof Failure)) throw error;
    notes.push(`The old secret of profile ${name} could not be removed: ${error.message}`);
  }
  return { profile, notes };
}

/**
 * @param seen the profile that the caller decided about
 * @throws Failure `conflict` if another process has since replaced the profile or its credential; it stays
 */
export async function removeProfile({ store, credentials }: ProfileStores, seen: Profile): Promise<Profile> {
  const removed = await store.remove(seen.name, (current) => {
    assertHasCredential(current, current.id === seen.id ? seen.credential : undefined);
  });
  await removeReplaced(credentials, removed, undefined);
  return removed;
}

function assertHasCredential({ name, credential }: Profile, expected: StoredCredential | null | undefined): void {
  if (JSON.stringify(credential) === JSON.stringify(expected)) return;
  throw new Failure("conflict", `Profile ${name} was given another credential at the same time.`, {
    meaning: "integ keeps that credential.",
  });
}

async function removeReplaced(
  credentials: Credentials,
  before: Profile | undefined,
  after: Profile | undefined,
): Promise<void> {
  const old = before?.credential ? secretSourceOf(before.credential) : undefined;
  const now = after?.credential ? secretSourceOf(after.credential) : undefined;
  if (old?.from !== "stored" || (now?.from === "stored" && now.ref === old.ref)) return;
  await credentials.destroy(old);
}
