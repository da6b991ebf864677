// The places that took a secret in this command: none of them takes another.
import { Failure } from "../../errors.ts";
import type { Destination } from "../../secrets/destination.ts";

export class TakenPlaces {
  readonly #by = new Map<string, string>();

  /** The destination, as long as no other entry's secret went there in this command. @param at.name the place's own name */
  once(place: Destination, at: { readonly name: string; readonly entry: string }): Destination {
    const { name, entry } = at;
    const refuse = (): void => {
      const by = this.#by.get(name);
      if (by === undefined || by === entry) return;
      throw new Failure("usage", `${name} has just taken the secret of ${by}, and would lose it to another.`, {
        meaning: "Nothing was sent for this entry. One place takes one secret.",
        hint: `integ journal recover ${entry} --secret-file <path>`,
        recovers: entry,
      });
    };
    return {
      isStdout: place.isStdout,
      check: async () => {
        refuse();
        return place.check();
      },
      prepare: async (work) => {
        refuse();
        return place.prepare(work);
      },
      deliver: async (secret) => {
        await place.deliver(secret);
        this.#by.set(name, entry);
      },
      release: () => place.release(),
    };
  }
}
