// Secrets that could not be delivered, kept 0600 for `journal claim`, their space made before the request is sent.
import { closeSync, constants } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import * as z from "zod/mini";
import type { MachineId } from "../disk/machine-id.ts";
import { Failure } from "../errors.ts";
import { folderSynced, removeFile } from "../disk/write.ts";
import { fileFailure, isMissing } from "../disk/error-words.ts";
import {
  checkPrivateFolder,
  ensurePrivateFolder,
  listFolder,
  openPrivateFile,
  parseJson,
} from "../disk/private-file.ts";
import type { MayReplace, OneTimeSecret, SingleRecord } from "./destination.ts";
import { contentOf, fillReserve, isCut, reserveFile, wipe } from "./delivered-secret.ts";
import { shell, flags } from "../next-step.ts";

/** Made for the few commands that read a kept secret: making it takes a change longer than its request does. */
const keptSchema = () =>
  z.object({
    secret: z.string(),
    kind: z.enum(["oauth_client", "access_key"]),
    id: z.string(),
    clientId: z.optional(z.string()),
    receipt: z.string(),
  });

const entryPattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

/** A text that a power cut tore, before it was cut to its length, is none: its secret had not been kept. */
function holdsSecret(fd: number): boolean {
  const text = contentOf(fd);
  return text !== "" && (isCut(fd) || parseJson(text) !== undefined);
}

/**
 * The undelivered secrets of a state folder; made 0700 when the first is reserved. All calls are made on the main thread,
 * as those of the journal. `entry` is the id of a journal entry.
 */
export class Undelivered {
  /** For messages and `doctor`. */
  readonly folder: string;
  /** The machine with it, as the journal remembers where a secret is kept. */
  readonly place: string;
  readonly #stateDir: string;
  #isChecked = false;

  constructor(stateDir: string) {
    this.#stateDir = stateDir;
    this.folder = join(stateDir, "undelivered");
    this.place = `${hostname()}:${this.folder}`;
  }

  /** Makes space for a secret, written and synced. What is kept already stays. Safe to repeat. */
  async reserve(entry: string): Promise<void> {
    try {
      if (this.isKept(entry)) return;
      closeSync(await this.#reserveSpace(entry));
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      throw new Failure(error.kind, error.message, {
        ...error.details,
        meaning: "The request was not sent: a secret that cannot be delivered needs space here.",
        hint: error.details.hint ?? `Free space in ${this.folder}, or repair its permissions.`,
      });
    }
  }

  /** Keeps a secret, synced. It needs no more space if `reserve` came before. */
  async keep(entry: string, secret: OneTimeSecret): Promise<void> {
    const { secret: value, kind, id, clientId, receipt } = secret;
    const text = `${JSON.stringify({ secret: value, kind, id, clientId, receipt })}\n`;
    const fd = this.#open(entry) ?? (await this.#reserveSpace(entry));
    this.#with(fd, { entry, doing: "keep the secret in" }, () => fillReserve(fd, text));
  }

  isKept(entry: string): boolean {
    const fd = this.#open(entry);
    return fd !== undefined && this.#with(fd, { entry, doing: "read" }, () => holdsSecret(fd));
  }

  /** @throws Failure `failed` if none is kept or what is kept is damaged */
  read(entry: string): OneTimeSecret {
    const text = this.#content(entry);
    if (text === "")
      throw new Failure("failed", `No secret is kept for ${entry}.`, {
        nextCommand: shell`integ journal list ${flags.all}`,
      });
    const parsed = keptSchema().safeParse(parseJson(text));
    if (parsed.success) {
      const { clientId, ...rest } = parsed.data;
      return clientId === undefined ? rest : { ...rest, clientId };
    }
    throw new Failure("failed", `${this.#pathOf(entry)} is damaged.`, {
      meaning: "It was left as it is: you may still find the secret in it. Without it the secret is lost.",
      nextCommand: shell`rm ${this.#pathOf(entry)} && integ journal recover ${entry}`,
    });
  }

  /** Writes zeros over a kept secret and removes it. Safe to repeat. */
  async destroy(entry: string): Promise<void> {
    await this.#destroyKept(entry);
  }

  /** Gives back an empty reserve; a kept secret stays. Safe to repeat. */
  async release(entry: string): Promise<void> {
    await this.#destroyKept(entry, { ifEmpty: true });
  }

  async #destroyKept(entry: string, { ifEmpty = false } = {}): Promise<void> {
    const fd = this.#open(entry);
    if (fd === undefined) return;
    const doing = "destroy";
    const isGone = this.#with(fd, { entry, doing }, () => {
      if (ifEmpty && holdsSecret(fd)) return false;
      wipe(fd);
      removeFile(this.#pathOf(entry));
      return true;
    });
    if (!isGone) return;
    try {
      await folderSynced(this.folder);
    } catch (error) {
      throw fileFailure(error, doing, { path: this.#pathOf(entry) });
    }
  }

  /** Entries that space is taken for here: a secret, or what was reserved for one. */
  rooms(): string[] {
    return listFolder(this.folder).filter((name) => entryPattern.test(name));
  }

  /** Entries that a secret is kept for. */
  list(): string[] {
    return listFolder(this.folder)
      .filter((name) => entryPattern.test(name) && this.isKept(name))
      .sort();
  }

  #pathOf(entry: string): string {
    if (!entryPattern.test(entry)) throw new Failure("usage", "That is not the id of a journal entry.");
    return join(this.folder, entry);
  }

