// Owns: the proof that the new client of a rotation can get a token, before the old one goes.
// Must not know: flags, terminals, files, how the new client was made.
import { Failure } from "../errors.ts";
import type { Entry } from "../journal/entry.ts";
import type { Drive } from "../journal/journal.ts";
import type { OneTimeSecret } from "../secrets/destination.ts";
import { proven, rereadSecret } from "./overlap.ts";
import { isInterruption, type Workbench } from "./workbench.ts";

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
  const kind = isInterruption(error) ? error.kind : "pending";
  return new Failure(kind, `The new client ${child.resource_id} could not be proven: ${error.message}`, {
    ...error.details,
    meaning: "The old client is untouched and works on; the new one's secret is delivered.",
  });
}

function markProven(bench: Workbench, drive: Drive, how: string): void {
  drive.record(proven(bench, drive.entry, how));
}
