// What a record of an entry holds: one schema for both engines, for import and for export.
import * as z from "zod/mini";
import { ConsentSchema, Destination } from "./entry-destination.ts";
import type { EntryDetail } from "./entry.ts";

const text = z.string();
const textOrNull = z.nullable(z.string());
const optional = z.optional(z.string());
const flag = z.optional(z.boolean());
const number = z.optional(z.number());
const count = z.int().check(z.nonnegative());

/** Who made a record. */
export const ActorSchema = z.object({ user: text, host: text, run: optional });

const Proof = z.looseObject({
  token_endpoint: text,
  client_auth: z.enum(["client_secret_basic", "client_secret_post"]),
  audience: optional,
  issuer: optional,
  scope: optional,
});

const Exchange = z.union([
  z.looseObject({ kind: z.literal("command") }),
  z.looseObject({ kind: z.literal("endpoint"), url: text }),
]);

/** What the work of an entry needs in order to continue. Keys that are not named here are kept. */
const detailFields: Record<keyof EntryDetail, z.ZodMiniType> = {
  failures: number,
  secret_claimed: flag,
  attempted_at: z.optional(z.array(text)),
  kept_at: optional,
  differs: optional,
  client_id: z.optional(textOrNull),
  own_key: flag,
  sent_as: optional,
  put_off_until: optional,
  old_client: optional,
  keep_old: flag,
  proof: z.optional(z.nullable(Proof)),
  exchange: z.optional(z.nullable(Exchange)),
  overlap_ms: number,
  overlap_until: optional,
  proven: optional,
  in_flight: flag,
  sent_at: optional,
  created_by: z.optional(textOrNull),
  base_name: optional,
  asking_key: optional,
  marked: flag,
  expiry: z.optional(textOrNull),
  orphan_certain: flag,
  mode: optional,
  key_id: optional,
  old_key: optional,
  new_key: optional,
  bound_to: z.optional(textOrNull),
  revoking: flag,
  update_profile: flag,
};

/** What was at a destination when a step looked, or what it left there. */
const Seen = z.object({ to: text, digest: z.optional(textOrNull), version: optional });

/** What was asked for: the same in every record of an entry. */
const Intent = z.object({
  operation: text,
  idempotency_key: textOrNull,
  profile: text,
  profile_id: text,
  principal: optional,
  organization_id: textOrNull,
  region: text,
  base_url: text,
  service_version: text,
  method: optional,
  path: optional,
  request_text: text,
  fingerprint: text,
  replaces: textOrNull,
  parent: textOrNull,
  policy: z.optional(z.object({ id: text, item: text })),
  destination: z.optional(z.nullable(Destination)),
  consent: z.optional(z.array(ConsentSchema)),
  created_at: text,
});

/** What a step did: `end` is null of one that began, and whose outcome is unknown until a later record says it. */
const Result = z.object({
  step: text,
  begin: text,
  end: textOrNull,
  outcome: z.optional(z.enum(["done", "wait", "needs", "failed"])),
  until: optional,
  seen: z.optional(z.array(Seen)),
  delivered: z.optional(z.array(Seen)),
});

/** The entry's state, as the work computed it from the results so far. */
const Now = z.object({
  resource_id: textOrNull,
  attempts: count,
  request_ids: z.optional(z.array(text)),
  clock_offset_ms: number,
  last_error: z.nullable(z.looseObject({ kind: text, message: text })),
  destination: z.nullable(Destination),
  replaced_by: textOrNull,
  detail: z.looseObject(detailFields),
});

type Content = {
  readonly intent: z.infer<typeof Intent>;
  readonly now: { readonly detail: EntryDetail };
};

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
  .check(z.refine((record) => hasNeededDetail(record as Content)));

export type JournalRecord = z.infer<typeof RecordSchema>;
