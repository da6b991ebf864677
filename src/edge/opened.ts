// A command opens its connections on first use: transports to services, the sandbox inside this process (profiles
// `sandbox` and `sandbox-eu`), and journals. They are closed when the command ends.
import { resolve } from "node:path";
import type { Service } from "../api/connect.ts";
import type { Transport } from "../api/http/exchange.ts";
import type { TransportOptions } from "../api/http/transport.ts";
import type { Clock } from "../operations/workbench.ts";
import type { DebugEvent } from "./debug-log.ts";
import { parseDuration } from "../commands/options/global.ts";
import type { Context, Secrets, Settings } from "../context.ts";
import { Failure } from "../errors.ts";
import { actorOf } from "../journal/actor.ts";
import type { Journal } from "../journal/journal.ts";
import { flags } from "../next-step.ts";
import type { JournalParts } from "../journal/open-journal.ts";
import type { Terminal } from "../output/terminal.ts";
import { visibleJson } from "../output/visible-text.ts";
import type { SandboxAccess } from "../profiles/active-profile.ts";
import type { ActiveProfile } from "../profiles/profile.ts";
import type { ProfileJournal } from "../profiles/profile-file.ts";
import type { Seal } from "../secrets/escrow.ts";
import type { RunningSandbox } from "../sandbox/sandbox.ts";
import { reservedNames } from "../profiles/names.ts";
import { isAddress, journalPlace } from "./folders.ts";

/** The returned function caches the first result of `make`, but no failure. */
export function once<T>(make: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () => {
    result ??= make().catch((error: unknown) => {
      result = undefined;
      throw error;
    });
    return result;
  };
}

export interface ConnectionParts {
  readonly env: NodeJS.ProcessEnv;
  readonly settings: Settings;
  readonly cut: AbortSignal;
  readonly clock: Clock;
  readonly sandbox: EmbeddedSandbox;
  readonly debug: Terminal | undefined;
  /** integ sends a change only while it holds the journal's leases: otherwise another process may work on the entry. */
  readonly leases: TransportOptions["leases"];
}

interface TransportChoice {
  readonly timeoutMs?: number | undefined;
  readonly ca?: string | undefined;
  /**
   * True for requests to the account's service, whose changes need the journal's leases. Deliveries of secrets need no
   * lease.
   */
  readonly isOfAccount?: boolean;
}

export class Connections {
  readonly #parts: ConnectionParts;
  readonly #transports = new Map<string, Promise<Transport>>();

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
  }

  /** If `ca` (PEM) is given, only its certificate authorities are trusted. */
  transport({ timeoutMs, ca, isOfAccount = false }: TransportChoice = {}): Promise<Transport> {
    const limitMs = Math.min(this.#parts.settings.timeoutMs, timeoutMs ?? Infinity);
    const name = `${limitMs} ${isOfAccount} ${ca ?? ""}`;
    const opened = this.#transports.get(name) ?? this.#open(limitMs, { ca, isOfAccount });
    this.#transports.set(name, opened);
    return opened;
  }

  async #open(timeoutMs: number, { ca, isOfAccount }: TransportChoice): Promise<Transport> {
    const { createTransport } = await import("../api/http/transport.ts");
    const { env, settings, cut, clock, sandbox, debug, leases } = this.#parts;
    const userAgent = `integ/${settings.version}`;
    const transport = createTransport({
      locate: (baseUrl) => sandbox.locate(baseUrl),
      timeoutMs,
      signal: cut,
      userAgent,
      proxy: {
        httpsProxy: env.https_proxy ?? env.HTTPS_PROXY,
        noProxy: env.no_proxy ?? env.NO_PROXY,
      },
      ca,
      leases: isOfAccount ? leases : undefined,
    });
    if (!debug) return transport;
    const { logged } = await import("./debug-log.ts");
    return logged(transport, { write: (event) => debug.writeErr(debugLine(event)), now: () => clock.now(), userAgent });
  }

  async connect(
    profile: ActiveProfile,
    options?: { readonly timeoutMs?: number; readonly serviceVersion?: string | undefined },
  ): Promise<Service> {
    const { settings, clock } = this.#parts;
    const opened = this.transport({ timeoutMs: options?.timeoutMs, isOfAccount: true });
    const [{ connect }, transport] = await Promise.all([import("../api/connect.ts"), opened]);
    return connect({
      transport,
      baseUrl: profile.baseUrl,
      organizationId: profile.organizationId,
      serviceVersion: options?.serviceVersion ?? settings.serviceVersion ?? profile.serviceVersion,
      credential: () => profile.credential(),
      legacyCredential: () => profile.legacy(),
      tokenEndpoint: profile.oauth && {
        tokenEndpoint: profile.oauth.token_endpoint,
        audience: profile.oauth.audience,
        issuer: profile.oauth.issuer,
        scope: profile.oauth.scope,
        clientAuth: profile.oauth.client_auth,
      },
      now: () => clock.now(),
    });
  }

  async close(): Promise<void> {
    for (const opened of this.#transports.values()) (await opened).close();
  }
}

