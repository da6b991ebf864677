// How a delivered secret is recognised by what is there: a digest under a random key of its entry, in the journal before
// the delivery. Where a file is, and which inode it has, prove nothing once a folder was moved or restored.
import { createHmac, timingSafeEqual } from "node:crypto";
import { closeSync, constants, fstatSync, openSync } from "node:fs";
import { fileFailure, isMissing } from "../disk/error-words.ts";
import { careful } from "../disk/write.ts";
import type { ProofKeys, RecordOf } from "./destination.ts";
import { contentOf, isSameFile } from "./reserved-file.ts";

type Proof = NonNullable<RecordOf<"file">["proof"]>;

/** More than any secret in any format. */
const longestBytes = 1024 * 1024;

function digestOf(text: string, key: Buffer): Buffer {
  return createHmac("sha256", key).update(text).digest();
}

/** @param text as it will be delivered */
export async function proofOf(
  text: string,
  { entry, keys }: { readonly entry: string; readonly keys: ProofKeys },
): Promise<Proof> {
  return { entry, digest: digestOf(text, await keys.make(entry)).toString("hex") };
}

/** Whether a text is what was delivered; undefined if nothing can say. */
export function isDelivered(text: string, proof: Proof | undefined, keys: ProofKeys | undefined): boolean | undefined {
  const key = proof && keys?.find(proof.entry);
  return proof && key && isSameSecret(digestOf(text, key), Buffer.from(proof.digest, "hex"));
}

/** Compared in a time that does not depend on where they differ. */
export function isSameSecret(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}

/**
 * Whether the file at that path holds what was delivered. Without a digest (entries of earlier versions) or without its key
 * (a journal that was moved without its state folder) the file's identity decides.
 */
export function holdsDelivered(path: string, record: RecordOf<"file">, keys: ProofKeys | undefined): boolean {
  const key = record.proof && keys?.find(record.proof.entry);
  if (!record.proof || !key) return record.inode !== undefined && isSameFile(path, record);
  const text = textAt(path);
  if (text === undefined) return false;
  return isDelivered(text, record.proof, keys) === true;
}

/** The text of a plain file, whatever its mode is now; undefined if there is none, or one that is no such text. */
function textAt(path: string): string | undefined {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | careful);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw fileFailure(error, "read", { path });
  }
  try {
    const stats = fstatSync(fd);
    return stats.isFile() && stats.size <= longestBytes ? contentOf(fd) : undefined;
  } catch (error) {
    throw fileFailure(error, "read", { path });
  } finally {
    closeSync(fd);
  }
}
