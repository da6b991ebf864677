// Defines how an entry records the destination of a secret, without secrets or credentials.
import * as z from "zod/mini";

export type Fixed<T> = T extends readonly (infer U)[]
  ? readonly Fixed<U>[]
  : T extends object
    ? { readonly [K in keyof T]: Fixed<T[K]> }
    : T;

/** `env:` is followed by `NAME=field,…`, and `template:` by the template's text. */
const Format = z.union([
  z.enum(["raw", "line", "json", "json-string", "env"]),
  z.templateLiteral(["env:", z.string()]),
  z.templateLiteral(["template:", z.string()]),
]);

export type SecretFormat = z.infer<typeof Format>;

const optionalText = z.optional(z.string());

const contentFields = {
  /** A machine's id (`MachineId`), if only that machine reaches the destination. */
  machine: optionalText,
  /** Keyed digest of the written text. For a store that cannot be read, its version before or after the write. */
  proof: optionalText,
  /** Digest or version of the content that a person agreed to replace. */
  consent: optionalText,
};

const Single = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("stdout") }),
  z.object({
    kind: z.literal("command"),
    mark: optionalText,
    check: z.optional(z.enum(["output", "exit"])),
    proof: optionalText,
    consent: optionalText,
  }),
  z.object({
    kind: z.literal("profile"),
    name: z.string(),
    profileId: z.string(),
    /** The delivery replaces the acting profile's own credential. */
    own: z.optional(z.literal(true)),
    ...contentFields,
  }),
  z.object({
    kind: z.literal("file"),
    path: z.string(),
    as: Format,
    /**
     * Identity of the file that was reserved at the path `reserved`. `born` is its creation time in ns, because inode
     * numbers are reused.
     */
    device: optionalText,
    inode: optionalText,
    born: optionalText,
    reserved: optionalText,
    ...contentFields,
  }),
  z.object({
    kind: z.literal("store"),
    to: z.string(),
    /** What a later process needs besides the address, such as the server. */
    facts: z.record(z.string(), z.string()),
    ...contentFields,
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
