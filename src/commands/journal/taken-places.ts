// Prevents two entries from delivering to the same file, profile or store in one command.
import { Failure } from "../../errors.ts";
import { shell } from "../../next-step.ts";
import {
  type Destination,
  describeDestination,
  isSamePlace,
  placesOf,
  type SingleRecord,
} from "../../secrets/destination.ts";

export class TakenPlaces {
  readonly #taken: { readonly place: SingleRecord; readonly by: string }[] = [];

  exclusive(destination: Destination, entry: string): Destination {
    const refuse = (): void => {
      const places = placesOf(destination.record);
      const other = this.#taken.find(({ place, by }) => by !== entry && places.some((own) => isSamePlace(own, place)));
      if (other === undefined) return;
      const { name } = describeDestination(other.place);
      throw new Failure("usage", `The secret of ${other.by} goes to ${name}, and a second one would replace it.`, {
        meaning: "Nothing was sent for this entry. One destination takes one secret.",
        hint: "Name another file for this secret.",
        nextCommand: shell`integ journal recover ${entry} --secret-file ${`./${entry}.secret`}`,
        recovers: entry,
      });
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
        const record = await destination.prepare(work, preparation);
        // The destination stays taken even if the delivery fails later, because the entry now records it.
        this.#take(destination, entry);
        return record;
      },
      deliver: (secret, delivery) => destination.deliver(secret, delivery),
      release: () => destination.release(),
      shownBy: async (record, about) => destination.shownBy?.(record, about),
    };
  }

  #take({ record }: Destination, by: string): void {
    for (const place of placesOf(record))
      if (place.kind !== "stdout" && place.kind !== "command") this.#taken.push({ place, by });
  }
}
