// Shared by the commands that change the account: their workbench, questions of consent, notes and receipts.
import { DiskHealth } from "../../disk/disk-health.ts";
import { createHmac } from "node:crypto";
import { existsSync } from "node:fs";
import type { Credential } from "../../api/auth/credential.ts";
import type { Service } from "../../api/connect.ts";
import { contractVersion } from "../../api/call/request.ts";
import type { Account, DeliveryBench, Tell, Workbench } from "../../operations/workbench.ts";
import type { Context } from "../../context.ts";
import { Failure, onFailure } from "../../errors.ts";
import {
  type ClientProof,
  type Entry,
  type KeyExchange,
  type EntryAccount,
  isOfAccount,
  mayBeCreatedElsewhere,
  movedWords,
  otherPlaces,
  isInPlace,
  nounOf,
} from "../../journal/entry.ts";
import type { ActiveProfile } from "../../profiles/profile.ts";
import {
  type Destination,
  type DestinationRecord,
  describeDestination,
  isForProfile,
  placesOf,
  type SingleRecord,
} from "../../secrets/destination.ts";
import { shell } from "../../next-step.ts";
import type { SecretKeeping } from "../../secrets/kept.ts";
import type { EntryFilter } from "../../journal/lookup.ts";

export async function accountOf(context: Context, entry?: Entry): Promise<Account> {
  const profile = await (entry ? profileOf(context, entry) : context.profiles.active());
  const service = await context.connect(profile, { serviceVersion: entry?.service_version });
  // Delivering the secret to this profile replaces its stored credential, which the recovery still needs, so integ
  // reads the credential first.
  if (entry !== undefined && isForProfile(entry.destination, profile.name))
    await Promise.allSettled([profile.credential(), profile.legacy()]);
  return {
    profile: profile.name,
    profileId: profile.id,
    principal: profile.principal,
    region: profile.region,
    baseUrl: profile.baseUrl,
    organizationId: profile.organizationId ?? null,
    serviceVersion:
      entry?.service_version ?? context.settings.serviceVersion ?? profile.serviceVersion ?? contractVersion,
    service,
    credentialDigest: async (text) => digestUnder(await profile.credential(), text),
    keyId: profile.keyId,
    proof: proofOf(profile),
    keyExchange: keyExchangeOf(profile),
    exchangeKey: async (secret, way) => exchangeKey({ profile, service }, secret, way),
    proveClient: (client, at) => prove(context, { profile, service, client, at }),
  };
}

/** The HMAC's key is the API key, or the client id, which stays the same when the client's secret changes. */
function digestUnder(credential: Credential, text: string): string {
  const key = credential.kind === "api_key" ? credential.key : credential.clientId;
  return createHmac("sha256", key).update(text).digest("hex").slice(0, 16);
}

/** A sandbox's port changes, so the proof has the sandbox's logical address. */
function proofOf({ oauth, baseUrl }: ActiveProfile): ClientProof | null {
  if (oauth === undefined) return null;
  const { token_endpoint, audience, issuer, scope, client_auth } = oauth;
  return { token_endpoint: isSandbox(baseUrl) ? baseUrl : token_endpoint, audience, issuer, scope, client_auth };
}

function keyExchangeOf({ keyExchange, baseUrl }: ActiveProfile): KeyExchange | null {
  if (keyExchange === undefined) return null;
  return keyExchange.kind === "command" ? keyExchange : { kind: "endpoint", url: keyExchange.url ?? baseUrl };
}

/** For a command, the profile's current one runs, because the journal records no commands. */
function exchangeKey(
  { profile, service: { tokens } }: { readonly profile: ActiveProfile; readonly service: Service },
  secret: string,
  way: KeyExchange,
): ReturnType<Service["tokens"]["exchangeAccessKey"]> {
  if (way.kind === "endpoint") return tokens.exchangeAccessKey(secret, isSandbox(way.url) ? undefined : way.url);
  return profile.keyExchange?.kind === "command" ? tokens.exchangeAccessKey(secret) : Promise.resolve(undefined);
}

function isSandbox(address: string): boolean {
  return address.startsWith("sandbox://");
}