/** `debug-log.ts` has removed the secrets from the event. */
function debugLine(event: DebugEvent): string {
  return `debug: ${visibleJson(JSON.stringify(event))}\n`;
}

export class EmbeddedSandbox {
  readonly #stateDir: string;
  #running: RunningSandbox | undefined;

  constructor(stateDir: string) {
    this.#stateDir = stateDir;
  }

  readonly #start = once(async () => {
    const { startSandbox } = await import("../sandbox/sandbox.ts");
    this.#running = await startSandbox({ stateDir: this.#stateDir }).catch(async (error: unknown) => {
      const { throwSandboxFailure } = await import("../commands/sandbox/failure.ts");
      return throwSandboxFailure(error);
    });
    return this.#running;
  });

  locate(baseUrl: string): string | Promise<string> {
    const region = /^sandbox:\/\/(us|eu)$/.exec(baseUrl)?.[1] as "us" | "eu" | undefined;
    return region ? this.#start().then((running) => running.describe()[region].base_url ?? baseUrl) : baseUrl;
  }

  async access(region: "us" | "eu"): Promise<SandboxAccess> {
    const here = (await this.#start()).describe()[region];
    return {
      organizationId: here.organization_id,
      oauth: { token_endpoint: here.token_endpoint!, client_auth: "client_secret_basic" },
      credential: async () => ({ kind: "api_key", key: here.api_key, style: "apikey-user" }),
      legacy: async () => ({
        kind: "exchange_endpoint",
        url: here.access_token_endpoint!,
        secret: here.access_key_secret,
      }),
    };
  }

  async close(): Promise<void> {
    await this.#running?.close();
  }
}

interface JournalSources {
  readonly env: NodeJS.ProcessEnv;
  readonly settings: Settings;
  readonly clock: Clock;
  readonly cut: AbortSignal;
  readonly terminal: Pick<Terminal, "writeErr">;
}

export class OpenedJournal {
  readonly #sources: JournalSources;
  #opened: Journal | undefined;
  readonly #others: Journal[] = [];

  constructor(sources: JournalSources) {
    this.#sources = sources;
  }

  readonly leases = {
    extend: async (): Promise<void> => this.#opened?.extendLeases(),
    areHeld: (): boolean => this.#opened?.holdsLeases() ?? true,
  };

  readonly open = once(async () => {
    const { openJournal } = await import("../journal/open-journal.ts");
    this.#opened = await openJournal(await this.#parts());
    return this.#opened;
  });

  readonly forCommands: Pick<Context, "journal" | "journalAt" | "initJournal"> = {
    journal: () => this.open(),
    journalAt: (place) => this.#at(place),
    initJournal: () => this.#init(),
  };

