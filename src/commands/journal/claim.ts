import { addDryRun, defineVerb } from "../verb.ts";
import { type DeliveryBench, entryFailure, withLease } from "../../operations/workbench.ts";
import { assertNotKeptElsewhere, continueDelivery } from "../../operations/secret-delivery.ts";
import { withEntryIds, secretFieldOf } from "../../secrets/secret-format.ts";
import {
  hasNoId,
  isEarly,
  isInPlace,
  isSettled,
  kindOf,
  nextStep,
  nounOf,
  revokedBy,
  type Entry,
} from "../../journal/entry.ts";
import { untrusted } from "../../operations/acts/overwrite.ts";
import type { Context } from "../../context.ts";
import { Failure, withReason } from "../../errors.ts";
import type { EntryLease, Journal } from "../../journal/journal.ts";
import {
  isSamePlace,
  namesOf,
  type OneTimeSecret,
  type SecretOptions,
  type SingleRecord,
} from "../../secrets/destination.ts";
import { askDestination, addSecretOptions, confirmOwnProfile, issuedAs, secretOptionsOf } from "../options/secrets.ts";
import { askEntry } from "../options/known-names.ts";
import {
  deliveryBenchOf,
  readDelivered,
  printReceipt,
  checkedDeliveryWords,
  secretKeepingOf,
  workbenchOf,
} from "../running/change.ts";
import { claimOptions, isOptionFor } from "./remembered-destination.ts";
import { receiptViewOf } from "./view.ts";
import { shell } from "../../next-step.ts";

export const command = defineVerb({
  configure: (command) => addSecretOptions(addDryRun(command).argument("<id>", "The entry whose secret is kept")),
  examples: [
    { line: "integ journal claim 6k2f9 --secret-file ./client.secret", does: "to a new file that only you can read" },
    {
      line: "integ journal claim 6k2f9",
      does: "to the recorded profile, store or several destinations; for one file or command, integ asks at a terminal, and prints the secret in a pipe",
    },
  ],
  asks: (context) => askEntry(context, { question: "Whose secret is claimed?", states: ["undelivered"] }),
  async run(context, { args: [id], options }) {
    const journal = await context.journal();
    const entry = await entryWithSecret(journal, await journal.find(id));
    if (options.dryRun) return showClaim(context, entry, secretOptionsOf(options));
    const lease = await journal.lease(entry.id);
    await withLease(lease, async () => {
      if (!(await lease.isTrusted())) throw untrusted(lease.entry.id);
      const kept = await readKeptSecret(context, lease.entry);
      const typed = secretOptionsOf(options);
      if (typed.to.some(({ kind }) => kind === "profile")) refuseUnnamed(lease.entry, kept);
      const bench = await deliveryBenchOf(context);
      await markLostDeliveries(context, lease, { typed, kept });
      const deliveredBefore = placesWithSecret(lease.entry);
      const remembered = await confirmOwnProfile(context, claimOptions(lease.entry, typed), lease.entry);
      const isKnown = remembered.to.length > 0 || remembered.remembered !== undefined;
      const { options: named } = isKnown ? { options: remembered } : await askDestination(context, remembered);
      const secretOptions = { ...named, ...issuedAs(lease.entry), mayBeOwn: true };
      const destination = await context.secrets.destination(secretOptions, (receipt) => show(context, receipt, kept));
      const secrets = { ...bench.secrets, readKept: () => Promise.resolve(kept) };
      const prove = (secret: OneTimeSecret): Promise<void> => proveAgain(context, { bench, lease, secret });
      const work = { bench: { ...bench, secrets }, lease, destination, claimedBy: "person", prove } as const;
      const delivery = await continueDelivery(work).catch((error: unknown) => {
        throw secrets.isKept(entry.id) ? withKeptNote(error) : error;
      });
      const isDelivered = delivery?.secret === undefined;
      if (isDelivered && lease.entry.destination?.kind !== "several")
        context.output.note(`The secret is in ${namesOf(destination.record)} already.`);
      const isShown = destination.isStdout && !isDelivered;
      await reportClaim(context, lease.entry, { kept, deliveredBefore, isShown });
    });
  },
});

