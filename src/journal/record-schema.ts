// Defines a record's schema; the types of an entry are derived from it.
import * as z from "zod/mini";
import { Destination } from "./entry-destination.ts";

const text = z.string();
const textOrNull = z.nullable(z.string());
const optional = z.optional(z.string());
const flag = z.optional(z.boolean());
const number = z.optional(z.number());

const ActorSchema = z.object({ user: text, host: text, run: optional });

/** The token exchange that proves a new client. */
const Proof = z.object({
  token_endpoint: text,
  client_auth: z.enum(["client_secret_basic", "client_secret_post"]),
  audience: optional,
  issuer: optional,
  scope: optional,
});

/** The exchange that proves a key's secret. The text of a command is only in the profile. */
const Exchange = z.union([
  z.object({ kind: z.literal("command") }),
  z.object({ kind: z.literal("endpoint"), url: text }),
]);

/** What integ needs to continue an entry. Unknown keys are kept. */
export const detailShape = {
  /** How many failures of `integ apply` count toward a stalled item. */
  failures: number,
  /** The machine and state folder that recorded the secret as undelivered, and normally keep it for `claim`. */
  kept_at: optional,
  /** Machines and state folders that sent the request and may keep a secret. */
  attempted_at: z.optional(z.array(text)),
  /** The `MachineId.copy` of each of those folders, because a restored backup may have the same path. */
  attempted_by: z.optional(z.array(text)),
  /** Send times by the sender's clock, ISO 8601 UTC. Of several close times, only the first is stored. */
  sent_around: z.optional(z.array(text)),
  /** How the created credential differs from the request. */
  differs: optional,
  secret_claimed: flag,
  /** End of `Retry-After`, by the service's clock, ISO 8601 UTC. */
  put_off_until: optional,
  /** A request may have been sent; its outcome is unknown. Recorded before the request. */
  in_flight: flag,

  client_id: z.optional(textOrNull),
  /** integ generated the idempotency key, so no other program used it. */
  own_key: flag,
  /** HMAC that identifies the credential of the first request that the service may have stored (§4.2 rule 2). */
  sent_as: optional,
  old_client: optional,
  keep_old: flag,
  /** The profile's token endpoint at the admission, only for messages; null if it had none. */
  proof: z.optional(z.nullable(Proof)),

  // Fields of access keys, whose requests have no idempotency key.
  sent_at: optional,
  /** The user that created the key; null if the response does not show it. */
  created_by: z.optional(textOrNull),
  /** The requested name, without the mark. */
  base_name: optional,
  /** The profile's own key at the admission. The delivery may have replaced it since. */
  asking_key: optional,
  marked: flag,
  /** A time, a lifetime (`in <n> ms`) or `never`; null if no expiry was requested. */
  expiry: z.optional(textOrNull),
  orphan_certain: flag,
  mode: z.optional(z.enum(["in_place", "replacement"])),
  /** The key that is revoked, adopted or rotated in place. */
  key_id: optional,
  old_key: optional,
  bound_to: z.optional(textOrNull),
  update_profile: flag,
  /** The profile's exchange of a key's secret at the admission, only for messages; null if it had none. */
  exchange: z.optional(z.nullable(Exchange)),

  // Fields of rotations and creations.
  /** Overlap after the proof; with `overlap_unused_ms`, the maximum. */
  overlap_ms: number,
  /** Revoke the old key once it is unused for this long. */
  overlap_unused_ms: number,
  proven: optional,
  /** The end of the overlap, ISO 8601 UTC; set with the proof. */
  overlap_until: optional,
  /** Names of destinations where the new secret was found missing or replaced. */
  gone: z.optional(z.array(text)),
  /** A revocation of the old or lost credential may have been sent. */
  revoking: flag,
};

/** The fields that never change after the admission. */
const Intent = z.object({
  operation: text,
  /** Null if the API takes no idempotency key for the operation. */
  idempotency_key: textOrNull,
  profile: text,
  /** Another profile that later gets the same name has another id. */
  profile_id: text,
  /** The acting client, if the profile has client credentials; the same on every machine. */
  principal: optional,
  organization_id: textOrNull,
  region: text,
  base_url: text,
  service_version: text,
  method: optional,
  path: optional,
  /** Of a creation, the exact request body. Of other operations, a description that is never sent. */
  request_text: text,
  /** The same for equivalent requests, for example with scopes in another order. */
  fingerprint: text,
  replaces: textOrNull,
  /** The entry that this entry is a step of. */
  parent: textOrNull,
  policy: z.optional(z.object({ id: text, item: text })),
  created_at: text,
});

/** The fields that change, with their values after the step. */
const Now = z.object({
  resource_id: textOrNull,
  attempts: z.int().check(z.nonnegative()),
  /** Request ids of the last hundred responses to changes, the oldest first. */
  request_ids: z.array(text),
  /** Service's clock minus the sender's at the first response; null if unknown. */
  clock_offset_ms: z.nullable(z.number()),
  /** The last failure of the change. `message` may contain text of the service: only `output/` may show it. */
  last_error: z.nullable(z.object({ kind: text, message: text, status: number, code: optional, request_id: optional })),
  destination: z.nullable(Destination),
  replaced_by: textOrNull,
  detail: z.looseObject(detailShape),
});

/** `end` is null if the outcome follows in a later record. */
const Result = z.object({ step: text, begin: text, end: textOrNull });

type Content = { readonly intent: z.infer<typeof Intent>; readonly now: z.infer<typeof Now> };

function hasNeededDetail({ intent: { operation }, now: { detail } }: Content): boolean {
  if (operation === "oauth_client.rotate") return detail.old_client !== undefined;
  if (operation === "access_key.revoke" || operation === "access_key.adopt") return detail.key_id !== undefined;
  if (operation !== "access_key.rotate") return true;
  return detail.mode === "replacement"
    ? detail.old_key !== undefined
    : detail.mode === "in_place" && detail.key_id !== undefined;
}

export const RecordSchema = z
  .object({
    id: text.check(z.regex(/^[0-9a-hjkmnp-tv-z]{10}$/)),
    n: z.int().check(z.positive()),
    state: text,
    at: text,
    /** Hash of the entry's previous record; empty in the first. */
    prev: text.check(z.regex(/^(?:[0-9a-f]{64})?$/)),
    intent: Intent,
    result: Result,
    now: Now,
    by: ActorSchema,
  })
  .check(z.refine(hasNeededDetail));

export type JournalRecord = z.infer<typeof RecordSchema>;

export const intentKeys = Object.keys(Intent.shape) as (keyof JournalRecord["intent"])[];
export const nowKeys = Object.keys(Now.shape) as (keyof JournalRecord["now"])[];
