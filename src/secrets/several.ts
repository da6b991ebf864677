// Delivers one secret to several destinations. The journal has the state of each, so that a later process delivers only to
// those without the secret.
import { realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { Failure } from "../errors.ts";
import {
  type Delivery,
  type Destination,
  type DestinationProgress,
  describeDestination,
  isSamePlace,
  type OneTimeSecret,
  type Preparation,
  type RecordOf,
  type Shown,
  type SingleDestinationPlace,
  type SingleRecord,
} from "./destination.ts";

export interface Part {
  state: DestinationProgress["state"];
  at: SingleRecord;
  readonly destination?: SingleDestinationPlace;
}

class SeveralDestinations implements Destination {
  readonly isStdout = false;
  readonly #parts: Part[];

  constructor(parts: readonly Part[]) {
    this.#parts = [...parts];
  }

  get record(): RecordOf<"several"> {
    return { kind: "several", places: this.#parts.map(({ state, at }) => ({ state, at })) };
  }

  async check(preparation: Preparation = {}): Promise<RecordOf<"several">> {
    this.#skipDelivered(preparation);
    refuseDuplicates(this.#parts);
    return this.#each(preparation, (destination) => destination.check());
  }

  async prepare(work: string, preparation: Preparation = {}): Promise<RecordOf<"several">> {
    this.#skipDelivered(preparation);
    const places = this.#parts.map(({ at }) => at);
    return this.#each(preparation, (destination) => destination.prepare(work, { ...preparation, places }));
  }

  #skipDelivered({ before }: Preparation): void {
    if (before?.kind !== "several") return;
    for (const place of before.places) {
      if (place.state !== "delivered") continue;
      const part = this.#parts.find(({ at }) => isSamePlace(at, place.at));
      if (part) Object.assign(part, place);
      else this.#parts.push({ ...place });
    }
  }

  async #each(
    { isKept = false }: Preparation,
    step: (destination: SingleDestinationPlace) => Promise<SingleRecord>,
  ): Promise<RecordOf<"several">> {
    for (const part of this.#missing()) {
      try {
        part.at = await step(part.destination);
      } catch (error) {
        // A kept secret still goes to the other destinations; `deliver` reports this error if it lasts.
        if (!isKept || !(error instanceof Failure)) throw error;
      }
    }
    return this.record;
  }

  *#missing(): Generator<Part & { readonly destination: SingleDestinationPlace }> {
    for (const part of this.#parts) if (part.state !== "delivered" && hasDestination(part)) yield part;
  }

  async deliver(secret: OneTimeSecret, { origin, record, may }: Delivery): Promise<void> {
    const refusals: { readonly name: string; readonly error: Failure }[] = [];
    for (const part of this.#missing()) {
      const recordPart = async (at: SingleRecord): Promise<void> => {
        part.at = at;
        await record(this.record);
      };
      try {
        // The destination is prepared again here, so that a failure does not stop the others.
        part.at = await part.destination.prepare(origin.entry);
        await part.destination.deliver(secret, { origin, may, record: recordPart });
        part.at = part.destination.record;
        part.state = "delivered";
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        part.state = "failed";
        refusals.push({ name: describeDestination(part.at).name, error });
      }
      await record(this.record);
    }
    if (refusals.length > 0) throw this.#undelivered(refusals);
  }

  #undelivered(refusals: readonly { readonly name: string; readonly error: Failure }[]): Failure {
    const all = this.#parts.length;
    const names = refusals.map(({ name }) => name).join(", ");
    const reasons = refusals.map(({ error }) => error.message).join(" ");
    const isConflict = refusals.every(({ error }) => error.kind === "conflict");
    const message = `${all - refusals.length} of ${all} destinations have it, but not ${names}. ${reasons}`;
    return new Failure(isConflict ? "conflict" : "undelivered", message);
  }

  shownBy(record: SingleRecord, about: Shown): Promise<string | undefined> {
    const part = this.#parts.find(({ at }) => isSamePlace(at, record));
    return part?.destination?.shownBy?.(record, about) ?? Promise.resolve(undefined);
  }

  async release(): Promise<void> {
    const failed: unknown[] = [];
    for (const { destination } of this.#parts) await destination?.release().catch((error) => void failed.push(error));
    if (failed.length > 0) throw failed[0];
  }
}

function hasDestination(part: Part): part is Part & { readonly destination: SingleDestinationPlace } {
  return part.destination !== undefined;
}

function refuseDuplicates(parts: readonly Part[]): void {
  const places = parts.map(({ at }) => (at.kind === "file" ? { ...at, path: realPath(at.path) } : at));
  const twice = places.find((place, index) => places.slice(0, index).some((other) => isSamePlace(place, other)));
  if (twice === undefined) return;
  throw new Failure("usage", `${describeDestination(twice).name} is given twice as a destination of the secret.`, {
    meaning: "Nothing was sent.",
    hint: "Name another destination for one of them.",
  });
}

/** Two names of one folder give the same path. */
function realPath(path: string): string {
  try {
    return join(realpathSync(dirname(path)), basename(path));
  } catch {
    return path;
  }
}

export function severalDestinations(destinations: readonly SingleDestinationPlace[]): Destination {
  const parts = destinations.map((destination) => partOf(destination));
  refuseDuplicates(parts);
  return new SeveralDestinations(parts);
}

function partOf(destination: SingleDestinationPlace): Part {
  return { state: "pending", at: destination.record, destination };
}

/**
 * Of the recorded destinations, only those that lack the secret are replaced. A typed destination replaces an equal one; a
 * typed command replaces any command, because commands are not stored. Without a match, the typed destinations replace all.
 * @param restore opens a missing destination that was not typed
 */
export async function rememberedSeveral(
  { places }: RecordOf<"several">,
  typed: readonly SingleDestinationPlace[],
  restore: (place: SingleRecord) => Promise<SingleDestinationPlace>,
): Promise<Destination> {
  const unmatched = typed.filter(
    ({ record }) => !places.some(({ state, at }) => state === "delivered" && isSamePlace(record, at)),
  );
  const typedCount = unmatched.length;
  const take = (fits: (record: SingleRecord) => boolean): SingleDestinationPlace | undefined => {
    const index = unmatched.findIndex(({ record }) => fits(record));
    return index < 0 ? undefined : unmatched.splice(index, 1)[0];
  };
  const missing = places.filter(({ state }) => state !== "delivered");
  const same = new Map(missing.map(({ at }) => [at, take((record) => isSamePlace(record, at))]));
  for (const { at } of missing)
    if (at.kind === "command") same.set(at, same.get(at) ?? take(({ kind }) => kind === "command"));
  const replacesAll = typedCount > 0 && unmatched.length === typedCount;
  const parts: Part[] = [];
  for (const place of places) {
    // A typed command that has the secret can show it again.
    const again = typed.find(({ record }) => record.kind === "command" && isSamePlace(record, place.at));
    if (place.state === "delivered") parts.push({ ...place, destination: again });
    else if (!replacesAll) parts.push({ ...place, destination: same.get(place.at) ?? (await restore(place.at)) });
  }
  const all = [...parts, ...unmatched.map(partOf)];
  refuseDuplicates(all);
  return new SeveralDestinations(all);
}
