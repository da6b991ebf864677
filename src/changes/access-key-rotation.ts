// Owns: the API's own rotation of an access key, in place (§4.4): the old secret may be dead the moment the request
// arrives, so all that can be lost is told before, a new secret is kept before anything else is done with it, and a lost
// answer is followed by another rotation only where the person asks for one.
// Must not know: flags, terminals, files. Rotation that cannot lock out: access-key-replacement.ts.
import { Failure } from "../errors.ts";
import type { Entry } from "../journal/entry.ts";
import type { EntryLease } from "../journal/journal.ts";
import type { Destination } from "../secrets/destination.ts";
import { mayHaveArrived, post, type Post } from "./access-key-posting.ts";
import {
  bringHome,
  finishDelivery,
  keptHere,
  mayDeliverAgain,
  noteLostCopy,
  proveSecret,
  receiptOf,
  secretLost,
  withoutSecret,
} from "./access-key-secret.ts";
import {
  detailsOf,
  giveBack,
  madeFor,
  outcomeUnknown,
  recordAfterwards,
  type Workbench,
  withRequestId,
} from "./workbench.ts";

export interface KeyRotationRequest {
  /** Resource id of the key. */
  readonly id: string;
  /** The new secret takes the place of the one that this profile lives on. */
  readonly updateProfile: boolean;
}

export interface KeyRotationOptions {
  readonly destination: Destination;
  /** `--new`: leave an unfinished rotation of the same key alone. */
  readonly fresh?: boolean;
}

export interface KeyRotated {
  readonly entry: Entry;
  /** The API's object with the new secret in it; nothing where an earlier process had shown it. */
  readonly receipt?: string;
}

const unknownWords =
  "The old secret may be dead, and the new one did not arrive. The old one was left where it is: it may still work.";
const againWords = "The command below rotates the key again: whatever secret it has is dead then.";

/** Rotates a key in place. */
export async function rotateAccessKey(
  bench: Workbench,
  request: KeyRotationRequest,
  options: KeyRotationOptions,
): Promise<KeyRotated> {
  const { id, updateProfile } = request;
  const destination = { ...(await options.destination.check()) };
  const { kind, drive } = await bench.journal.admit(
    {
      ...madeFor(bench.account),
      operation: "access_key.rotate",
      method: "POST",
      path: `/api/v1/access-keys/${encodeURIComponent(id)}/rotate`,
      request_text: "",
      twin: JSON.stringify(["in_place", id]),
      idempotent: false,
      destination,
      detail: { mode: "in_place", key_id: id, update_profile: updateProfile },
    },
    { fresh: options.fresh },
  );
  try {
    if (kind === "resumed" && mayHaveArrived(drive.entry)) throw stillUnknown(drive.entry);
    if (kind === "resumed") bench.tell.note(`Going on with the rotation ${drive.entry.id}, which was never sent.`);
    return await rotateNow(bench, drive, options);
  } finally {
    await drive.release();
  }
}

function stillUnknown(entry: Entry): Failure {
  return new Failure("outcome_unknown", "An earlier rotation of this key has an unknown outcome.", {
    ...detailsOf(entry),
    meaning: `Nothing was sent now. ${unknownWords} ${againWords}`,
    hint: `integ journal recover ${entry.id} --replace-lost-secret`,
  });
}

/** Sends the rotation once and brings the new secret home. */
async function rotateNow(
  bench: Workbench,
  drive: EntryLease,
  { destination, before }: Pick<Post, "destination" | "before">,
): Promise<KeyRotated> {
  const id = String(drive.entry.detail.key_id);
  const work = { bench, drive, destination, before };
  await drive.record({ resource_id: id });
  try {
    const { value, text, requestId } = await post({
      ...work,
      what: "rotate access key",
      send: () => bench.account.service.accessKeys.rotate(id),
      ifUnknown: unknownWords,
    });
    const { key, secret } = value;
    if (secret === undefined) throw withRequestId(await withoutSecret(work, { ...key, id }), requestId);
    const receipt = receiptOf({ text, key: { id, ...key }, secret });
    await bringHome(
      work,
      { secret, kind: "access_key", id, receipt },
      { prove: proofFor(bench, drive.entry), requestId },
    );
    return { entry: drive.entry, receipt };
  } finally {
    await giveBack(bench, drive.entry.id, destination);
  }
}

