// The journal of one command line: opened when it is first asked for, and closed after it.
import { resolve } from "node:path";
import { parseDuration } from "../commands/options/global.ts";
import type { Clock } from "../changes/workbench.ts";
import type { Context, Settings, Secrets } from "../context.ts";
import type { Journal, Slowly } from "../journal/journal.ts";
import type { JournalParts } from "../journal/open-journal.ts";
import { type ProfileJournal, readProfileJournal } from "../profiles/names.ts";
import { once } from "./connections.ts";
import { Failure } from "../errors.ts";
import { actorOf } from "../journal/actor.ts";
import { isAddress, journalPlace } from "./folders.ts";

interface JournalSources {
  readonly env: NodeJS.ProcessEnv;
  readonly settings: Settings;
  readonly clock: Clock;
  readonly slowly: Slowly;
}

export class OpenedJournal {
  readonly #sources: JournalSources;
  #opened: Journal | undefined;
  readonly #others: Journal[] = [];

  constructor(sources: JournalSources) {
    this.#sources = sources;
  }

  /** What a request for a change asks before it is sent. */
  readonly leases = {
    extend: async (): Promise<void> => this.#opened?.extendLeases(),
    areHeld: (): boolean => this.#opened?.holdsLeases() ?? true,
  };

  readonly open = once(async () => {
    const { openJournal } = await import("../journal/open-journal.ts");
    this.#opened = await openJournal(this.#parts());
    return this.#opened;
  });

  /** The part that commands see. */
  readonly forCommands: Pick<Context, "journal" | "journalAt" | "initJournal"> = {
    journal: () => this.open(),
    journalAt: (place) => this.#at(place),
    initJournal: () => this.#init(),
  };

  async #at(place: string): Promise<Journal> {
    const { openJournal } = await import("../journal/open-journal.ts");
    const path = isAddress(place) ? place : resolve(this.#sources.settings.cwd, place);
    const journal = await openJournal({ ...this.#parts(), place: journalPlace(path) });
    this.#others.push(journal);
    return journal;
  }

  async #init(): ReturnType<Context["initJournal"]> {
    const { initJournal } = await import("../journal/open-journal.ts");
    return initJournal(this.#parts());
  }

  /** What the profile says of the journal, if the environment does not choose another. */
  ofProfile(): ProfileJournal {
    const { env, settings } = this.#sources;
    const none = { escrow: [] };
    if (settings.profile === undefined && env.INTEG_BASE_URL) return none;
    const name = settings.profile ?? (env.INTEG_PROFILE || undefined);
    return readProfileJournal(settings.configDir, name);
  }

  close(): void {
    for (const journal of [this.#opened, ...this.#others]) journal?.close();
  }

  #parts(): JournalParts {
    const { env, settings, clock, slowly } = this.#sources;
    const { home, timeoutMs } = settings;
    const path = (env.INTEG_JOURNAL ? undefined : this.ofProfile().journal) ?? settings.journalPath;
    const team = { env, home, requestMs: timeoutMs, leaseMs: leaseMs(env, timeoutMs) };
    return { place: journalPlace(path), now: () => clock.now(), actor: actorOf(env), slowly, team };
  }
}

/** A lease outlasts one request: `INTEG_LEASE` shortens it no further. */
function leaseMs(env: NodeJS.ProcessEnv, timeoutMs: number): number {
  const standard = timeoutMs + 15_000;
  if (!env.INTEG_LEASE) return standard;
  const asked = parseDuration(env.INTEG_LEASE, "INTEG_LEASE");
  return Math.min(standard, Math.max(asked, timeoutMs + 1000));
}

// To whom secrets are encrypted for a team's journal: as typed, as the environment says, else as the profile does.

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
   * @throws Failure `usage` if a recipient is invalid, or if the journal is a file: only its own machine reads that
   */
  async check(typed: readonly string[] | undefined): Promise<void> {
    this.#typed = typed ?? this.#typed;
    const { env, journal, tellNote } = this.#sources;
    const recipients = await this.#recipients();
    if (recipients.length === 0 && !env.CI) return;
    const { isShared } = await journal.open();
    if (recipients.length > 0) (await import("../secrets/escrow.ts")).checkRecipients(recipients);
    if (recipients.length > 0 && !isShared)
      throw new Failure("usage", "--escrow and INTEG_ESCROW need a team's journal, and this one is a file.", {
        meaning: "Nothing was sent.",
        hint: "Set INTEG_JOURNAL to the address of a team's journal, or leave --escrow and INTEG_ESCROW out.",
      });
    if (isShared && env.CI && recipients.length === 0)
      tellNote(
        "This machine's disk may not outlast the run (CI), and INTEG_ESCROW is not set: a secret that cannot be delivered is lost with the disk. INTEG_ESCROW=<age recipient> keeps it in the journal.",
      );
  }

  async #recipients(): Promise<readonly string[]> {
    const { env, journal } = this.#sources;
    const said = this.#typed ?? env.INTEG_ESCROW?.split(/[\s,]+/).filter((one) => one !== "") ?? [];
    return said.length > 0 ? said : journal.ofProfile().escrow;
  }
}
