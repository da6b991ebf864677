// Where a secret goes, as an entry records it: no secret, and nothing that opens one.
import * as z from "zod/mini";

/** What a schema describes, as what is read and never changed. */
export type Fixed<T> = T extends readonly (infer U)[]
  ? readonly Fixed<U>[]
  : T extends object
    ? { readonly [K in keyof T]: Fixed<T[K]> }
    : T;

/** How a secret is written to a file or a command: `env:NAME=field,…` and `template:<text>` carry what they need. */
const Format = z.union([
  z.enum(["raw", "line", "json", "json-string", "env"]),
  z.templateLiteral(["env:", z.string()]),
  z.templateLiteral(["template:", z.string()]),
]);

export type SecretFormat = z.infer<typeof Format>;

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const optionalText = z.optional(z.string());

/** What every kind of destination that can be looked at has: how integ knows what it finds there. */
const Known = {
  /** The random id of the state folder whose machine the place is on; absent of what every machine reaches. */
  machine: optionalText,
  /** What was delivered: a digest under the journal's key, or a version of what cannot be read. In the journal before it is written. */
  proof: optionalText,
  /** What was there when a person consented to its replacement: a digest or a version. */
  consent: optionalText,
};

const Single = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("stdout") }),
  z.object({
    kind: z.literal("command"),
    /** Distinguishes another command from this one. */
    mark: optionalText,
    /** How a check after it was to see the secret; absent if none was asked for. */
    check: z.optional(z.enum(["output", "exit"])),
  }),
  z.object({
    kind: z.literal("profile"),
    name: z.string(),
    profileId: z.string(),
    /** A person agreed that the credential of the acting profile is replaced. */
    own: z.optional(z.literal(true)),
    ...Known,
  }),
  z.object({
    kind: z.literal("file"),
    path: z.string(),
    as: Format,
    /** These name the reserved file. `born` is when it was made (nanoseconds), if the file system says so: an inode number is used again. */
    device: optionalText,
    inode: optionalText,
    born: optionalText,
    /** The reserved file's own name until it gets the requested one. */
    reserved: optionalText,
    ...Known,
  }),
  z.object({
    kind: z.literal("store"),
    /** `<scheme>:<address>` */
    to: z.string(),
    /** What else decides where that is, such as the server: never a secret, a token or what opens one. */
    facts: z.record(z.string(), z.string()),
    ...Known,
  }),
]);

export const Destination = z.union([
  Single,
  z.object({
    kind: z.literal("several"),
    places: z.array(z.object({ state: z.enum(["pending", "delivered", "failed"]), at: Single })),
  }),
]);

export type SingleDestination = Fixed<z.infer<typeof Single>>;

export type EntryDestination = Fixed<z.infer<typeof Destination>>;

export type DestinationProgress = Extract<EntryDestination, { kind: "several" }>["places"][number];

/** A person's or a policy's consent to one act, for what was shown. */
export const ConsentSchema = z.object({
  /** The option or the answer that gave it, such as `--force`. */
  by: z.string(),
  /** The destination that it is for. */
  to: optionalText,
  /** Digest or version of what was there. */
  digest: optionalText,
  version: optionalText,
});