async function prove(
  context: Context,
  {
    profile: { name, region },
    service,
    client: { clientId, secret: clientSecret },
    at: { token_endpoint: tokenEndpoint, audience, issuer, scope, client_auth: clientAuth },
  }: {
    readonly profile: ActiveProfile;
    readonly service: Service;
    readonly client: { readonly clientId: string; readonly secret: string };
    readonly at: ClientProof;
  },
): Promise<void> {
  const at = isSandbox(tokenEndpoint) ? undefined : { tokenEndpoint, audience, issuer, scope, clientAuth };
  // The message names the profile of the change, which may differ from the acting profile.
  const about = { what: "prove the new client by a token exchange", where: `profile ${name} (${region})` };
  const { readAnswer } = await import("./read.ts");
  await readAnswer(context, about, async () => {
    const attempt = await service.tokens.exchangeClient({ clientId, clientSecret, at });
    if (!attempt) throw new Error("a profile with a token endpoint made a connection without one");
    return attempt;
  });
}

/** Pass one `disk` to all workbenches of a command, so that the command sends no change after a failed write. */
export async function workbenchOf(
  context: Context,
  {
    entry,
    disk = new DiskHealth(),
    account = () => accountOf(context, entry),
  }: { readonly entry?: Entry; readonly disk?: DiskHealth; readonly account?: () => Promise<Account> } = {},
): Promise<Workbench> {
  await context.loadForChange();
  return {
    ...(await deliveryBenchOf(context, disk)),
    account: await account(),
    retryForMs: context.settings.retryForMs,
  };
}

export async function deliveryBenchOf(context: Context, disk = new DiskHealth()): Promise<DeliveryBench> {
  const [journal, secrets] = [await context.journal(), await secretKeepingOf(context)];
  return { journal, secrets, clock: context.clock, tell: reporterFor(context), disk };
}

function reporterFor(context: Context): Tell {
  const { output } = context;
  return {
    note: (text) => output.note(text),
    warn: (text) => output.warn(text),
    waiting: (label, ms) => {
      const progress = output.countdown(label, ms);
      return () => progress.done();
    },
    busy: (label) => {
      const progress = output.progress(label);
      return () => progress.done();
    },
  };
}

export function actingAs({ account }: Workbench): string {
  return `Profile ${account.profile} (${account.region})`;
}

/**
 * May integ replace this credential? Yes with the option, `--yes`, or a person's agreement. If another program may have
 * created the client, or another machine may keep the secret, only the option permits it. `--yes` does not permit
 * another rotation in place of a key whose secret may still work.
 */
export async function mayReplace(
  { output, settings, secrets }: Context,
  entry: Entry,
  isPermitted = false,
): Promise<boolean> {
  if (isPermitted) return true;
  const { place } = await secrets.undelivered();
  if (mayBeCreatedElsewhere(entry) || otherPlaces(entry, { place, machine: secrets.machine }).length > 0) return false;
  if (settings.yes) return !isInPlace(entry) || entry.state === "secret_lost";
  if (!output.interactive) return false;
  output.note(lostWords(entry));
  return output.confirm(replacementQuestion(entry), { destructive: true });
}

function replacementQuestion(entry: Entry): string {
  const { resource_id, parent, profile, region } = entry;
  const as = `Profile ${profile} (${region})`;
  const what = nounOf(entry);
  if (isInPlace(entry))
    return `${as}: a new secret of key ${resource_id} may have been created and lost. Rotate it again?`;
  const lost = `the secret of ${parent === null ? what : `the new ${what}`} ${resource_id} is lost`;
  return `${as}: ${lost}. Revoke this ${what} and create another?`;
}

function lostWords(entry: Entry): string {
  const { id, resource_id } = entry;
  const changeWords = isInPlace(entry)
    ? `The rotation of key ${resource_id} was sent and may have taken effect: the old secret may no longer work`
    : `The creation was sent and took effect: the ${nounOf(entry)} ${resource_id} exists`;
  return `${changeWords}. Its new secret did not arrive here, or was not saved. The journal keeps the request as entry ${id}.`;
}

/**
 * May integ revoke the old credential although the new one is not proven, or is another user's? Yes with
 * `--accept-unproven` or a person's agreement to this question. `--yes` is not enough: it does not confirm that the new
 * credential works.
 */
