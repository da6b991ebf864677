// Finds the caller's own access key. Revoking it, or rotating it without updating its profile, locks the caller out.
import { type AccessKey, readAccessKey } from "../../api/access-keys.ts";
import type { Rows } from "../../api/json/unknown-list.ts";
import { isCredentialRefused } from "../../api/call/attempt.ts";
import type { Context } from "../../context.ts";
import { Failure, onFailure } from "../../errors.ts";
import type { ActiveProfile, Profile } from "../../profiles/profile.ts";
import { type Advice, settingOf } from "../../next-step.ts";
import { relativeTime } from "../../output/relative-time.ts";
import { serviceNow } from "../running/read.ts";

export type Ownership = "own" | "maybe" | "other";

export interface OwnKey {
  readonly keyId?: string | undefined;
  readonly rows?: Rows | undefined;
  /** Milliseconds since 1970, by the service's clock if known. */
  readonly now: number;
}

function mayAdminister({ status, expiresAt, scopes }: AccessKey, now: number): boolean {
  const hasExpired = typeof expiresAt === "string" && Date.parse(expiresAt) <= now;
  return status !== "revoked" && !hasExpired && (scopes === undefined || scopes.includes("*"));
}

interface Candidates {
  /** Keys that may be the caller's; undefined if the list may be incomplete or has no such key. */
  readonly ids: ReadonlySet<string> | undefined;
  /** Keys that cannot list keys, and so cannot be the caller's. */
  readonly nonListing: ReadonlySet<string>;
}

/** @assumed §5.3: only a key with scope `*` that is neither revoked nor expired gives a token that lists keys */
function candidatesIn({ rows, now }: OwnKey): Candidates {
  const [ids, nonListing] = [new Set<string>(), new Set<string>()];
  let isWhole = rows?.saysMore === false;
  for (const { value } of rows?.rows ?? []) {
    const key = readAccessKey(value);
    const mayBeOwn = mayAdminister(key, now);
    if (mayBeOwn && key.id === undefined) isWhole = false;
    if (mayBeOwn && key.id !== undefined) ids.add(key.id);
    if (!mayBeOwn && key.id !== undefined && !ids.has(key.id)) nonListing.add(key.id);
  }
  return { ids: isWhole && ids.size > 0 ? ids : undefined, nonListing };
}

/** Returns a function, so that a list of 100,000 keys is read only once. */
export function ownershipIn(own: OwnKey): (id: string) => Ownership {
  const { keyId } = own;
  if (keyId !== undefined) return (id) => (keyId === id ? "own" : "other");
  const { ids, nonListing } = candidatesIn(own);
  return (id) => {
    if (nonListing.has(id)) return "other";
    if (ids === undefined) return "maybe";
    if (!ids.has(id)) return "other";
    return ids.size === 1 ? "own" : "maybe";
  };
}

/** Makes one attempt and ignores its failure, because integ also works without the list. */
export async function listKeysOnce(context: Context, profile: ActiveProfile): Promise<Pick<OwnKey, "rows" | "now">> {
  try {
    const service = await context.connect(profile, { timeoutMs: 5000 });
    const answer = await service.accessKeys.list();
    return { rows: answer.kind === "answered" ? answer.value : undefined, now: serviceNow(context, service) };
  } catch (error) {
    if (error instanceof Failure) return { now: context.clock.now() };
    throw error;
  }
}

export interface ProfileKey {
  readonly id: string;
  /** Name, owner and expiry in parentheses; empty if the list lacks the key. */
  readonly words: string;
}

/** Without a key id in the profile, finds the only key that may be the profile's. */
export async function findProfileKey(context: Context, { name, credential }: Profile): Promise<ProfileKey | undefined> {
  if (credential?.kind !== "api_key") return undefined;
  const listed = await listKeysOnce(context, await context.profiles.named(name));
  const candidates = credential.source === "command" ? [] : [...(candidatesIn(listed).ids ?? [])];
  const id = credential.key_id ?? (candidates.length === 1 ? candidates[0] : undefined);
  if (id === undefined) return undefined;
  const row = [...(listed.rows?.rows ?? [])].map(({ value }) => readAccessKey(value)).find((key) => key.id === id);
  if (row === undefined) return { id, words: "" };
  const { expiresAt, boundEmail } = row;
  const expiry =
    expiresAt === null ? "it does not expire" : expiresAt && `expires ${relativeTime(expiresAt, listed.now)}`;
  const words = [row.name && `"${row.name}"`, boundEmail && `of ${boundEmail}`, expiry].filter(Boolean).join(", ");
  return { id, words: words && ` (${words})` };
}

export interface OwnKeyChoice {
  readonly id: string;
  readonly updateProfile: boolean;
  readonly secretProfile?: string;
}

/**
 * Rotating the caller's own key locks the caller out, unless the caller's profile gets the new secret. `--yes` skips
 * this check.
 * @throws Failure `usage` if the key is the caller's own, or if it may be and no terminal can show a warning
 */
