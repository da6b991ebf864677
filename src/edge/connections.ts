// Owns: the way from a profile to the service: one transport a command line, one connection a profile.
import type { DebugEvent, Transport } from "../api/http/exchange.ts";
import type { Service } from "../api/connect.ts";
import type { Clock, Settings } from "../context.ts";
import type { Terminal } from "../output/terminal.ts";
import { visibleJson } from "../output/visible-text.ts";
import type { ActiveProfile } from "../profiles/profile.ts";
import type { EmbeddedSandbox } from "./embedded-sandbox.ts";
import { once } from "./once.ts";

export interface ConnectionParts {
  readonly env: NodeJS.ProcessEnv;
  readonly settings: Settings;
  readonly cut: AbortSignal;
  readonly clock: Clock;
  readonly sandbox: EmbeddedSandbox;
  /** Where `--debug` goes. */
  readonly debug: Terminal | undefined;
}

export class Connections {
  readonly #parts: ConnectionParts;
  #transport: Transport | undefined;

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
  }

  readonly #open = once(async () => {
    const { createTransport } = await import("../api/http/transport.ts");
    const { env, settings, cut, clock, sandbox, debug } = this.#parts;
    this.#transport = createTransport({
      locate: (baseUrl) => sandbox.locate(baseUrl),
      timeoutMs: settings.timeoutMs,
      signal: cut,
      now: () => clock.now(),
      userAgent: `integ/${settings.version}`,
      proxy: {
        httpProxy: env.http_proxy,
        httpsProxy: env.https_proxy ?? env.HTTPS_PROXY,
        noProxy: env.no_proxy ?? env.NO_PROXY,
      },
      debug: debug && ((event) => debug.writeErr(debugLine(event))),
    });
    return this.#transport;
  });

  async connect(profile: ActiveProfile): Promise<Service> {
    const [{ connect }, transport] = await Promise.all([import("../api/connect.ts"), this.#open()]);
    const { settings, clock } = this.#parts;
    return connect({
      transport,
      baseUrl: profile.baseUrl,
      organizationId: profile.organizationId,
      serviceVersion: settings.serviceVersion ?? profile.serviceVersion,
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

  close(): void {
    this.#transport?.close();
  }
}

/** One line an event; the transport has left out everything secret. */
function debugLine(event: DebugEvent): string {
  return `debug: ${visibleJson(JSON.stringify(event))}\n`;
}
