// Whether the disk took what this process wrote to it.
import { Failure } from "../errors.ts";
import { shell } from "../next-step.ts";

/** Whether this process may still believe its disk: after one failed write or sync, a later success says nothing about it. */
export class DiskHealth {
  #failure: string | undefined;

  /** Something that should be on the disk, or removed from it, may not be so. @param why as the disk said it */
  markFailed(why: string): void {
    this.#failure ??= why;
  }

  /** Called before every request that changes something. @throws Failure `failed` after a failed write */
  assertHealthy(): void {
    if (this.#failure === undefined) return;
    throw new Failure("failed", `The disk failed during the command, and nothing more is sent: ${this.#failure}`, {
      hint: "Check the disk, then finish what was started.",
      nextCommand: shell`integ journal recover`,
    });
  }
}