export async function mayRevokeUnproven(
  { output, settings }: Context,
  { resource_id, detail, profile, region }: Entry,
  words: string,
  isAccepted = false,
): Promise<boolean> {
  const { old_client: old = detail.old_key } = detail;
  const question = `Profile ${profile} (${region}): ${resource_id} ${words}. Does it work for you, and should ${old} be revoked?`;
  return (
    isAccepted ||
    (!settings.yes && output.interactive && output.confirm(question, { destructive: true, isPersonal: true }))
  );
}

/** At a terminal, prints the plan without a question, because a creation destroys nothing. */
export function reportPlan({ output }: Context, plan: string): void {
  if (output.interactive) output.note(plan);
}

/** Lists do not show what a damaged or emptied journal lost. */
export async function warnOfDamage(context: Context): Promise<void> {
  const { damagedPlaces: places, isEmptied } = await (await context.journal()).condition();
  if (isEmptied)
    context.output.warn(
      `The journal ${context.settings.journalPath} is empty. A crash or a full disk can cause this. integ starts a new journal. If the old one had entries, stop now and restore a copy.`,
    );
  if (places === 0) return;
  context.output.warn(
    `The journal is damaged in ${places === 1 ? "1 place" : `${places} places`}; undamaged entries are kept. For details: integ journal verify`,
  );
}

/** A moved journal is out of date and refuses changes. */
export async function warnOfMove(context: Context): Promise<void> {
  const { moved } = await (await context.journal()).condition();
  if (moved === undefined) return;
  context.output.warn(`${movedWords(moved)} It shows the entries as of then.`);
}

export async function noteUnfinished(context: Context): Promise<void> {
  const { needsAttention } = await import("../../journal/entry.ts");
  const journal = await context.journal();
  await warnOfDamage(context);
  const due = (await journal.unsettled()).filter(
    (entry) => needsAttention(entry, context.clock.now()) && !entry.parent,
  );
  // Another process already works on an entry with a holder.
  const holders = due.length > 0 && journal.isShared ? await journal.holders() : undefined;
  const unfinished = due.filter(({ id }) => !holders?.has(id));
  if (unfinished.length === 0) return;
  const what = unfinished.length === 1 ? "1 change needs" : `${unfinished.length} changes need`;
  context.output.note(`${what} attention. Next: integ journal list`);
}

/** @throws Failure of the printing, with a warning not to repeat the change */
export async function printReceipt(print: () => Promise<void>): Promise<void> {
  try {
    await print();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    throw new Failure(error.kind, error.message, {
      ...error.details,
      meaning:
        "The change is done, but its receipt could not be shown. Running the command again would repeat the change.",
      hint: undefined,
      nextCommand: shell`integ journal list --all`,
    });
  }
}

/** @returns undefined if the secret was printed or is not delivered */
export function deliveryWords(entry: Entry): string | undefined {
  if (entry.state !== "done" || entry.destination === null) return undefined;
  return deliveredTo(entry.destination);
}

function deliveredTo(record: DestinationRecord): string | undefined {
  const sentences = placesOf(record).map((place) => describeDestination(place).delivered);
  return sentences.join(" ") || undefined;
}

export function reportDelivered({ output }: Pick<Context, "output">, { record }: Pick<Destination, "record">): void {
  const place = deliveredTo(record);
  if (place !== undefined) output.note(place);
}

/**
 * Like `deliveryWords`, but notes if a file from an earlier command was changed or is missing. `isNew` is true for this
 * command's destinations.
 */
export async function checkedDeliveryWords(
  { secrets }: Pick<Context, "secrets">,
  entry: Entry,
  about: { readonly secret?: string; readonly isNew?: (place: SingleRecord) => boolean } = {},
): Promise<string | undefined> {
  if (entry.state !== "done" || entry.destination === null) return undefined;
  const sentences: string[] = [];
  for (const place of placesOf(entry.destination)) {
    const { name, delivered } = describeDestination(place);
    const content = await readDelivered(secrets, place);
    const isThere = about.isNew?.(place) === true || (about.secret !== undefined && content === about.secret);
    if (delivered === undefined || isThere || place.kind === "command") sentences.push(delivered ?? "");
    else if (place.kind === "file" && content === undefined)
      sentences.push(
        `The secret was delivered to ${name}, and the file ${existsSync(place.path) ? "was changed since" : "is missing now"}.`,
      );
    else sentences.push(`The secret was delivered to ${name}.`);
  }
  return sentences.filter((text) => text !== "").join(" ") || undefined;
}

