// Defines the schema of a record, from which the types of an entry are derived.
import * as z from "zod/mini";
import { ConsentSchema, Destination } from "./entry-destination.ts";

const text = z.string();
const textOrNull = z.nullable(z.string());
const optional = z.optional(z.string());
const flag = z.optional(z.boolean());
const number = z.optional(z.number());

const ActorSchema = z.object({ user: text, host: text, run: optional });

/** The token exchange that proves a new client. `sandbox://…` is the sandbox's own address. */
const Proof = z.object({
  token_endpoint: text,
  client_auth: z.enum(["client_secret_basic", "client_secret_post"]),
  audience: optional,
  issuer: optional,
  scope: optional,
});

/** The exchange of a key's secret for a token, which proves the secret. Only the profile has the text of the command. */
const Exchange = z.union([
  z.object({ kind: z.literal("command") }),
  z.object({ kind: z.literal("endpoint"), url: text }),
]);

/** The data that integ needs to continue an entry. Unknown keys are kept. */
export const detailShape = {
  /** How many runs of `integ apply` failed to finish this entry. */
  failures: number,
  /** Machine and state folder that keep the secret for `claim`. */
  kept_at: optional,
  /** Machines and state folders that sent the request: each may keep a secret. */
  attempted_at: z.optional(z.array(text)),
  /** Those state folders by `MachineId.copy`: another folder, or a restored backup, may be at the same path now. */
  attempted_by: z.optional(z.array(text)),
  /** Times at which the request was sent, by this machine's clock, ISO 8601 UTC; of close times only the first. */
  sent_around: z.optional(z.array(text)),
  /** How the created credential differs from the request, in words. */
  differs: optional,
  secret_claimed: flag,
  /** End of the service's `Retry-After`, by its clock, ISO 8601 UTC. */
  put_off_until: optional,
  /** A request may have been sent, and its outcome is not known. Recorded before the request, so that it survives a crash. */
  in_flight: flag,

  client_id: z.optional(textOrNull),
  /** integ generated the idempotency key, so only this entry's requests can have created a client with it. */
  own_key: flag,
  /**
   * An HMAC keyed by the credential of the first request that the service may have stored (§4.2 rule 2). It identifies
   * that credential.
   */
  sent_as: optional,
  old_client: optional,
  keep_old: flag,
  /** The proof required before the old credential is revoked; null if no proof is required. */
  proof: z.optional(z.nullable(Proof)),

  // Fields of access keys. Their requests have no idempotency key, so a lost request must not simply be repeated.
  sent_at: optional,
  /** Id of the user that created the key; null if the response does not show it. */
  created_by: z.optional(textOrNull),
  /** The requested name, without the mark. */
  base_name: optional,
  /** Id of the profile's key at admission: the profile may have the created key by now. */
  asking_key: optional,
  marked: flag,
  /** The requested expiry: a time, a lifetime (`in <n> ms`) or `never`; null if none was given. */
  expiry: z.optional(textOrNull),
  orphan_certain: flag,
  mode: z.optional(z.enum(["in_place", "replacement"])),
  /** The key that is revoked, adopted or rotated in place. */
  key_id: optional,
  old_key: optional,
  new_key: optional,
  bound_to: z.optional(textOrNull),
  update_profile: flag,
  /** How a new secret is proven; null if the profile had no exchange. */
  exchange: z.optional(z.nullable(Exchange)),

  // Fields of rotations, and of creations whose secret is lost.
  /** How long the old credential stays active after the proof; with `overlap_unused_ms`, the maximum. */
  overlap_ms: number,
  /** Revoke the old key earlier if it is unused for that long. */
  overlap_unused_ms: number,
  proven: optional,
  /** End of the overlap, ISO 8601 UTC; set with the proof. */
  overlap_until: optional,
  /** Destinations from which the new secret has disappeared, as seen by a machine that can read them. */
  gone: z.optional(z.array(text)),
  /** A request to revoke the old or lost credential was sent: the credential may no longer work. */
  revoking: flag,
};

/** The exact request and its key, which never change after the admission. */
const Intent = z.object({
  operation: text,
  /** Null if the API takes no idempotency key for the operation. */
  idempotency_key: textOrNull,
  profile: text,
  /** Id of the profile; binding the profile's name to another account changes it. */
  profile_id: text,
  /** The acting client, if the profile has client credentials. Its id is the same on every machine. */
  principal: optional,
  organization_id: textOrNull,
  region: text,
  base_url: text,
  service_version: text,
  method: optional,
  path: optional,
  /** The body exactly as sent; empty without a body. */
  request_text: text,
  /** Equivalent requests have the same fingerprint, for example with the same scopes in another order. */
  fingerprint: text,
  replaces: textOrNull,
  /** Id of the entry that this entry is a step of. */
  parent: textOrNull,
  /** The policy's own id, and the item's name. */
  policy: z.optional(z.object({ id: text, item: text })),
  consent: z.optional(z.array(ConsentSchema)),
  created_at: text,
});

/** A step may change these fields; a record has their values after the step. */
const Now = z.object({
  resource_id: textOrNull,
  attempts: z.int().check(z.nonnegative()),
  /** Request ids of the last hundred responses to changes, the oldest first. */
  request_ids: z.array(text),
  /** Difference of the service's clock from this machine's at the first response; null if unknown. */
  clock_offset_ms: z.nullable(z.number()),
  /** The error of the last attempt. `message` may contain text of the service: only `output/` may show it. */
  last_error: z.nullable(z.object({ kind: text, message: text, status: number, code: optional, request_id: optional })),
  destination: z.nullable(Destination),
  replaced_by: textOrNull,
  detail: z.looseObject(detailShape),
});

/** A step's name and times; `end` is null if the outcome follows in a later record. */
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
