// The delivery of a secret that an earlier process kept on this machine, to a destination that is given now.
import { Failure } from "../errors.ts";
import type { EntryLease } from "../journal/journal.ts";
import type { Destination, DestinationRecord } from "../secrets/destination.ts";
import { afterClaim, belonging } from "./kept-secret.ts";
import { completeDelivery } from "./delivery-recovery.ts";
import { originOf, reserveDestination, undelivered } from "./secret-delivery.ts";
import { recordAfterwards, releaseReserved, type Workbench } from "./workbench.ts";

/**
 * Brings a kept secret to its destination, and destroys the copy afterwards.
 * @param lease an entry in state `undelivered`
 * @returns false if no secret is kept on this machine
 * @throws Failure `undelivered` if the destination does not take it: it is still kept
 */
export async function deliverKept(bench: Workbench, lease: EntryLease, destination: Destination): Promise<boolean> {
  const { id } = lease.entry;
  if (!bench.secrets.isKept(id)) return false;
  const kept = belonging(await bench.secrets.readKept(id), lease.entry);
  if (!(await completeDelivery(bench, lease))) {
    try {
      const place = await reserveDestination(bench, lease, { destination, isKept: true });
      await lease.record({ destination: { ...place } });
      const record = (at: DestinationRecord): Promise<void> =>
        recordAfterwards(bench, lease, { destination: { ...at } });
      await bench.clock.finishing(() => destination.deliver(kept, { origin: originOf(lease.entry), record }));
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      throw undelivered(lease.entry, error);
    } finally {
      await releaseReserved(bench, lease.entry, destination);
    }
  }
  await lease.record(afterClaim(lease.entry));
  await bench.secrets.destroyKept(id, { keepsProof: lease.entry.parent !== null });
  return true;
}
