import { type Entry, isSettled } from "../../journal/entry.ts";
import type { EntryDestination } from "../../journal/entry-destination.ts";
import type { Journal } from "../../journal/journal.ts";
import { currentChild } from "../../journal/rotations.ts";
import type { ListView } from "../../output/formats/format.ts";
import { describeDestination, type DestinationProgress, isSamePlace } from "../../secrets/destination.ts";

interface DeliveryRow {
  readonly address: string;
  readonly state: DestinationProgress["state"];
  readonly proof: string | null;
  /** When the delivery succeeded or failed, ISO 8601 UTC; null if not recorded. */
  readonly at: string | null;
}

export const deliveriesView: ListView = {
  columns: [
    { path: "address", heading: "destination" },
    { path: "state", heading: "delivery", kind: "status" },
    { path: "proof", heading: "proof" },
    { path: "at", heading: "at", kind: "time" },
  ],
  singular: "destination",
  plural: "destinations",
};

/** The deliveries of a rotation are recorded in the entry of its creation. */
export async function deliveriesOf(journal: Journal, entry: Entry): Promise<DeliveryRow[]> {
  const delivering = (await creationOf(journal, entry)) ?? entry;
  const steps = await journal.history(delivering.id);
  return progressIn(delivering, delivering.detail).map(({ state, at: place }) => {
    const { name, proof } = describeDestination(place);
    let [before, since]: [string | undefined, string | null] = [undefined, null];
    for (const step of steps) {
      const now = progressIn(step, delivering.detail).find(({ at }) => isSamePlace(at, place))?.state;
      if (now !== before) [before, since] = [now, step.at];
    }
    return {
      address: name,
      state,
      proof: state === "delivered" ? proof : null,
      at: state === "pending" || before !== state ? null : since,
    };
  });
}

export async function creationOf(journal: Journal, entry: Entry): Promise<Entry | undefined> {
  if (entry.operation !== "oauth_client.rotate" && entry.operation !== "access_key.rotate") return undefined;
  return currentChild(journal, entry);
}

/** The journal records no progress for a single destination, so the entry's state decides. */
function progressIn(
  { destination, state }: { readonly destination?: EntryDestination | null | undefined; readonly state: string },
  { differs }: Entry["detail"],
): readonly DestinationProgress[] {
  if (!destination) return [];
  if (destination.kind === "several") return destination.places;
  const isDelivered = state === "done" || (state === "unusable" && differs !== undefined);
  const isFailed = isSettled(state) || state === "undelivered" || state === "secret_lost";
  return [{ at: destination, state: isDelivered ? "delivered" : isFailed ? "failed" : "pending" }];
}
