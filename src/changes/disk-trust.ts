// Owns: whether this process may still believe its disk. After a write or a sync that failed once nobody knows what of it
// reached the disk, and a later one that succeeds tells nothing of it: no further change is sent, and a later process goes on.
// Must not know: what was written, what would be sent.
import { Failure } from "../errors.ts";

export class DiskTrust {
  #doubt: string | undefined;

  /** Something that should stand on the disk, or be gone from it, may not be so. @param why as the disk said it */
  lose(why: string): void {
    this.#doubt ??= why;
  }

  /** Called before every request that changes something. @throws Failure `failed` once the trust is lost */
  assert(): void {
    if (this.#doubt === undefined) return;
    throw new Failure("failed", `The disk failed on the way, and nothing more is sent: ${this.#doubt}`, {
      hint: "Look after the disk, then: integ journal recover",
    });
  }
}
