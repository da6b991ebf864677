// Keeps undelivered secrets in private files, whose space is reserved before the request.
import { closeSync, constants } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import * as z from "zod/mini";
import type { MachineId } from "../disk/machine-id.ts";
import { Failure } from "../errors.ts";
import { folderSynced, removeFile } from "../disk/write.ts";
import { fileFailure, isMissing } from "../disk/error-words.ts";
import { checkPrivateFolder, ensurePrivateFolder, listFolder, openPrivateFile } from "../disk/private-file.ts";
import type { MayReplace, OneTimeSecret, SingleRecord } from "./destination.ts";
import { contentOf, fillReserve, isCut, reserveFile, wipe } from "./delivered-secret.ts";
import { shell, flags } from "../next-step.ts";
import { tryParseJson } from "../json.ts";

/** A function, because the creation of a schema is slow. */
export const secretSchema = () =>
  z.object({
    secret: z.string(),
    kind: z.enum(["oauth_client", "access_key"]),
    id: z.string(),
    clientId: z.optional(z.string()),
    receipt: z.string(),
  });

const entryPattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

/** After a power cut, a file may still have the length of its reserve: complete JSON then shows that it has a secret. */
function holdsSecret(fd: number): boolean {
  const text = contentOf(fd);
  return text !== "" && (isCut(fd) || tryParseJson(text) !== undefined);
}

/** A state folder's kept secrets. `entry` is the id of a journal entry. */
export class Undelivered {
  readonly folder: string;
  readonly place: string;
  readonly #stateDir: string;
  #isChecked = false;

  constructor(stateDir: string) {
    this.#stateDir = stateDir;
    this.folder = join(stateDir, "undelivered");
    this.place = `${hostname()}:${this.folder}`;
  }

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

  /** Needs no more disk space after `reserve`. */
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

  read(entry: string): OneTimeSecret {
    const text = this.#content(entry);
    if (text === "")
      throw new Failure("failed", `No secret is kept for ${entry}.`, {
        nextCommand: shell`integ journal list ${flags.all}`,
      });
    const parsed = secretSchema().safeParse(tryParseJson(text));
    if (parsed.success) {
      const { clientId, ...rest } = parsed.data;
      return clientId === undefined ? rest : { ...rest, clientId };
    }
    throw new Failure("failed", `${this.#pathOf(entry)} is damaged.`, {
      meaning: "It was left as it is: you may still find the secret in it. Without it the secret is lost.",
      hint: `Look for the secret in it. If it is not there, remove the file and run integ journal recover ${entry}.`,
    });
  }

  async release(entry: string): Promise<void> {
    await this.destroy(entry, { ifEmpty: true });
  }

  async destroy(entry: string, { ifEmpty = false } = {}): Promise<void> {
    const fd = this.#open(entry);
    if (fd === undefined) return;
    const doing = "destroy";
    const isRemoved = this.#with(fd, { entry, doing }, () => {
      if (ifEmpty && holdsSecret(fd)) return false;
      wipe(fd);
      removeFile(this.#pathOf(entry));
      return true;
    });
    if (!isRemoved) return;
    try {
      await folderSynced(this.folder);
    } catch (error) {
      throw fileFailure(error, doing, { path: this.#pathOf(entry) });
    }
  }

  /** Includes entries with an empty reserve. */
  entriesWithSpace(): string[] {
    return listFolder(this.folder).filter((name) => entryPattern.test(name));
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

  /** Creates the folder again if it was removed meanwhile. */
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

export interface AllowedDestinations {
  /** The variable or profile that has the list, for messages. */
  readonly from: string;
  readonly list: readonly string[];
}

export interface SecretKeeping {
  /** Only the act `overwrite` may call this. `RememberedDestination` describes this method and the next two. */
  completeDelivery(record: SingleRecord, may: MayReplace): Promise<boolean>;
  removeReserve(record: SingleRecord, entry: string, options?: { readonly isKept?: boolean }): Promise<void>;
  reread(record: SingleRecord): Promise<string | undefined>;
  readonly machine: MachineId;
  /** A secret's destination must be in every list. */
  readonly allowed?: (profile: string) => Promise<readonly AllowedDestinations[]>;
  /** `<host>:<folder>` of the kept secrets. */
  readonly place: string;
  /** Called before the secret exists, so that a full disk cannot lose it. */
  reserve(entry: string): Promise<void>;
  keep(entry: string, secret: OneTimeSecret): Promise<void>;
  /** @returns true if the secret was encrypted into the team's journal */
  escrow(entry: string, secret: OneTimeSecret): Promise<boolean>;
  isKept(entry: string): boolean;
  isEscrowed(entry: string): boolean;
  /** @throws Failure `failed` if the secret is missing or damaged; for an encrypted one, as `decryptSecret` */
  readKept(entry: string): Promise<OneTimeSecret>;
  /** Also removes the ciphertext. Only the act `destroy` may call this. Safe to repeat. */
  destroyKept(entry: string): Promise<void>;
  /** Removes an empty reserve, but no kept secret. Safe to repeat. */
  release(entry: string): Promise<void>;
}