  async #at(place: string): Promise<Journal> {
    const { openJournal } = await import("../journal/open-journal.ts");
    const path = isAddress(place) ? place : resolve(this.#sources.settings.cwd, place);
    const journal = await openJournal({ ...(await this.#parts()), place: journalPlace(path) });
    this.#others.push(journal);
    return journal;
  }

  async #init(): ReturnType<Context["initJournal"]> {
    const { initJournal } = await import("../journal/open-journal.ts");
    return initJournal(await this.#parts());
  }

  /** The profiles `env`, `sandbox` and `sandbox-eu` have no journal settings. */
  async ofProfile(): Promise<ProfileJournal> {
    const { env, settings } = this.#sources;
    const none = { escrow: [] };
    if (settings.profile === undefined && env.INTEG_BASE_URL) return none;
    const name = settings.profile ?? (env.INTEG_PROFILE || undefined);
    if (name !== undefined && reservedNames.has(name)) return none;
    const { readProfileJournal } = await import("../profiles/profile-file.ts");
    return readProfileJournal(settings.configDir, name);
  }

  /** Runs the profile's key command even if the environment names the journal. */
  readonly #printedKeys = once(async () => {
    const { env, settings, cut, terminal } = this.#sources;
    const { keyCommand } = await this.ofProfile();
    if (keyCommand === undefined) return undefined;
    const { secretFromCommand } = await import("../profiles/shell-command.ts");
    const about = { flag: flags.journalKeyCommand, profile: keyCommand.profile };
    const onStderr = (chunk: Buffer): void => terminal.writeErr(chunk.toString("utf8"));
    return secretFromCommand(keyCommand.command, {
      ...about,
      env,
      timeLimitMs: settings.timeoutMs,
      signal: cut,
      onStderr,
    });
  });

  close(): void {
    for (const journal of [this.#opened, ...this.#others]) journal?.close();
  }

  async #parts(): Promise<JournalParts> {
    const { env, settings, clock } = this.#sources;
    const { timeoutMs } = settings;
    const path = (env.INTEG_JOURNAL ? undefined : (await this.ofProfile()).journal) ?? settings.journalPath;
    const printedKeys = this.#printedKeys;
    const team = { env, printedKeys, requestMs: timeoutMs, leaseMs: leaseMs(env, timeoutMs) };
    const place = journalPlace(path);
    return { place, now: () => clock.now(), actor: actorOf(env), stateDir: settings.stateDir, team };
  }
}

/** `INTEG_LEASE` can shorten a lease, but not below the time limit of one request. */
function leaseMs(env: NodeJS.ProcessEnv, timeoutMs: number): number {
  const standard = timeoutMs + 15_000;
  if (!env.INTEG_LEASE) return standard;
  const wanted = parseDuration(env.INTEG_LEASE, "INTEG_LEASE");
  return Math.min(standard, Math.max(wanted, timeoutMs + 1000));
}

interface EscrowSources {
  readonly env: NodeJS.ProcessEnv;
  readonly journal: OpenedJournal;
  readonly printNote: (text: string) => void;
}

export class EscrowChoice {
  readonly #sources: EscrowSources;
  #typed: readonly string[] | undefined;

  constructor(sources: EscrowSources) {
    this.#sources = sources;
  }

  readonly secrets: Secrets["escrow"] = {
    encrypt: async (secret, entry) => {
      const to = await this.#recipients();
      if (to.length === 0) return undefined;
      const { encryptSecret } = await import("../secrets/escrow.ts");
      return encryptSecret(secret, to, await this.#seal(entry));
    },
    decrypt: async (text, entry) => {
      const { decryptSecret } = await import("../secrets/escrow.ts");
      return decryptSecret(text, this.#sources.env.INTEG_ESCROW_IDENTITY, await this.#seal(entry));
    },
  };

  /** @throws Failure `usage` for an invalid recipient, and for recipients with a journal in a file */
  async check(typed: readonly string[] | undefined): Promise<void> {
    this.#typed = typed ?? this.#typed;
    const { env, journal, printNote } = this.#sources;
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
      printNote(
        "This machine's disk may not outlast the run (CI), and INTEG_ESCROW is not set: a secret that cannot be delivered is lost with the disk. INTEG_ESCROW=<age recipient> keeps it in the journal.",
      );
  }

  async #seal(entry: string): Promise<Seal> {
    return { entry, digests: (await this.#sources.journal.open()).escrowDigests };
  }

  async #recipients(): Promise<readonly string[]> {
    const { env, journal } = this.#sources;
    const named = this.#typed ?? env.INTEG_ESCROW?.split(/[\s,]+/).filter((one) => one !== "") ?? [];
    return named.length > 0 ? named : (await journal.ofProfile()).escrow;
  }
}
