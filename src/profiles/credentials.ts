// Stores the secrets of credentials in the keychain, or in private files if there is no keychain.
import { lstatSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod/mini";
import { Failure } from "../errors.ts";
import { areSameOrigins } from "./address.ts";
import type { Environment } from "./resolution.ts";
import { type Keychain, openKeychain } from "./keychain.ts";
import { createFile, replaceFile } from "../disk/atomic-write.ts";
import { syncFolder } from "../disk/write.ts";
import { fileFailure, isMissing } from "../disk/error-words.ts";
import { ensurePrivateFolder, listFolder, readPrivateFile } from "../disk/private-file.ts";
import { tryParseJson } from "../json.ts";

/** Refers to a stored secret. `ref` is random and never reused, so a new secret cannot overwrite the old one. */
export interface KeptSecret {
  readonly ref: string;
  readonly kept: "keychain" | "file";
}

export interface SavedSecret extends KeptSecret {
  /** Why the secret is in a file; set only if this call found no keychain. */
  readonly note?: string;
}

const Kept = z.object({ origins: z.array(z.string()), secret: z.string() });

/** Caches the absence of a keychain for a day, so that later commands need not search for one. */
const Absence = z.object({ keychain: z.literal("absent"), why: z.string(), checked_at: z.number() });
const rememberMs = 24 * 60 * 60 * 1000;

/** How much `testWrite` writes to a file, to find a full disk. */
const testBytes = 16 * 1024;

export interface CredentialOptions {
  readonly configDir: string;
  readonly keychain?: "auto" | "file";
  readonly env: Environment;
  readonly signal?: AbortSignal;
  readonly system?: Keychain;
  readonly now?: () => number;
}

class LayeredCredentials {
  readonly folder: string;
  readonly #options: CredentialOptions;
  readonly #keychain: Keychain;
  readonly #absencePath: string;

  constructor(options: CredentialOptions) {
    this.#options = options;
    this.folder = join(options.configDir, "credentials");
    this.#absencePath = join(options.configDir, "keychain.json");
    this.#keychain = options.system ?? openKeychain({ env: options.env, signal: options.signal });
  }

  async save(secret: string, origins: readonly string[]): Promise<SavedSecret> {
    const ref = crypto.randomUUID();
    const text = JSON.stringify({ origins, secret });
    const absence = await this.#whyNoKeychain();
    if (absence !== undefined) {
      this.#writeFile(ref, `${text}\n`);
      return { ref, kept: "file", note: absence || undefined };
    }
    const answer = await this.#keychain.set(ref, text);
    if (!answer.ok) throw new Failure("failed", `The keychain did not store the credential: ${answer.why}.`);
    return { ref, kept: "keychain" };
  }

  /** @throws Failure `auth` if the secret is missing, damaged or for other origins; no other credential is used */
  async read(kept: KeptSecret, origins: readonly string[]): Promise<string> {
    const text = kept.kept === "file" ? readPrivateFile(this.#pathOf(kept.ref)) : await this.#readKeychain(kept.ref);
    if (text === undefined) {
      throw new Failure("auth", `The profile's credential is missing from its ${kept.kept}.`, {
        meaning: "No other credential was used instead.",
      });
    }
    const parsed = Kept.safeParse(tryParseJson(text));
    if (!parsed.success) {
      throw new Failure("auth", `The profile's credential in its ${kept.kept} is damaged.`, {
        meaning: "No other credential was used instead.",
      });
    }
    if (!areSameOrigins(parsed.data.origins, origins)) {
      throw new Failure("auth", `The profile's credential was given for ${parsed.data.origins.join(" and ")}.`, {
        meaning: `It is not sent to ${origins.join(" and ")}. If that is right, give it again.`,
      });
    }
    return parsed.data.secret;
  }

  /** Safe to repeat. */
  async destroy(kept: KeptSecret): Promise<void> {
    if (kept.kept === "keychain") {
      const answer = await this.#keychain.delete(kept.ref);
      if (!answer.ok) throw new Failure("failed", `The keychain did not delete the credential: ${answer.why}.`);
      return;
    }
    const path = this.#pathOf(kept.ref);
    try {
      unlinkSync(path);
      syncFolder(this.folder);
    } catch (error) {
      if (!isMissing(error)) throw fileFailure(error, "delete", { path });
    }
  }

  /** Lists only secrets in files, without reading them. `writtenAt` is in milliseconds since 1970. */
  files(): { readonly ref: string; readonly path: string; readonly writtenAt: number }[] {
    return listFolder(this.folder).flatMap((name) => {
      const path = join(this.folder, name);
      const stats = lstatSync(path, { throwIfNoEntry: false });
      return stats?.isFile() ? [{ ref: name.replace(/\.json$/, ""), path, writtenAt: stats.mtimeMs }] : [];
    });
  }

  /** Writes and removes a test secret, so that a failure of `save` appears before a request. */
  async testWrite(): Promise<void> {
    const absence = await this.#whyNoKeychain();
    const ref = crypto.randomUUID();
    if (absence !== undefined) {
      this.#writeFile(ref, " ".repeat(testBytes));
      return this.destroy({ ref, kept: "file" });
    }
    const answer = await this.#keychain.probe(ref);
    if (!answer.ok) throw new Failure("failed", `The keychain stores no credentials: ${answer.why}.`);
  }

  async #readKeychain(ref: string): Promise<string | undefined> {
    const answer = await this.#keychain.get(ref);
    if (answer.ok) return answer.secret ?? undefined;
    throw new Failure("auth", `The keychain did not return the profile's credential: ${answer.why}.`, {
      meaning: "No other credential was used instead.",
      hint: "Unlock the keychain, then run the command again.",
    });
  }

  /** @returns undefined if a keychain exists, else the reason; empty if the keychain is disabled or known as absent */
  async #whyNoKeychain(): Promise<string | undefined> {
    if (this.#options.keychain === "file") return "";
    const now = (this.#options.now ?? Date.now)();
    const remembered = Absence.safeParse(tryParseJson(readPrivateFile(this.#absencePath) ?? ""));
    const age = remembered.success ? now - remembered.data.checked_at : Number.NaN;
    if (remembered.success && age >= 0 && age < rememberMs) return "";
    const answer = await this.#keychain.probe(`probe-${crypto.randomUUID()}`);
    if (answer.ok) return undefined;
    const absence = { keychain: "absent", why: answer.why, checked_at: now };
    ensurePrivateFolder(this.#options.configDir);
    try {
      replaceFile(this.#absencePath, `${JSON.stringify(absence)}\n`, { secret: true });
    } catch (error) {
      throw fileFailure(error, "write", { path: this.#absencePath });
    }
    return `The keychain is not available (${answer.why}): credentials are kept in ${this.folder}, readable by you alone.`;
  }

  #pathOf(ref: string): string {
    return join(this.folder, `${ref}.json`);
  }

  #writeFile(ref: string, text: string): void {
    ensurePrivateFolder(this.#options.configDir);
    ensurePrivateFolder(this.folder);
    const path = this.#pathOf(ref);
    try {
      createFile(path, text, { secret: true });
    } catch (error) {
      throw fileFailure(error, "keep the credential in", { path });
    }
  }
}

export type Credentials = Pick<LayeredCredentials, keyof LayeredCredentials>;

export function credentialsAt(options: CredentialOptions): Credentials {
  return new LayeredCredentials(options);
}