export async function refuseToLockOut(context: Context, profile: ActiveProfile, choice: OwnKeyChoice): Promise<void> {
  const { id, updateProfile, secretProfile } = choice;
  if (updateProfile || context.settings.yes || secretProfile === profile.name) return;
  const { keyId } = profile;
  const listed = keyId === undefined ? await listKeysOnce(context, profile) : { now: context.clock.now() };
  const ownership = ownershipIn({ keyId, ...listed })(id);
  if (ownership === "own") throw ownKeyFailure(profile, choice);
  if (ownership === "other") return;
  if (!context.output.interactive) throw maybeOwnKeyFailure(profile, choice);
  context.output.note(
    `If ${callerOf(profile)} uses ${id}, ${advice(profile)}: otherwise the rotation locks ${callerOf(profile)} out.`,
  );
}

function ownKeyFailure(profile: ActiveProfile, { id }: OwnKeyChoice): Failure {
  const caller = callerOf(profile);
  return new Failure("usage", `${id} is the key that ${caller} uses: rotating it would lock ${caller} out.`, {
    meaning: isSecretStored(profile)
      ? "Nothing was changed. The new secret can replace the old one in the profile."
      : `Nothing was changed. With --yes, integ rotates it anyway: then ${advice(profile)}.`,
    ...(isSecretStored(profile)
      ? { nextCommand: { add: ["--update-profile"] } }
      : { hint: "Add --yes, and --secret-command to put the new secret where the old one is stored." }),
  });
}

function maybeOwnKeyFailure(profile: ActiveProfile, { id }: OwnKeyChoice): Failure {
  const caller = callerOf(profile);
  return new Failure("usage", `${id} may be the key that ${caller} uses: rotating it could lock ${caller} out.`, {
    meaning: `Nothing was changed. If it is that key, ${advice(profile)}. If it is another key, add --yes.`,
    ...(isSecretStored(profile)
      ? settingOf(profile.name, "--api-key-id")
      : { hint: "Use a profile with a key id: see --api-key-id in integ help profiles add." }),
  });
}

export function isSecretStored({ name }: Pick<ActiveProfile, "name">): boolean {
  return name !== "env" && !name.startsWith("sandbox");
}

export function callerOf({ name }: Pick<ActiveProfile, "name">): string {
  return name === "env" ? "the environment" : `profile ${name}`;
}

function advice(profile: Pick<ActiveProfile, "name">): string {
  return isSecretStored(profile)
    ? "add --update-profile"
    : `store the new secret where ${callerOf(profile)} gets its key from`;
}

export async function warnIfLockedOut(
  context: Context,
  profile: ActiveProfile,
  change: { readonly id: string; readonly newId?: string; readonly secretFile?: string },
): Promise<void> {
  const { id, newId = id, secretFile } = change;
  if (profile.keyId !== undefined && profile.keyId !== id) return;
  if (profile.keyId === undefined && !(await isRefusedNow(context, profile))) return;
  const caller = callerOf(profile);
  const { credential } = (await context.profiles.store()).get(profile.name) ?? {};
  const edit = `integ profiles edit ${profile.name} --api-key-stdin --api-key-id ${newId}`;
  const repair =
    credential?.kind !== "api_key" || credential.source === "command"
      ? `Put the new secret where ${caller} gets its key from.`
      : `Repair it: ${edit} < ${secretFile ?? "<file with the new secret>"}`;
  context.output.warn(`${caller[0]?.toUpperCase()}${caller.slice(1)} used ${id} and is locked out. ${repair}`);
}

async function isRefusedNow(context: Context, profile: ActiveProfile): Promise<boolean> {
  const reconnected = context.profiles.named(profile.name).then((named) => context.connect(named, { timeoutMs: 5000 }));
  return reconnected
    .then(async ({ accessKeys }) => isCredentialRefused(await accessKeys.list()))
    .catch(onFailure(({ kind }) => kind === "auth"));
}

export async function checkUpdatable(context: Context, profile: ActiveProfile, id: string): Promise<void> {
  const refuse = (why: string, hint?: Advice): Failure =>
    new Failure("usage", `--update-profile: ${why}.`, {
      meaning: "Nothing was sent.",
      hint,
    });
  const stored = (await context.profiles.store()).get(profile.name);
  if (stored === undefined)
    throw refuse(
      `integ does not store the profile ${profile.name}`,
      "Use --secret-command to put the new secret where the old one is stored.",
    );
  const { credential } = stored;
  if (credential?.kind !== "api_key") throw refuse(`the profile ${profile.name} does not use an access key`);
  if (credential.source === "command")
    throw refuse(
      `the profile ${profile.name} gets its key from a command`,
      "Use --secret-command to put the new secret where that command reads it.",
    );
  if (profile.keyId !== undefined && profile.keyId !== id)
    throw refuse(`the profile ${profile.name} uses another key, ${profile.keyId}`);
}