/**
 * A secret that takes the place of the profile's own is proven first. Where the proof cannot be made, or nobody can be
 * asked, the new secret still takes the place: the service has said that it is the key's secret now. Only a plain no
 * stops it, and then it is kept for `claim`.
 */
function proofFor(bench: Workbench, entry: Entry): ((secret: string) => Promise<void>) | undefined {
  if (entry.detail.update_profile !== true) return undefined;
  return async (secret) => {
    try {
      if (!(await proveSecret(bench, secret)))
        bench.tell.warn("The new secret was not proven: the profile knows no way to exchange it for a token.");
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      if (error.kind === "auth")
        throw new Failure("auth", `The new secret was not accepted: ${error.message}`, error.details);
      bench.tell.warn(`The new secret could not be proven (${error.message}) The profile takes it all the same.`);
    }
  };
}

export interface KeyRotationRecovery {
  readonly destination: Destination;
  /** Asked before the key is rotated again. */
  readonly mayReplace: (entry: Entry) => Promise<boolean>;
}

/** Brings an unfinished rotation in place to its end. Another rotation is sent only where the person asks for it. */
export async function recoverKeyRotation(
  bench: Workbench,
  drive: EntryLease,
  options: KeyRotationRecovery,
): Promise<KeyRotated> {
  const { destination } = options;
  await noteLostCopy(bench, drive);
  if (!mayDeliverAgain(drive.entry)) throw keptHere(drive.entry, "it waits to be claimed.");
  try {
    const prove = proofFor(bench, drive.entry);
    if (await finishDelivery({ bench, drive, destination }, { prove })) return { entry: drive.entry };
  } finally {
    await giveBack(bench, drive.entry.id, destination);
  }
  const isLost = drive.entry.state === "secret_lost";
  if (!isLost && !mayHaveArrived(drive.entry)) return rotateNow(bench, drive, { destination });
  if (!(await options.mayReplace(drive.entry)))
    throw isLost ? secretLost(drive.entry) : await howItStands(bench, drive);
  await destination.check();
  bench.tell.note(`Rotating ${drive.entry.resource_id ?? ""} again: whatever secret it had before is dead then.`);
  return rotateNow(bench, drive, { destination, before: isLost ? "secret_lost" : "unknown" });
}

/** For the profile's own key the question can be put to the service: its secret works, or it does not. */
async function howItStands(bench: Workbench, drive: EntryLease): Promise<Failure> {
  const { entry } = drive;
  const again = `integ journal recover ${entry.id} --replace-lost-secret`;
  const failure = outcomeUnknown(entry, new Failure("outcome_unknown", "Nobody knows whether the key was rotated."));
  const tell = (meaning: string): Failure =>
    new Failure(failure.kind, failure.message, { ...failure.details, meaning, hint: again });
  if (bench.account.keyId !== entry.resource_id) return tell(`${unknownWords} ${againWords}`);
  const answer = await bench.account.service.accessKeys.list();
  if (answer.kind === "answered")
    return tell(
      "The profile's secret still works now. Whether a second one was made nobody can tell; rotating again settles it.",
    );
  const isDead =
    (answer.kind === "refused" && answer.status === 401) ||
    (answer.kind === "not_sent" && answer.failure?.kind === "auth");
  if (!isDead) return tell(`${unknownWords} ${againWords}`);
  await recordAfterwards(bench, drive, { state: "secret_lost", last_error: null });
  return new Failure(
    "secret_lost",
    `The profile's own secret is dead: the key ${entry.resource_id} was rotated, and the new secret is lost.`,
    {
      ...detailsOf(entry),
      meaning: "This profile can do nothing any more. Another one that may administer keys gives it a new secret.",
      hint: `integ keys rotate ${entry.resource_id} -p <other profile> --secret-profile ${entry.profile}`,
    },
  );
}
