// Owns: whether a secret reached the place that a journal entry remembers, and the last steps of a delivery to a file
// that a crash cut short. Must not know: the journal, the API. Design: journal.md `recover`; cli.md §4.
import { closeSync, constants, fstatSync, fsyncSync, ftruncateSync, unlinkSync } from "node:fs";
import { dirname } from "node:path";
import { Failure } from "../errors.ts";
import { fileFailure } from "../disk/error-words.ts";
import { openPrivateFile } from "../disk/private-file.ts";
import { syncFolder } from "../disk/write.ts";
import type { ProfileStore } from "../profiles/store.ts";
import type { DestinationRecord } from "./destination.ts";
import { contentOf, isSameFile, putInPlace, reservedName, wipe } from "./reserved-file.ts";
import { isWhole } from "./secret-format.ts";

type FileRecord = Extract<DestinationRecord, { kind: "file" }>;

/** What is known of the resource whose secret it is. */
export interface SecretFacts {
  readonly clientId?: string;
  /** Resource id, for access keys. */
  readonly id?: string;
}

export interface DeliveryTools {
  /** The stored profiles; asked for only where a profile was the destination. */
  profiles(): Promise<ProfileStore>;
}

function isAtItsName(record: FileRecord): boolean {
  if (record.inode === undefined || !isSameFile(record.path, record)) return false;
  try {
    // The crash may have come between the name and its sync.
    syncFolder(dirname(record.path));
    if (record.reserved !== undefined && isSameFile(record.reserved, record)) unlinkSync(record.reserved);
  } catch (error) {
    throw fileFailure(error, "finish the delivery to", { path: record.path });
  }
  return true;
}

/** The reserved file, opened, where it is still the remembered one. */
function openReserved(record: FileRecord): number | undefined {
  const { reserved, inode } = record;
  if (reserved === undefined || inode === undefined || !isSameFile(reserved, record)) return undefined;
  return openPrivateFile(reserved, constants.O_RDWR);
}

/** Puts a secret that was written whole under its name. False where the reserve is gone, empty or torn. */
function finishFile(record: FileRecord): boolean {
  let fd: number | undefined;
  try {
    fd = openReserved(record);
    if (fd === undefined || record.reserved === undefined) return false;
    const content = contentOf(fd);
    if (!isWhole(content, record.format)) return false;
    const length = Buffer.byteLength(content);
    if (fstatSync(fd).size !== length) ftruncateSync(fd, length);
    fsyncSync(fd);
    putInPlace(record.reserved, record);
    return true;
  } catch (error) {
    const { kind, message } = fileFailure(error, "give the secret its name", { path: record.path });
    throw new Failure(kind, message, {
      meaning: `The secret is whole, in ${record.reserved}. Move what is in its way, then recover again.`,
      hint: "integ journal recover",
      cause: error,
    });
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/**
 * True where the secret is safe at the place that was remembered. A file that was written whole and had not got its
 * name yet gets it now. Standard output and commands keep no trace: false.
 * @param facts what the service says of the resource; a profile holds the secret where it holds this id with it
 * @throws Failure where the secret is there and its name cannot be given: it is not lost, and must not be replaced
 */
export async function wasDelivered(
  record: DestinationRecord,
  facts: SecretFacts,
  tools: DeliveryTools,
): Promise<boolean> {
  if (record.kind === "file") return isAtItsName(record) || finishFile(record);
  if (record.kind !== "profile") return false;
  const profile = (await tools.profiles()).get(record.name);
  if (profile?.id !== record.profileId || profile.credential === null) return false;
  const { credential } = profile;
  if (credential.kind === "client_credentials")
    return facts.clientId !== undefined && credential.client_id === facts.clientId;
  return facts.id !== undefined && credential.key_id === facts.id;
}

/**
 * Removes what a file destination reserved in a process that is gone, where it holds no whole secret or is but a second
 * name of the finished file. A crash may have come after it was made and before the journal named it: then it is found by
 * its name, and goes where it is empty.
 * @param entry id of the journal entry that it was made for
 * @param options.isKept the secret is safe elsewhere: a whole copy that has not got its name is wiped and goes too
 */
export function removeReserve(
  record: DestinationRecord,
  entry: string,
  { isKept = false }: { readonly isKept?: boolean } = {},
): void {
  if (record.kind !== "file") return;
  if (record.reserved === undefined) return removeUnnamed(reservedName(record.path, entry));
  const fd = openReserved(record);
  if (fd === undefined) return;
  try {
    const isSecondName = isSameFile(record.path, record);
    if (!isSecondName && isWhole(contentOf(fd), record.format)) {
      if (!isKept) return;
      wipe(fd);
    }
    unlinkSync(record.reserved);
  } finally {
    closeSync(fd);
  }
}

function removeUnnamed(path: string): void {
  let fd: number;
  try {
    fd = openPrivateFile(path, constants.O_RDWR);
  } catch {
    return; // It is tidying up: a place that cannot be looked at any more is no reason to stop.
  }
  try {
    if (fstatSync(fd).nlink === 1 && contentOf(fd) === "") unlinkSync(path);
  } finally {
    closeSync(fd);
  }
}
