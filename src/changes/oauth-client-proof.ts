// Owns: the two steps of a rotation between the new client and the end of the old one: the proof that the new one can get
// a token, and the overlap in which both work.
// Must not know: flags, terminals, files, how the new client was made.
import { Failure } from "../errors.ts";
import type { Entry } from "../journal/entry.ts";
import type { Drive } from "../journal/journal.ts";
import type { DestinationRecord, OneTimeSecret } from "../secrets/destination.ts";
import type { Workbench } from "./workbench.ts";

/** An overlap up to this long is waited for; a longer one is finished by `journal recover` when it is due. */
const longestWaitMs = 15 * 60_000;

interface Proof {
  readonly child: Entry;
  /** The new client's secret, where this process delivered it. */
  readonly secret: OneTimeSecret | undefined;
  /** Asked before the old client goes though the new one could not be proven after a crash. */
  readonly mayRevokeUnproven: (entry: Entry) => Promise<boolean>;
}

/** Shows that the new client can get a token, before the old one goes. */
export async function prove(
  bench: Workbench,
  drive: Drive,
  { child, secret, mayRevokeUnproven }: Proof,
): Promise<void> {
  if (drive.entry.detail.proven !== undefined || drive.entry.detail.keep_old === true) return;
  const exchange = bench.account.proveClient;
  if (!exchange) {
    bench.tell.note("Not proven by a token exchange: the profile has no token endpoint.");
    return markProven(bench, drive, "no token endpoint");
  }
  const clientId = secret?.clientId ?? clientIdOf(child);
  const text = secret?.secret ?? (await rereadSecret(bench, child));
  if (text !== undefined) {
    await exchange({ clientId, secret: text }).catch((error: unknown) => {
      throw unproven(child, error);
    });
    return markProven(bench, drive, "token exchange");
  }
  if (await mayRevokeUnproven(drive.entry)) return markProven(bench, drive, "by the person");
  throw new Failure(
    "pending",
    `The new client ${child.resource_id} could not be proven: its secret left this machine before a crash.`,
    {
      meaning: "The old client is untouched. If the new one works for you, go on with --yes.",
    },
  );
}

function clientIdOf(child: Entry): string {
  const { client_id } = child.detail;
  return typeof client_id === "string" ? client_id : "";
}

function unproven(child: Entry, error: unknown): unknown {
  if (!(error instanceof Failure)) return error;
  return new Failure("pending", `The new client ${child.resource_id} could not be proven: ${error.message}`, {
    ...error.details,
    meaning: "The old client is untouched and works on; the new one's secret is delivered.",
  });
}

function rereadSecret(bench: Workbench, child: Entry): Promise<string | undefined> {
  return child.destination ? bench.secrets.reread(child.destination as DestinationRecord) : Promise.resolve(undefined);
}

function markProven(bench: Workbench, drive: Drive, how: string): void {
  const overlapMs = Number(drive.entry.detail.overlap_ms ?? 0);
  const until = new Date(bench.clock.now() + overlapMs).toISOString();
  drive.record({ detail: { ...drive.entry.detail, proven: how, overlap_until: until } });
}

/** Both clients work until the overlap is over: a short one is waited for, a long one left to `journal recover`. */
export async function overlap(bench: Workbench, drive: Drive): Promise<void> {
  const until = String(drive.entry.detail.overlap_until);
  const leftMs = Date.parse(until) - bench.clock.now();
  if (!(leftMs > 0)) return;
  drive.record({ state: "pending" });
  if (leftMs > longestWaitMs)
    throw new Failure("pending", `The new client works; the old one is revoked when the overlap ends, at ${until}.`, {
      meaning: "Type the command below then, or let a nightly job do it.",
    });
  const done = bench.tell.waiting("Both clients work; the old one is revoked when the overlap ends", leftMs);
  try {
    await bench.clock.sleep(leftMs);
  } finally {
    done();
  }
}
