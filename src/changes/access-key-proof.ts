// Owns: what must be true before an old key goes: the new one is the same person's, its secret opens the service, and the
// time that both were to work is over.
// Must not know: flags, terminals, files, how the new key was made.
import { Failure } from "../errors.ts";
import type { Entry } from "../journal/entry.ts";
import type { Drive } from "../journal/journal.ts";
import type { DestinationRecord } from "../secrets/destination.ts";
import { proveSecret } from "./access-key-secret.ts";
import { recordAfterwards, type Workbench } from "./workbench.ts";

/** An overlap up to this long is waited for; a longer one is finished by `journal recover` when it is due. */
const longestWaitMs = 15 * 60_000;

/** Asked before the old key goes though the new one was not proven to stand for it. */
type MayRevoke = (entry: Entry) => Promise<boolean>;

/** A user-bound key is tied to whoever creates it (§2.4): for another person's key that is no replacement. */
export async function checkIdentity(entry: Entry, child: Entry, mayRevoke: MayRevoke): Promise<void> {
  const { bound_to: before } = entry.detail;
  const { created_by: now } = child.detail;
  if (typeof before !== "string" || typeof now !== "string" || before === now) return;
  if (await mayRevoke(entry)) return;
  throw new Failure("pending", `The new key is bound to the user ${now}, the old one to ${before}.`, {
    meaning: "The new key works, and the old one is untouched. If that is meant, go on with --yes.",
    hint: `integ journal recover ${entry.id} --yes`,
  });
}

/** Shows that the new secret opens the service, before the old key goes. */
export async function prove(
  bench: Workbench,
  drive: Drive,
  { child, secret, mayRevoke }: { child: Entry; secret: string | undefined; mayRevoke: MayRevoke },
): Promise<void> {
  if (drive.entry.detail.proven !== undefined) return;
  const text = secret ?? (await reread(bench, child));
  if (text !== undefined && (await proveSecret(bench, text))) return markProven(bench, drive, "token exchange");
  if (await mayRevoke(drive.entry)) return markProven(bench, drive, "by the person");
  const why =
    text === undefined
      ? "its secret left this machine before a crash"
      : "the profile has a bearer token and knows no way to exchange a secret for one";
  throw new Failure("pending", `The new key ${child.resource_id ?? ""} cannot be proven: ${why}.`, {
    meaning: "The old key is untouched. If the new one works for you, go on with --yes.",
    hint: `integ journal recover ${drive.entry.id} --yes`,
  });
}

function reread(bench: Workbench, child: Entry): Promise<string | undefined> {
  return child.destination ? bench.secrets.reread(child.destination as DestinationRecord) : Promise.resolve(undefined);
}

/** The overlap begins when the new key is known to work. */
export function markProven(bench: Workbench, drive: Drive, how: string): void {
  const overlapMs = Number(drive.entry.detail.overlap_ms ?? 0);
  const until = new Date(bench.clock.now() + overlapMs).toISOString();
  recordAfterwards(bench, drive, { detail: { ...drive.entry.detail, proven: how, overlap_until: until } });
}

/** Both keys work until the overlap is over: a short one is waited for, a long one left to `journal recover`. */
export async function overlap(bench: Workbench, drive: Drive): Promise<void> {
  const until = String(drive.entry.detail.overlap_until);
  const leftMs = Date.parse(until) - bench.clock.now();
  if (!(leftMs > 0)) return;
  recordAfterwards(bench, drive, { state: "pending" });
  if (leftMs > longestWaitMs)
    throw new Failure("pending", `The new key works; the old one is revoked when the overlap ends, at ${until}.`, {
      meaning: "Type the command below then, or let a nightly job do it.",
    });
  const done = bench.tell.waiting("Both keys work; the old one is revoked when the overlap ends", leftMs);
  try {
    await bench.clock.sleep(leftMs);
  } finally {
    done();
  }
}
