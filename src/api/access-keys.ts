// Checks and sends the requests for access keys of the legacy contract, and reads the responses (§2.4, §4.4, §8).
import { Failure, invalidValue } from "../errors.ts";
import type { Attempt } from "./call/attempt.ts";
import { type Answer, type Caller, jsonBytesOf, jsonOf } from "./call/caller.ts";
import { isTime } from "./json/iso-time.ts";
import { segment } from "./call/request.ts";
import { differencesIn, scopeDifferences } from "./oauth-client-creation.ts";
import { BrokenBody, type JsonBody, type JsonObject, parseJson } from "./json/json-text.ts";
import { readRows, type Rows } from "./json/unknown-list.ts";
import { type Advice, flags } from "../next-step.ts";
import { isObject } from "../json.ts";

export interface AccessKeyRequest {
  readonly name: string;
  readonly expiresAt?: string;
  readonly keyType?: "user_bound" | "service_account";
  /** The service's default is `["*"]`, full access. */
  readonly scopes?: readonly string[];
}

/** The known fields of a response. A field without a usable value is absent. */
export interface AccessKey {
  readonly id?: string;
  readonly name?: string;
  readonly keyType?: string;
  readonly boundEmail?: string;
  readonly status?: string;
  readonly lastUsedAt?: string | null;
  readonly expiresAt?: string | null;
  readonly createdAt?: string;
  readonly createdByUserId?: string;
  readonly scopes?: readonly string[];
}

/** A list is incomplete if it says so, has a row without an id, or is empty: a key was used to request it. */
export function readKeys({ rows, saysMore }: Rows): { readonly keys: readonly AccessKey[]; readonly isWhole: boolean } {
  const keys = rows.map((row) => readAccessKey(row.value));
  return { keys, isWhole: !saysMore && keys.length > 0 && keys.every(({ id }) => id !== undefined) };
}

export interface SecretAnswer {
  readonly key: AccessKey;
  /** Undefined if the response has none: the secret is lost. */
  readonly secret: string | undefined;
}

const longestName = 255;

const knownScopes = ["*", "push-ingest:*"];

export function checkAccessKey({ name, expiresAt, keyType, scopes }: AccessKeyRequest, nowMs: number): void {
  const characters = Array.from(name).length;
  if (characters < 1 || characters > longestName)
    throw invalidValue("key name", undefined, {
      why: `it has ${characters} characters; 1 to ${longestName} are allowed`,
      hint: `Name the key with ${flags.name} <name>.`,
    });
  if (expiresAt !== undefined) checkExpiry(expiresAt, nowMs);
  if (keyType !== undefined && keyType !== "user_bound" && keyType !== "service_account")
    throw invalidValue("key type", String(keyType), {
      hint: `Use ${flags.type} user_bound or ${flags.type} service_account.`,
    });
  if (scopes?.length === 0) refuse("A key needs at least one scope.", `Use ${flags.scope} '*'.`);
  for (const scope of scopes ?? [])
    if (!knownScopes.includes(scope)) throw invalidValue("key scope", scope, { hint: suggestedScopes(scope) });
}

function suggestedScopes(scope: string): Advice {
  const parts = scope.split(/[\s,;]+/);
  const isList = parts.length > 1 && parts.every((part) => knownScopes.includes(part));
  return isList
    ? `Write ${parts.map((part) => `${flags.scope} '${part}'`).join(" ")}.`
    : `Use ${flags.scope} '*' or ${flags.scope} 'push-ingest:*'.`;
}

/** @assumed an expiry lies in the future and has a time zone (§4.4 does not show the response to other values) */
function checkExpiry(expiresAt: string, nowMs: number): void {
  if (!isTime(expiresAt))
    throw invalidValue(flags.expiresAt, expiresAt, {
      why: "it is not an ISO 8601 time with a zone",
      hint: `Write it like ${flags.expiresAt} 2027-01-31T00:00:00Z.`,
    });
  if (Date.parse(expiresAt) <= nowMs)
    refuse(`${flags.expiresAt} is in the past: ${expiresAt}.`, `Use a later time, or ${flags.expiresIn} 90d.`);
}

function refuse(message: string, hint: Advice): never {
  throw new Failure("usage", message, { hint });
}

/** `--marker` appends this random text to a key's name, so that no other key has the same name. */
export const newMark = (): string => `-${crypto.randomUUID().replaceAll("-", "").slice(0, 12)}`;

export function leavesSpaceForMark(name: string): boolean {
  return Array.from(name).length + Array.from(newMark()).length <= longestName;
}

export function markedName(name: string, mark: string): string {
  const [ofName, ofMark] = [Array.from(name).length, Array.from(mark).length];
  if (ofName + ofMark <= longestName) return name + mark;
  const message = `With its mark the name has ${ofName + ofMark} characters: at most ${longestName} are allowed.`;
  return refuse(message, `Shorten the name to ${longestName - ofMark} characters, or leave ${flags.marker} out.`);
}

export function accessKeyBody({ name, expiresAt, keyType, scopes }: AccessKeyRequest): string {
  return JSON.stringify({ name, expiresAt, keyType, scopes: scopes && [...new Set(scopes)] });
}

export function keyDifferences(
  key: AccessKey,
  request: AccessKeyRequest,
  /** Ids that the new key cannot have: those of the keys that it replaces, and of the key that sent the request. */
  notIds: readonly (string | undefined)[],
): string | undefined {
  const keyType = request.keyType ?? "user_bound";
  const scopes = request.scopes ?? ["*"];
  return differencesIn([
    key.id !== undefined && notIds.includes(key.id) && `id is ${JSON.stringify(key.id)}, a key that existed before`,
    key.name !== undefined && key.name !== request.name && `name is ${JSON.stringify(key.name)}`,
    key.keyType !== undefined &&
      key.keyType !== keyType &&
      `keyType is ${JSON.stringify(key.keyType)} instead of ${keyType}`,
    expiryDifference(key.expiresAt, request.expiresAt),
    statusDifference(key),
    ...(key.scopes === undefined ? [] : scopeDifferences(new Set(scopes), new Set(key.scopes))),
  ]);
}

