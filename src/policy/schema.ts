// A policy file's schema. Errors and editors show its descriptions (`integ schema policy`).
import * as z from "zod/mini";
import { itemName, policyId } from "./works.ts";

function text(allowed: string): z.ZodMiniString {
  return z.string().check(z.minLength(1), z.describe(allowed));
}

function duration(example: string): z.ZodMiniString {
  return z.string().check(z.minLength(2), z.describe(`a duration with its unit, such as ${example}`));
}

const format = z.optional(
  z.enum(["raw", "line", "json", "env"]).check(z.describe("raw (the default), line, json or env")),
);

const destination = z
  .union([
    z.strictObject({ file: text("a path, relative to the policy file"), format }),
    z.strictObject({
      command: text("a command that reads the secret from its standard input"),
      check: z.optional(text("a command that prints the stored secret, to be compared")),
      format,
    }),
    z.strictObject({ profile: text("the name of an existing profile") }),
    text("the address of a store, such as keychain:<service>/<account>"),
  ])
  .check(z.describe("{ file: <path> }, { command: <command> }, { profile: <name> } or the address of a store"));

const secret = z
  .union([
    destination,
    z.array(destination).check(z.minLength(1), z.maxLength(20), z.describe("a list of 1 to 20 destinations")),
  ])
  .check(
    z.describe(
      "{ file: <path> }, { command: <command> }, { profile: <name> }, the address of a store, a list of these, or unknown until the first rotation",
    ),
  );

const unknownAge = z.optional(z.enum(["report", "rotate"]).check(z.describe("report (the default) or rotate")));
const overlap = z.optional(
  duration(
    "12h, or 0s for none; { unused_for, at_most } is for access keys: the API does not show when a client was last used",
  ),
);
const overlapByUse = z.optional(
  z
    .union([duration("12h, or 0s for none"), z.strictObject({ unused_for: duration("24h"), at_most: duration("14d") })])
    .check(z.describe("a duration such as 12h, 0s for none, or for access keys { unused_for: 24h, at_most: 14d }")),
);
const failures = z.optional(z.int().check(z.minimum(1), z.maximum(100), z.describe("a whole number from 1 to 100")));
const window = z.optional(
  text('a daily window such as "02:00-04:00 UTC"; the zone is UTC or a name like Europe/Berlin'),
);

const unproven = z.optional(z.literal(true).check(z.describe("true, or nothing")));

const client = z
  .strictObject({
    service_account: text("the id of a service account"),
    scopes: z
      .array(text("a scope"))
      .check(z.minLength(1), z.maxLength(100), z.describe("a list of 1 to 100 scopes, such as [entity:read]")),
    rotate: z.optional(
      z
        .strictObject({ every: duration("60d"), overlap, unknown_age: unknownAge })
        .check(z.describe("{ every: <duration> }, with overlap and unknown_age as options")),
    ),
    accept_unproven: unproven,
    secret,
  })
  .check(z.describe("an OAuth client: service_account, scopes, rotate and secret"));

const key = z
  .strictObject({
    type: z.enum(["user_bound", "service_account"]).check(z.describe("user_bound or service_account")),
    scopes: z
      .array(text('"*" or "push-ingest:*"'))
      .check(z.minLength(1), z.maxLength(2), z.describe('a list with "*" or "push-ingest:*"')),
    expires_in: z.optional(duration("90d")),
    expires_at: z.optional(text("an ISO 8601 time with a zone, such as 2027-01-31T00:00:00Z")),
    rotate: z.optional(
      z
        .strictObject({
          every: z.optional(duration("60d")),
          before_expiry: z.optional(duration("14d")),
          overlap: overlapByUse,
          unknown_age: unknownAge,
        })
        .check(
          z.describe("{ every: <duration> } or { before_expiry: <duration> }, with overlap and unknown_age as options"),
        ),
    ),
    accept_unproven: unproven,
    secret,
  })
  .check(z.describe("an access key: type, scopes, expires_in or expires_at, rotate and secret"));

const name = z
  .string()
  .check(
    z.regex(itemName),
    z.describe("a name of letters, digits, dots, underscores and hyphens, at most 100 characters"),
  );

export const policySchema = z.strictObject({
  $schema: z.optional(text("the address of this schema, for editors")),
  version: z.literal(1).check(z.describe("1")),
  id: z.optional(
    z
      .string()
      .check(
        z.regex(policyId),
        z.describe("a random id of 8 to 64 letters and digits, which integ policy init writes"),
      ),
  ),
  profile: z.optional(text("the name of the profile that the items belong to")),
  defaults: z.optional(
    z
      .strictObject({ overlap: overlapByUse, window, max_failures: failures, unknown_age: unknownAge })
      .check(z.describe("overlap, window, max_failures and unknown_age")),
  ),
  limits: z.optional(
    z
      .strictObject({
        changes_per_run: z.optional(
          z.int().check(z.minimum(1), z.maximum(1000), z.describe("a whole number from 1 to 1000")),
        ),
        keep_free_slots: z.optional(
          z.int().check(z.minimum(0), z.maximum(19), z.describe("a whole number from 0 to 19")),
        ),
      })
      .check(z.describe("changes_per_run and keep_free_slots")),
  ),
  oauth_clients: z.optional(z.record(name, client).check(z.describe("OAuth clients by their names"))),
  access_keys: z.optional(z.record(name, key).check(z.describe("access keys by their names"))),
  unmanaged: z.optional(z.enum(["report", "ignore"]).check(z.describe("report (the default) or ignore"))),
});

export type PolicyFile = z.infer<typeof policySchema>;
export type DestinationFile = z.infer<typeof destination>;

export function policyJsonSchema(): Record<string, unknown> {
  const schema = z.toJSONSchema(policySchema, { io: "input" });
  const description = "A policy: which clients and keys should exist, and when they are rotated.";
  return { ...schema, $id: "urn:integ:schema:policy:1", title: "integ policy, version 1", description };
}