/** @returns undefined unless the place is a readable, unchanged file */
export async function readDelivered(secrets: Context["secrets"], place: SingleRecord): Promise<string | undefined> {
  if (place.kind !== "file") return undefined;
  return secrets.reread(place).catch(onFailure(() => undefined));
}

/** Combines the kept secrets of this machine with those of a team's journal. */
export async function secretKeepingOf(context: Context): Promise<SecretKeeping> {
  const { secrets } = context;
  const undelivered = await secrets.undelivered();
  const { escrow } = await context.journal();
  const escrowed = new Set(await escrow?.ids());
  return {
    machine: secrets.machine,
    allowed: secrets.allowed,
    completeDelivery: (record, may) => secrets.completeDelivery(record, may),
    removeReserve: (record, entry, options) => secrets.removeReserve(record, entry, options),
    reread: (record) => secrets.reread(record),
    place: undelivered.place,
    reserve: (entry) => undelivered.reserve(entry),
    keep: (entry, secret) => undelivered.keep(entry, secret),
    async escrow(entry, secret) {
      const ciphertext = escrow && (await secrets.escrow.encrypt(secret, entry));
      if (ciphertext === undefined) return false;
      await escrow?.put(entry, ciphertext);
      escrowed.add(entry);
      return true;
    },
    isKept: (entry) => undelivered.isKept(entry) || escrowed.has(entry),
    isEscrowed: (entry) => escrowed.has(entry),
    async readKept(entry) {
      const ciphertext = undelivered.isKept(entry) ? undefined : await escrow?.get(entry);
      return ciphertext === undefined ? undelivered.read(entry) : secrets.escrow.decrypt(ciphertext, entry);
    },
    async destroyKept(entry) {
      await undelivered.destroy(entry);
      if (escrowed.delete(entry)) await escrow?.remove(entry);
    },
    release: async (entry) => {
      if (!escrowed.has(entry)) await undelivered.release(entry);
    },
  };
}

/**
 * In a team's journal, the entry's profile may be another machine's. Then a profile with the same address, organization
 * and client finishes the entry.
 */
async function profileOf(context: Context, entry: Entry): Promise<ActiveProfile> {
  const { isShared } = await context.journal();
  return (isShared ? await fittingProfile(context, entry) : undefined) ?? context.profiles.named(entry.profile);
}

/** Finds a profile of the entry's account: first by the entry's profile name, then the acting one, then any other. */
export async function fittingProfile(context: Context, entry: Entry): Promise<ActiveProfile | undefined> {
  const { profiles } = context;
  const stored = (await profiles.store()).list().map(({ name }) => name);
  const names = [entry.profile, ...stored.filter((name) => name !== entry.profile)];
  const [ofName, ...others] = names.map((name) => () => profiles.named(name));
  for (const find of [ofName, () => profiles.active(), ...others]) {
    const profile = await find?.().catch(skipUnusable);
    if (profile && isOfAccount(entry, accountIn(profile))) return profile;
  }
  return undefined;
}

const skipUnusable = onFailure(() => undefined);

function accountIn({ baseUrl, organizationId, principal }: ActiveProfile): EntryAccount {
  return { base_url: baseUrl, organization_id: organizationId ?? null, principal };
}

/**
 * Profile names differ between a team's machines, so in a team's journal the profile's account selects the entries. If
 * this machine cannot use the profile, its name selects them.
 */
export async function entriesOfProfile(
  { journal, profiles }: Context,
  name: string | undefined,
): Promise<Pick<EntryFilter, "profile" | "account">> {
  if (name === undefined) return {};
  if (!(await journal()).isShared) return { profile: name };
  const profile = await profiles.named(name).catch(skipUnusable);
  return profile === undefined ? { profile: name } : { account: accountIn(profile) };
}