/**
 * A kept secret may have stopped working since its proof, and the rotation must not revoke the old client or key then.
 */
async function proveAgain(
  context: Context,
  work: { readonly bench: DeliveryBench; readonly lease: EntryLease; readonly secret: OneTimeSecret },
): Promise<void> {
  const { bench, lease, secret } = work;
  const { parent, detail } = lease.entry;
  if (parent === null || detail.proven === undefined) return;
  const [{ tryFirst }, { client }, { key }] = await Promise.all([
    import("../../operations/rotation.ts"),
    import("../../operations/client.ts"),
    import("../../operations/key.ts"),
  ]);
  const { prove } = kindOf(lease.entry) === "access_key" ? key : client;
  const tried = await tryFirst(bench, lease, async () => {
    const rotation = await bench.journal.find(parent);
    return prove(await workbenchOf(context, { entry: rotation }), rotation, lease.entry, secret);
  });
  if (tried === true) return;
  const why = tried === false ? new Error(`profile ${lease.entry.profile} has no way to do that.`) : tried;
  bench.tell.warn(withReason("The secret could not be proven again", why));
}

function withKeptNote(error: unknown): unknown {
  if (!(error instanceof Failure) || error.kind === "undelivered") return error;
  const meaning = `${error.details.meaning ?? ""} The secret is still kept.`.trim();
  return new Failure(error.kind, error.message, { ...error.details, meaning });
}

async function showClaim(context: Context, entry: Entry, typed: SecretOptions): Promise<void> {
  await readKeptSecret(context, entry);
  const secretOptions = { ...claimOptions(entry, typed), ...issuedAs(entry) };
  const { deliverySteps, showSteps } = await import("../running/dry-run.ts");
  const destination = await context.secrets.destination(secretOptions, async () => {});
  await showSteps(context, [
    ...deliverySteps(destination.record),
    { what: `destroy the copy that is kept for ${entry.id}` },
  ]);
}

/** An incomplete response may lack the client id, which a profile needs. */
function refuseUnnamed(entry: Entry, { kind, clientId }: OneTimeSecret): void {
  if (kind !== "oauth_client" || clientId !== undefined) return;
  const message = "The response that contained the secret was incomplete: its client id is not known yet.";
  throw entryFailure(entry, "usage", message, {
    meaning: "The secret is still kept.",
    nextCommand: shell`integ journal recover ${entry.id}`,
  });
}

/** If a typed file no longer has the secret, marks the delivery as failed, so that the claim repeats it. */
async function markLostDeliveries(
  context: Context,
  lease: EntryLease,
  { typed, kept }: { readonly typed: SecretOptions; readonly kept: OneTimeSecret },
): Promise<void> {
  const { destination } = lease.entry;
  if (destination?.kind !== "several") return;
  const places = [];
  for (const place of destination.places) {
    const isTyped =
      place.state === "delivered" && typed.to.some((option) => isOptionFor(option, place.at, context.settings.cwd));
    const isLost =
      isTyped && place.at.kind === "file" && (await readDelivered(context.secrets, place.at)) !== kept.secret;
    places.push(isLost ? ({ ...place, state: "failed" } as const) : place);
  }
  if (places.some(({ state }, index) => state !== destination.places[index]?.state))
    await lease.record({ destination: { ...destination, places } });
}

function placesWithSecret({ destination }: Entry): SingleRecord[] {
  if (destination?.kind !== "several") return [];
  return destination.places.filter(({ state }) => state === "delivered").map(({ at }) => at);
}

async function reportClaim(
  context: Context,
  entry: Entry,
  about: {
    readonly kept: OneTimeSecret;
    readonly deliveredBefore: readonly SingleRecord[];
    readonly isShown: boolean;
  },
): Promise<void> {
  const { kept, deliveredBefore, isShown } = about;
  const isNew = (place: SingleRecord): boolean => !deliveredBefore.some((other) => isSamePlace(place, other));
  const place = isShown
    ? undefined
    : await checkedDeliveryWords(context, { ...entry, state: "done" }, { secret: kept.secret, isNew });
  if (!isShown) await printReceipt(() => show(context, kept.receipt, kept, { hidden: true }));
  if (place) context.output.note(place);
  if (hasNoId(entry))
    context.output.note(`Its ${nounOf(entry)} is not recorded yet: integ journal recover ${entry.id} finds it.`);
  if (entry.parent !== null) context.output.next(shell`integ journal recover ${entry.parent}`);
}

