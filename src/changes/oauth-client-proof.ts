// Owns: what must be true before the old client of a rotation goes: the new one can get a token, and still works when its
// time has come.
// Must not know: flags, terminals, files, how the new client was made.
import { retryRead } from "../api/http/retry.ts";
import { Failure } from "../errors.ts";
import type { Entry } from "../journal/entry.ts";
import type { EntryLease } from "../journal/journal.ts";
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
  drive: EntryLease,
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
      hint: `integ journal recover ${drive.entry.id} --yes`,
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

async function markProven(bench: Workbench, drive: EntryLease, how: string): Promise<void> {
  await drive.record(proven(bench, drive.entry, how));
}

/**
 * A proof tells of its own moment: until the old client goes, somebody may have revoked the new one, or the service
 * disabled it. Then the old one is the only one that works.
 * @throws Failure `unusable` where the new client does not work any more; nothing is revoked
 */
export async function stillWorks(bench: Workbench, child: Entry, oldId: string): Promise<void> {
  const id = child.resource_id ?? "";
  const { value } = await retryRead(() => bench.account.service.oauthClients.get(id), {
    what: "get OAuth client",
    retryForMs: bench.retryForMs,
    clock: bench.clock,
    random: () => bench.clock.random(),
    signal: bench.clock.interruption,
  });
  if (value.status === "active") return;
  throw new Failure("unusable", `The new client ${id} is ${value.status}: the old one is not revoked.`, {
    meaning: `This rotation ends here, and the old client ${oldId} stays as it is. Another rotation makes another new client.`,
    hint: `integ oauth-clients rotate ${oldId}`,
  });
}
