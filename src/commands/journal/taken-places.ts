// The places that took a secret in this command: none of them takes another.
import { Failure } from "../../errors.ts";
import {
  type Destination,
  describeDestination,
  isSamePlace,
  placesOf,
  type SingleRecord,
} from "../../secrets/destination.ts";

export class TakenPlaces {
  readonly #taken: { readonly place: SingleRecord; readonly by: string }[] = [];

  /** The destination, as long as no other entry's secret went there in this command. */
  once(destination: Destination, entry: string): Destination {
    const refuse = (): void => {
      const places = placesOf(destination.record);
      const found = this.#taken.find(({ place, by }) => by !== entry && places.some((own) => isSamePlace(own, place)));
      if (found === undefined) return;
      const { name } = describeDestination(found.place);
      throw new Failure(
        "usage",
        `${name} has just received the secret of ${found.by}, and a second one would replace it.`,
        {
          meaning: "Nothing was sent for this entry. One destination takes one secret.",
          hint: `Name another file: integ journal recover ${entry} --secret-file <path>.`,
          recovers: entry,
        },
      );
    };
    return {
      isStdout: destination.isStdout,
      get record() {
        return destination.record;
      },
      check: async (preparation) => {
        refuse();
        return destination.check(preparation);
      },
      prepare: async (work, preparation) => {
        refuse();
        return destination.prepare(work, preparation);
      },
      deliver: async (secret, delivery) => {
        try {
          await destination.deliver(secret, delivery);
        } catch (error) {
          // Of several, some may have it.
          if (destination.record.kind === "several") this.#take(destination, entry);
          throw error;
        }
        this.#take(destination, entry);
      },
      release: () => destination.release(),
    };
  }

  #take({ record }: Destination, by: string): void {
    for (const place of placesOf(record))
      if (place.kind !== "stdout" && place.kind !== "command") this.#taken.push({ place, by });
  }
}
