// Owns: the sandbox inside this process, for the profiles `sandbox` and `sandbox-eu`: started when first asked for, its
// logical addresses turned into ports, closed with the command.
import type { RunningSandbox } from "../sandbox/sandbox.ts";
import type { SandboxAccess } from "../profiles/active-profile.ts";
import { once } from "./once.ts";

export class EmbeddedSandbox {
  readonly #stateDir: string;
  #running: RunningSandbox | undefined;

  constructor(stateDir: string) {
    this.#stateDir = stateDir;
  }

  readonly #start = once(async () => {
    const { startSandbox } = await import("../sandbox/sandbox.ts");
    const { sandboxFailure } = await import("../commands/sandbox/failure.ts");
    this.#running = await startSandbox({ stateDir: this.#stateDir }).catch((error: unknown) => {
      throw sandboxFailure(error);
    });
    return this.#running;
  });

  /** `sandbox://us` → the port it listens on; any other address is what it is. */
  async locate(baseUrl: string): Promise<string> {
    const region = /^sandbox:\/\/(us|eu)$/.exec(baseUrl)?.[1] as "us" | "eu" | undefined;
    if (!region) return baseUrl;
    return (await this.#start()).describe()[region].base_url ?? baseUrl;
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
