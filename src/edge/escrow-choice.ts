// To whom secrets are encrypted for a team's journal: as typed, as the environment says, else as the profile does.
import type { Secrets } from "../context.ts";
import { Failure } from "../errors.ts";
import type { OpenedJournal } from "./opened-journal.ts";

interface EscrowSources {
  readonly env: NodeJS.ProcessEnv;
  readonly journal: OpenedJournal;
  readonly tellNote: (text: string) => void;
}

export class EscrowChoice {
  readonly #sources: EscrowSources;
  #typed: readonly string[] | undefined;

  constructor(sources: EscrowSources) {
    this.#sources = sources;
  }

  /** The part that commands see. */
  readonly secrets: Secrets["escrow"] = {
    encrypt: async (secret) => {
      const to = await this.#recipients();
      return to.length === 0 ? undefined : (await import("../secrets/escrow.ts")).encryptSecret(secret, to);
    },
    decrypt: async (text) => {
      const { decryptSecret } = await import("../secrets/escrow.ts");
      return decryptSecret(text, this.#sources.env.INTEG_ESCROW_IDENTITY);
    },
  };

  /**
   * Checked before anything is sent.
   * @throws Failure `usage` if a recipient is none, or if the journal is a file: only its own machine reads that
   */
  async check(typed: readonly string[] | undefined): Promise<void> {
    this.#typed = typed ?? this.#typed;
    const { env, journal, tellNote } = this.#sources;
    const recipients = await this.#recipients();
    const { isShared } = await journal.open();
    if (recipients.length > 0) (await import("../secrets/escrow.ts")).checkRecipients(recipients);
    if (recipients.length > 0 && !isShared)
      throw new Failure("usage", "--escrow and INTEG_ESCROW need a team's journal, and this one is a file.", {
        meaning: "Nothing was sent.",
        hint: "Set INTEG_JOURNAL to the address of a team's journal, or leave --escrow and INTEG_ESCROW out.",
      });
    if (isShared && env.CI && recipients.length === 0)
      tellNote(
        "This machine's disk may not outlast the run (CI), and nothing says to whom a secret is encrypted: one that cannot be delivered is lost with the disk. INTEG_ESCROW=<age recipient> keeps it in the journal.",
      );
  }

  async #recipients(): Promise<readonly string[]> {
    const { env, journal } = this.#sources;
    const said = this.#typed ?? env.INTEG_ESCROW?.split(/[\s,]+/).filter((one) => one !== "") ?? [];
    return said.length > 0 ? said : journal.ofProfile().escrow;
  }
}
