// From a profile to the service: one transport for a command line, one connection for a profile; and the sandbox inside this
// process, for the profiles `sandbox` and `sandbox-eu`.
import type { Service } from "../api/connect.ts";
import type { DebugEvent, Transport } from "../api/http/exchange.ts";
import type { TransportOptions } from "../api/http/transport.ts";
import type { Clock } from "../changes/workbench.ts";
import type { Settings } from "../context.ts";
import type { Terminal } from "../output/terminal.ts";
import { visibleJson } from "../output/visible-text.ts";
import type { SandboxAccess } from "../profiles/active-profile.ts";
import type { ActiveProfile } from "../profiles/profile.ts";
import type { RunningSandbox } from "../sandbox/sandbox.ts";

/** @returns a function that runs `make` at its first call and gives that answer ever after; a failure is tried again */
export function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}

export interface ConnectionParts {
  readonly env: NodeJS.ProcessEnv;
  readonly settings: Settings;
  readonly cut: AbortSignal;
  readonly clock: Clock;
  readonly sandbox: EmbeddedSandbox;
  /** Where `--debug` goes. */
  readonly debug: Terminal | undefined;
  /** Of the journal: nothing is changed for an entry that another may have. */
  readonly leases: TransportOptions["leases"];
}

interface TransportChoice {
  readonly timeoutMs?: number | undefined;
  readonly ca?: string | undefined;
  /** It changes the account, under the leases of the journal. A delivery of a secret waits for no one's lease. */
  readonly isOfAccount?: boolean;
}

export class Connections {
  readonly #parts: ConnectionParts;
  /** By their limits for one attempt, and the authorities that they trust. */
  readonly #transports = new Map<string, Promise<Transport>>();

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
  }

  /** @param options.ca certificates (PEM) of the only authorities that are trusted */
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
    return createTransport({
      locate: (baseUrl) => sandbox.locate(baseUrl),
      timeoutMs,
      signal: cut,
      now: () => clock.now(),
      userAgent: `integ/${settings.version}`,
      proxy: {
        httpsProxy: env.https_proxy ?? env.HTTPS_PROXY,
        noProxy: env.no_proxy ?? env.NO_PROXY,
      },
      ca,
      leases: isOfAccount ? leases : undefined,
      debug: debug && ((event) => debug.writeErr(debugLine(event))),
    });
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
        clientAuth: profile.oauth.client_auth,
      },
      now: () => clock.now(),
    });
  }

  async close(): Promise<void> {
    for (const opened of this.#transports.values()) (await opened).close();
  }
}

/** One line for each event; the transport has left out everything secret. */
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

  /** `sandbox://us` → the port it listens on; any other address is what it is. */
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
