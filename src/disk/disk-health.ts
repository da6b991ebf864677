// Stops a process from sending changes after its disk has failed.
import { Failure } from "../errors.ts";
import { shell } from "../next-step.ts";

/** After a failed write or sync, a later success does not prove that the data is stored. */
export class DiskHealth {
  #failure: string | undefined;

  /** Records that a write or a removal may not have reached the disk. @param why the error of the disk */
  markFailed(why: string): void {
    this.#failure ??= why;
  }

  assertHealthy(): void {
    if (this.#failure === undefined) return;
    throw new Failure("failed", `A record could not be saved, so nothing more is sent: ${this.#failure}`, {
      hint: "Remove the cause, then continue.",
      nextCommand: shell`integ journal recover`,
    });
  }
}
