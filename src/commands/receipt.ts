// Owns: showing what a change made: that standard output takes nothing more neither undoes the change nor stops the work.
// Must not know: what was made.
import { Failure } from "../errors.ts";

/** Shows what a change made. @throws what standard output did, told so that nobody asks for the change again */
export async function showMade(print: () => Promise<void>): Promise<void> {
  try {
    await print();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    throw new Failure(error.kind, error.message, {
      ...error.details,
      meaning: "The change is done; only its receipt could not be shown.",
      hint: "integ journal list --all",
    });
  }
}

/** What is shown in the middle of work that goes on, whether anybody reads it or not. */
export class ShownMeanwhile {
  #error: Error | undefined;

  async show(print: () => Promise<void>): Promise<void> {
    try {
      await showMade(print);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      this.#error = error;
    }
  }

  /** At the end of the work. @throws what `show` met */
  settle(): void {
    if (this.#error !== undefined) throw this.#error;
  }
}
