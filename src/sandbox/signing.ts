// Owns: secrets and signatures of the sandbox: random identifiers, hashes of secrets, signed self-contained tokens.
// Must not know: what a token is for.
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";

/** `prefix` followed by 32 random hexadecimal digits. */
export function randomName(prefix: string): string {
  return prefix + randomBytes(16).toString("hex");
}

/** A secret is kept as this hash only. */
export function hashOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

function signature(key: string, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest().subarray(0, 18);
}

/**
 * `text` and its signature as one opaque token. `binding` is signed and not carried: whoever checks must know it.
 * @returns base64url text of two parts
 */
export function seal(key: string, sealed: { text: string; binding: string }): string {
  const mac = signature(key, `${sealed.binding}\n${sealed.text}`);
  return `${Buffer.from(sealed.text).toString("base64url")}.${mac.toString("base64url")}`;
}

/** The text of a token made by `seal` with the same key and binding, else undefined. */
export function unseal(key: string, sealed: { token: string; binding: string }): string | undefined {
  const parts = sealed.token.split(".");
  if (parts.length !== 2) return undefined;
  const text = Buffer.from(parts[0]!, "base64url").toString();
  const given = Buffer.from(parts[1]!, "base64url");
  const expected = signature(key, `${sealed.binding}\n${text}`);
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
  // base64 has many spellings of the same bytes: only the one that was given out is accepted.
  return seal(key, { text, binding: sealed.binding }) === sealed.token ? text : undefined;
}
