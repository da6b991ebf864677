// Owns: a new key like an old one: what the list tells of the old key, what the flags say instead, and what neither
// tells, which is asked for and never guessed (cli.md §5: nothing is widened silently). Pure.
// Must not know: how the list was read, what is sent.
import { type AccessKey, type AccessKeyRequest, checkAccessKey, readAccessKey } from "../../api/access-keys.ts";
import type { Rows } from "../../api/json/unknown-list.ts";
import type { KeyCreation } from "../../changes/access-key-creation.ts";
import { Failure } from "../../errors.ts";
import { expiryOf, type KeyFlags } from "./request.ts";

/**
 * The old key as far as the list tells of it; an empty object where the list may leave it out.
 * @throws Failure `not_found` where a whole list does not have it, `unusable` where it is revoked
 */
export function oldKeyOf(rows: Rows, id: string): AccessKey {
  const keys = rows.rows.map((row) => readAccessKey(row.value));
  const found = keys.find((key) => key.id === id);
  if (found?.status === "revoked")
    throw new Failure("unusable", `The key ${id} is revoked: there is nothing to replace.`, {
      hint: "integ keys create",
    });
  if (found !== undefined) return found;
  if (rows.saysMore || keys.some((key) => key.id === undefined) || keys.length === 0) return {};
  throw new Failure("not_found", `No key of the list has the id ${id}.`, { hint: "integ keys list" });
}

/**
 * @param nowMs milliseconds since 1970
 * @throws Failure `usage`, naming every flag that is missing
 */
export function replacementOf(old: AccessKey, flags: KeyFlags, nowMs: number): KeyCreation {
  const expiry = expiryOf(flags, nowMs);
  const name = flags.name ?? old.name;
  const keyType = flags.type ?? old.keyType;
  const scopes = flags.scope ?? old.scopes;
  const oldExpiry = stillAhead(old.expiresAt, nowMs);
  const expiresAt = expiry === undefined ? oldExpiry : expiry.at;
  const missing = [
    name === undefined && "--name",
    keyType === undefined && "--type",
    scopes === undefined && "--scope",
    expiresAt === undefined && "--expires-in (or --expires-at never)",
  ].filter((flag) => flag !== false);
  if (name === undefined || keyType === undefined || scopes === undefined || expiresAt === undefined)
    throw new Failure("usage", `The API does not tell enough of the old key: ${missing.join(", ")} must be given.`, {
      meaning:
        typeof old.expiresAt === "string"
          ? `Nothing was sent. The old key's expiry, ${old.expiresAt}, is past or no time.`
          : "Nothing was sent: what is not known is not guessed.",
    });
  const request = { name, keyType: keyType as AccessKeyRequest["keyType"], scopes, ...(expiresAt && { expiresAt }) };
  checkAccessKey(request, nowMs);
  return { request, ...(expiry && { expiry: expiry.twin }), marked: flags.nameMarker === true };
}

/** null: never; nothing where the row does not tell, or tells a time that no new key can have. */
function stillAhead(expiresAt: string | null | undefined, nowMs: number): string | null | undefined {
  if (typeof expiresAt !== "string") return expiresAt;
  return Date.parse(expiresAt) > nowMs ? expiresAt : undefined;
}
