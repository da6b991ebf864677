// Owns: where secrets of this command line may go, each place made when it is first asked for.
import { join } from "node:path";
import type { Profiles, Secrets, Settings } from "../context.ts";
import { Failure } from "../errors.ts";
import type { Terminal } from "../output/terminal.ts";
import { once } from "./once.ts";

export interface SecretParts {
  readonly env: NodeJS.ProcessEnv;
  readonly terminal: Terminal;
  readonly settings: Settings;
  readonly profiles: Profiles;
  /** Ends what must not be waited for any longer. */
  readonly cut: AbortSignal;
  readonly tellNote: (text: string) => void;
}

export function buildSecrets({ env, terminal, settings, profiles, cut, tellNote }: SecretParts): Secrets {
  const rooms = async () => ({ store: await profiles.store(), credentials: await profiles.credentials() });
  return {
    async destination(options, print) {
      const { destinationFor } = await import("../secrets/choice.ts");
      const issuedBy = options.secretProfile === undefined ? undefined : await profiles.active();
      return destinationFor(options, {
        env,
        cwd: settings.cwd,
        own: ownPlaces(settings),
        stdoutFd: 1,
        print,
        onStderr: (chunk) => terminal.writeErr(Buffer.from(chunk).toString("utf8")),
        profiles: rooms,
        signal: cut,
        ...(issuedBy && { issuedBy }),
        note: tellNote,
      });
    },
    undelivered: once(async () => {
      const { openUndelivered } = await import("../secrets/undelivered.ts");
      return openUndelivered({ stateDir: settings.stateDir });
    }),
    async wasDelivered(record, facts) {
      const { wasDelivered } = await import("../secrets/delivered.ts");
      return wasDelivered(record, facts, { profiles: () => profiles.store() });
    },
    async removeReserve(record, entry, options) {
      const { removeReserve } = await import("../secrets/delivered.ts");
      removeReserve(record, entry, options);
    },
    async reread(record) {
      const { rereadSecret } = await import("../secrets/reread.ts");
      return rereadSecret(record);
    },
    async mask(secret) {
      if (env.GITHUB_ACTIONS !== "true") return;
      const { checkMask, maskLine } = await import("../secrets/stdout.ts");
      await checkMask(2);
      terminal.writeErr(maskLine(secret));
    },
    fromStdin: (what) => readStdin(terminal, what),
  };
}

/** What a crash is recovered from, and what opens the account. */
function ownPlaces({ journalPath, stateDir, configDir }: Settings): string[] {
  const state = ["undelivered", "sandbox.json"].map((name) => join(stateDir, name));
  const config = ["profiles.json", "credentials", "keychain.json"].map((name) => join(configDir, name));
  return [...(journalPath.includes("://") ? [] : [journalPath]), ...state, ...config];
}

/** Longer than any secret: more is a file that was piped in by mistake. */
const longestSecretBytes = 64 * 1024;

async function readStdin(terminal: Terminal, what: string): Promise<string> {
  if (terminal.isTTY.stdin)
    throw new Failure("usage", `Standard input is a terminal: pipe the ${what} in, or leave the flag out to be asked.`);
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of terminal.stdin as AsyncIterable<Buffer | string>) {
    const bytes = Buffer.from(chunk as Buffer);
    size += bytes.length;
    if (size > longestSecretBytes) throw new Failure("usage", `Standard input is too long for the ${what}.`);
    chunks.push(bytes);
  }
  const text = Buffer.concat(chunks)
    .toString("utf8")
    .replace(/\r?\n$/, "");
  if (text.trim() === "") throw new Failure("usage", `Standard input held no ${what}.`);
  return text;
}