/** @returns the entry with the kept secret: the creation of a rotation, else the replacement, else the entry itself */
async function entryWithSecret(journal: Journal, entry: Entry): Promise<Entry> {
  const [creation] = await journal.select({ states: ["undelivered"], parent: entry.id });
  const ids = entry.replaced_by === null ? [] : [entry.replaced_by];
  const [replacement] = await journal.select({ states: ["undelivered"], ids });
  return creation ?? replacement ?? entry;
}

async function readKeptSecret(context: Context, entry: Entry): Promise<OneTimeSecret> {
  refuseRevoked(entry);
  const keeping = await secretKeepingOf(context);
  if (keeping.isKept(entry.id)) await refuseOutdated(context, entry);
  if (keeping.isKept(entry.id)) return withEntryIds(await keeping.readKept(entry.id), entry);
  assertNotKeptElsewhere({ secrets: keeping }, entry);
  const hasNone = isSettled(entry.state) || entry.state === "waiting";
  // Recovery finds out whether the secret is at its destination or lost.
  const next = entry.state === "undelivered" ? shell`integ journal recover ${entry.id}` : nextStep(entry);
  throw new Failure("not_found", `No secret is kept for the entry ${entry.id} (${entry.operation}, ${entry.state}).`, {
    meaning: hasNone ? "Its secret was delivered, or there is none." : undefined,
    nextCommand: isEarly(entry, context.clock.now()) ? undefined : (next ?? undefined),
  });
}

function refuseRevoked({ id, state, resource_id, replaced_by }: Entry): void {
  if (state !== "replaced" && state !== "unusable") return;
  const what = resource_id ?? "what the entry made";
  throw new Failure("unusable", `The secret of ${id} no longer works: ${what} was revoked or must not be used.`, {
    entry: id,
    nextCommand: replaced_by === null ? undefined : shell`integ journal show ${replaced_by}`,
  });
}

/**
 * Refuses a secret that a revocation or a later rotation made invalid. An unconfirmed or untrusted rotation causes only a
 * warning. Ids show the order, because a clock may have been corrected between the two.
 */
async function refuseOutdated(context: Context, { id, resource_id, base_url }: Entry) {
  if (resource_id === null) return;
  const journal = await context.journal();
  const entries = await journal.select({ all: true, resource: resource_id });
  const others = entries.filter((other) => other.id !== id && other.base_url === base_url);
  const untrustedIds = await journal.untrusted(others.map((other) => other.id));
  const isLaterRotation = (other: Entry): boolean =>
    other.operation === "access_key.rotate" && isInPlace(other) && other.attempts > 0 && other.id > id;
  const rotation = others.find(isLaterRotation);
  const by = others.find(
    (other) =>
      !untrustedIds.has(other.id) &&
      (revokedBy(other) === resource_id || (isLaterRotation(other) && isRotationConfirmed(other))),
  );
  if (by !== undefined)
    throw new Failure("unusable", `The secret of ${id} no longer works: ${resource_id} was changed by ${by.id}.`, {
      entry: id,
      meaning: "Nothing was delivered. The kept copy is destroyed with the entry.",
      nextCommand: shell`integ journal forget ${id}`,
    });
  if (rotation !== undefined)
    context.output.warn(`${resource_id} was rotated again by ${rotation.id}: this secret may no longer work.`);
}

function isRotationConfirmed({ state }: Entry): boolean {
  return state === "done" || state === "undelivered" || state === "secret_lost";
}

async function show(context: Context, receipt: string, kept: OneTimeSecret, { hidden = false } = {}): Promise<void> {
  const view = await receiptViewOf(kept.kind);
  await context.output.resource(receipt, { ...view, nulls: hidden ? [secretFieldOf(kept)] : [] });
}
