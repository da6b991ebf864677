// The journal of one command line: opened when it is first asked for, and closed after it.
import { resolve } from "node:path";
import { parseDuration } from "../commands/options/values.ts";
import type { Clock } from "../changes/workbench.ts";
import type { Context, Settings } from "../context.ts";
import type { Journal } from "../journal/journal.ts";
import type { JournalParts } from "../journal/open-journal.ts";
import { type ProfileJournal, readProfileJournal } from "../profiles/names.ts";
import { actorOf } from "./actor.ts";
import { once } from "./connections.ts";

interface JournalSources {
  readonly env: NodeJS.ProcessEnv;
  readonly settings: Settings;
  readonly clock: Clock;
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
    const path = place.includes("://") ? place : resolve(this.#sources.settings.cwd, place);
    const journal = await openJournal({ ...this.#parts(), path });
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
    const { env, settings, clock } = this.#sources;
    const { home, timeoutMs } = settings;
    const path = (env.INTEG_JOURNAL ? undefined : this.ofProfile().journal) ?? settings.journalPath;
    const team = { env, home, requestMs: timeoutMs, leaseMs: leaseMs(env, timeoutMs) };
    return { path, now: () => clock.now(), actor: actorOf(env), team };
  }
}

/** A lease outlasts one request: `INTEG_LEASE` shortens it no further. */
function leaseMs(env: NodeJS.ProcessEnv, timeoutMs: number): number {
  const standard = timeoutMs + 15_000;
  if (!env.INTEG_LEASE) return standard;
  const asked = parseDuration(env.INTEG_LEASE, "INTEG_LEASE");
  return Math.min(standard, Math.max(asked, timeoutMs + 1000));
}