/** Checks only the status: §4.4 does not show which fields a rotation changes. */
export function rotatedKeyDifferences(key: AccessKey): string | undefined {
  return differencesIn([statusDifference(key)]);
}

function statusDifference({ status }: AccessKey): string | false {
  return status !== undefined && status.toLowerCase() !== "active" && `status is ${JSON.stringify(status)}`;
}

function expiryDifference(shown: string | null | undefined, requested: string | undefined): string | false {
  if (shown === undefined || (shown === null && requested === undefined)) return false;
  if (shown === null) return `expiresAt is null instead of ${requested}`;
  if (requested === undefined) return `expiresAt is ${JSON.stringify(shown)}, and no expiry was requested`;
  return (
    Math.abs(Date.parse(shown) - Date.parse(requested)) >= 1000 &&
    `expiresAt is ${JSON.stringify(shown)} instead of ${requested}`
  );
}

/** §4.4 gives creations and rotations no idempotency key, so a request that may have arrived must not be repeated. */
export interface AccessKeys {
  create(bodyText: string): Promise<Attempt<SecretAnswer>>;
  list(): Promise<Attempt<Rows>>;
  /** If the response is lost, the old secret may be invalid already. */
  rotate(id: string): Promise<Attempt<SecretAnswer>>;
  revoke(id: string): Promise<Attempt<AccessKey>>;
}

export function createAccessKeys(legacy: Caller): AccessKeys {
  return {
    create: (bodyText) =>
      legacy.send(
        {
          method: "POST",
          path: "/api/v1/access-keys",
          body: bodyText,
          success: [201],
          secretField: "secret",
          resource,
        },
        (answer) => readSecretAnswer(jsonOf(answer), true),
      ),
    // @assumed §4.4 does not show the response: integ accepts 200 with an array, or with an object that has one.
    list: () =>
      legacy.send({ method: "GET", path: "/api/v1/access-keys", success: [200], page: true }, (answer) =>
        readRows(jsonBytesOf(answer)),
      ),
    // @assumed §4.4 does not show the request and response: integ sends no body, and accepts 200 or 201 with `secret`.
    rotate: async (id) =>
      legacy.send(
        { method: "POST", path: `${pathOf(id)}/rotate`, success: [200, 201], secretField: "secret", resource },
        (answer) => readSecretAnswer(jsonOf(answer), false),
      ),
    // @assumed §4.4 does not show the request and response: integ sends no body, and accepts 200, 202 or 204, with or
    // without the key.
    revoke: async (id) =>
      legacy.send({ method: "DELETE", path: pathOf(id), success: [200, 202, 204], resource }, readRevoked),
  };
}

const resource = "access_key";

function pathOf(id: string): string {
  return `/api/v1/access-keys/${segment(id, "key id")}`;
}

/**
 * @param documented true for a creation, whose documented response always has an id
 * @assumed §4.4 does not show the response to a rotation: it may wrap the key in one object, under any name.
 */
function readSecretAnswer({ value }: JsonBody, documented: boolean): SecretAnswer {
  const found = objectWith(value, "secret") ?? objectWith(value, "id") ?? (isObject(value) ? value : undefined);
  if (!found) throw new BrokenBody("the response is not an access key");
  const key = readAccessKey(found);
  if (documented && key.id === undefined) throw new BrokenBody("the response is not an access key (id)");
  const { secret } = found;
  if (secret !== undefined && secret !== null && typeof secret !== "string")
    throw new BrokenBody("the secret is not a string");
  return { key, secret: secret || undefined };
}

/**
 * @returns a JSON object with the secret, and the id if known, at its top level; the response itself if possible
 * @assumed §4.4 does not show the response to a rotation: it may wrap the key.
 */
export function keyReceipt({ text, key, secret }: { text: string; key: AccessKey; secret: string }): string {
  const object = Object(JSON.parse(text)) as { readonly id?: unknown; readonly secret?: unknown };
  if (object.secret !== secret) return JSON.stringify({ ...key, secret });
  return object.id === undefined && key.id !== undefined ? JSON.stringify({ id: key.id, ...object }) : text;
}

function readRevoked({ status, body }: Answer): AccessKey {
  if (status === 204 || body.length === 0) return {};
  const { value } = parseJson(body);
  return readAccessKey(objectWith(value, "id") ?? {});
}

function objectWith(value: unknown, member: string): JsonObject | undefined {
  if (!isObject(value)) return undefined;
  if (Object.hasOwn(value, member)) return value;
  return Object.values(value)
    .filter(isObject)
    .find((inner) => Object.hasOwn(inner, member));
}

const textFields = ["id", "name", "keyType", "boundEmail", "status", "createdAt", "createdByUserId"] as const;
const nullableFields = ["lastUsedAt", "expiresAt"] as const;

export function readAccessKey(value: JsonObject): AccessKey {
  const key: Record<string, unknown> = {};
  for (const field of textFields)
    if (typeof value[field] === "string" && value[field] !== "") key[field] = value[field];
  for (const field of nullableFields)
    if (typeof value[field] === "string" || value[field] === null) key[field] = value[field];
  const { scopes } = value;
  if (Array.isArray(scopes) && scopes.every((scope) => typeof scope === "string")) key.scopes = scopes;
  return key;
}