  async #reserveSpace(entry: string): Promise<number> {
    const path = this.#pathOf(entry);
    try {
      return await this.#inFolder(() => reserveFile(path, () => {}));
    } catch (error) {
      throw fileFailure(error, "reserve space for the secret in", { path });
    }
  }

  /** Makes the folder and checks it once, and makes it again if it was removed since. */
  async #inFolder<T>(work: () => Promise<T>): Promise<T> {
    if (!this.#isChecked) this.#ensureFolder();
    try {
      return await work();
    } catch (error) {
      if (!isMissing(error)) throw error;
      this.#ensureFolder();
      return work();
    }
  }

  #ensureFolder(): void {
    ensurePrivateFolder(this.folder);
    checkPrivateFolder(this.#stateDir);
    this.#isChecked = true;
  }

  #open(entry: string): number | undefined {
    const path = this.#pathOf(entry);
    try {
      return openPrivateFile(path, constants.O_RDWR);
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw fileFailure(error, "open", { path });
    }
  }

  #content(entry: string): string {
    const fd = this.#open(entry);
    return fd === undefined ? "" : this.#with(fd, { entry, doing: "read" }, () => contentOf(fd));
  }

  #with<T>(fd: number, { entry, doing }: { readonly entry: string; readonly doing: string }, work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw fileFailure(error, doing, { path: this.#pathOf(entry) });
    } finally {
      closeSync(fd);
    }
  }
}

/** A list that limits where secrets go. */
export interface AllowedDestinations {
  /** Who says so: a variable or a profile, as it begins a sentence. */
  readonly from: string;
  readonly list: readonly string[];
}

/** Where secrets of unfinished work are looked for, and kept if a destination fails. */
export interface SecretKeeping {
  /** As `RememberedDestination`. Called by the act `overwrite` alone: it may give a file its name. */
  completeDelivery(record: SingleRecord, may: MayReplace): Promise<boolean>;
  /**
   * Releases what was reserved at that destination for an entry. A whole secret stays, unless `isKept`: it is safe
   * elsewhere. Safe to repeat.
   */
  removeReserve(record: SingleRecord, entry: string, options?: { readonly isKept?: boolean }): Promise<void>;
  /** The secret that a finished delivery left readable (a file, a profile, a store), for a proof after a crash. */
  reread(record: SingleRecord): Promise<string | undefined>;
  readonly machine: MachineId;
  /** Where secrets of a profile's work may go at all: each list has to name the place, and none limits nothing. */
  readonly allowed?: (profile: string) => Promise<readonly AllowedDestinations[]>;
  /** The machine and the folder where secrets are kept until they are claimed. */
  readonly place: string;
  /** Reserves space for the secret before it exists, so that a disk that fills up later cannot lose it. */
  reserve(entry: string): Promise<void>;
  keep(entry: string, secret: OneTimeSecret): Promise<void>;
  /** Encrypts the secret for the team's journal, if that was asked for. @returns whether it is there now */
  escrow(entry: string, secret: OneTimeSecret): Promise<boolean>;
  isKept(entry: string): boolean;
  /** It is encrypted in the team's journal: this machine is not needed for it. */
  isEscrowed(entry: string): boolean;
  /** The kept secret; throws `failed` if none is kept or what is kept is damaged. */
  readKept(entry: string): Promise<OneTimeSecret>;
  /** Removes the kept copy of a secret, its ciphertext too. Called by the act `destroy` alone. Safe to repeat. */
  destroyKept(entry: string): Promise<void>;
  /** Releases an empty reserve; a kept secret stays. Safe to repeat. */
  release(entry: string): Promise<void>;
}
