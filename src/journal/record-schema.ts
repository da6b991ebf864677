// What a record of an entry holds: one schema for both engines, for import and for export. The types of an entry come from it.
import * as z from "zod/mini";
import { ConsentSchema, Destination } from "./entry-destination.ts";

const text = z.string();
const textOrNull = z.nullable(z.string());
const optional = z.optional(z.string());
const flag = z.optional(z.boolean());
const number = z.optional(z.number());

export const ActorSchema = z.object({ user: text, host: text, run: optional });

/** The token exchange that proves a new client. `sandbox://…` is the sandbox's own, wherever it listens. */
const Proof = z.object({
  token_endpoint: text,
  client_auth: z.enum(["client_secret_basic", "client_secret_post"]),
  audience: optional,
  issuer: optional,
  scope: optional,
});

/** How a key's secret becomes a token, which proves it. The text of a command is not kept: the profile's own is run. */
const Exchange = z.union([
  z.object({ kind: z.literal("command") }),
  z.object({ kind: z.literal("endpoint"), url: text }),
]);

/** What the work of an entry needs in order to continue. Keys that are not named here are kept. */
export const detailShape = {
  /** How often `integ apply` failed at it since it was admitted. */
  failures: number,
  /** Machine and folder where the secret is kept for `claim`. */
  kept_at: optional,
  /** Machines and folders whose processes have sent it: in each a secret may be kept. */
  attempted_at: z.optional(z.array(text)),
  /** How the receipt differs from the request, in words: what exists is not what was asked for. */
  differs: optional,
  /** A person has claimed the secret: it is not lost, wherever it went. */
  secret_claimed: flag,
  /** Until when the service asked to wait, by its own clock, ISO 8601 UTC; absent if it did not say. */
  put_off_until: optional,
  /** A request may have arrived; a crash between the record and the response leaves it true. */
  in_flight: flag,

  client_id: z.optional(textOrNull),
  /** The idempotency key is random and of this entry alone: what is under it was made by the entry's own requests. */
  own_key: flag,
  /** The credential of the first attempt that the service may have stored (§4.2 rule 2): an HMAC of the entry's id under it. */
  sent_as: optional,
  /** The client that a rotation replaces. */
  old_client: optional,
  keep_old: flag,
  /** The proof that is due before the old one is revoked; null: none was. */
  proof: z.optional(z.nullable(Proof)),

  // Of an access key: its requests must not be repeated blindly, because the contract has no idempotency key for them.
  /** When the last request left, ISO 8601 UTC. */
  sent_at: optional,
  /** The user that the key is bound to. */
  created_by: z.optional(textOrNull),
  /** The name as it was asked for, without the mark. */
  base_name: optional,
  /** The key that asked for it, if it was known: a new one cannot be that. The profile may have the new one by now. */
  asking_key: optional,
  marked: flag,
  /** How the expiry was asked for (`in 90d`); null: as the request says. */
  expiry: z.optional(textOrNull),
  orphan_certain: flag,
  mode: z.optional(z.enum(["in_place", "replacement"])),
  /** The key that is revoked, adopted or rotated in place. */
  key_id: optional,
  /** The key that a rotation replaces. */
  old_key: optional,
  new_key: optional,
  bound_to: z.optional(textOrNull),
  update_profile: flag,
  /** How a new secret is proven; null: the profile knew no way. */
  exchange: z.optional(z.nullable(Exchange)),

  // Of a rotation, and of a creation whose secret is lost.
  /** For how long the old credential is kept after the new one is proven; at most, if it is kept as long as it is used. */
  overlap_ms: number,
  /** The old key is revoked earlier if it was not used for that long. */
  overlap_unused_ms: number,
  /** How the new credential was proven. */
  proven: optional,
  /** ISO 8601 UTC; set with the proof. */
  overlap_until: optional,
  /** A request to revoke what is old or lost has left: it may no longer work. */
  revoking: flag,
};

/** The intent: the exact request with its key, never changed once admitted. */
const Intent = z.object({
  operation: text,
  /** null if the contract has no idempotency key. */
  idempotency_key: textOrNull,
  /** Name of the profile at the time. */
  profile: text,
  /** The profile's own id, which changes with what the profile is bound to. */
  profile_id: text,
  /** The client that acted, if the profile has client credentials: the same on every machine. */
  principal: optional,
  organization_id: textOrNull,
  region: text,
  base_url: text,
  service_version: text,
  method: optional,
  path: optional,
  /** The request's body, character for character as it is sent; empty if there is none. */
  request_text: text,
  /** Normal form of the request: the same text means the same request (scopes as a set, for example). */
  fingerprint: text,
  /** Entry whose client this one replaces. */
  replaces: textOrNull,
  /** Entry of the larger piece of work that this one belongs to. */
  parent: textOrNull,
  /** The policy, by its own id, and its item that the work is for. */
  policy: z.optional(z.object({ id: text, item: text })),
  /** The consent of a person or a policy, given with the request. */
  consent: z.optional(z.array(ConsentSchema)),
  /** ISO 8601 UTC, milliseconds. */
  created_at: text,
});

/** The fields that a step may change, as they are after the step. */
const Now = z.object({
  resource_id: textOrNull,
  /** How often the request was sent. */
  attempts: z.int().check(z.nonnegative()),
  /** Of the responses to its requests that changed something or tried to, the oldest first; the last hundred. */
  request_ids: z.array(text),
  /** How far the service's clock was ahead of this machine's when the work began, as its first response said; null: unknown. */
  clock_offset_ms: z.nullable(z.number()),
  /** What the last attempt met. `message` may hold the service's words: only `output/` may show it. */
  last_error: z.nullable(z.object({ kind: text, message: text, status: number, code: optional, request_id: optional })),
  destination: z.nullable(Destination),
  replaced_by: textOrNull,
  detail: z.looseObject(detailShape),
});

/** What a step did: `end` is null of one that began, and whose outcome is unknown until a later record says it. */
const Result = z.object({ step: text, begin: text, end: textOrNull });

type Content = { readonly intent: z.infer<typeof Intent>; readonly now: z.infer<typeof Now> };

/** Whether the detail has what work of that operation cannot do without. */
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
    /** Counts the records of the entry, from 1. */
    n: z.int().check(z.positive()),
    state: text,
    at: text,
    /** The hash of the entry's record before this one; empty in its first. */
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
