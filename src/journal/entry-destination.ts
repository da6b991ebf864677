// Where a secret goes, as an entry records it: no secret, and nothing that opens one.
import * as z from "zod/mini";

const plainFormats = ["raw", "line", "json", "json-string", "env"] as const;

/** How a secret is written to a file or a command: `env:NAME=field,…` and `template:<text>` carry what they need. */
export type SecretFormat = (typeof plainFormats)[number] | `env:${string}` | `template:${string}`;

function isSecretFormat(text: string): text is SecretFormat {
  return plainFormats.some((word) => word === text) || text.startsWith("env:") || text.startsWith("template:");
}

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
  z.looseObject({ kind: z.literal("stdout") }),
  z.looseObject({ kind: z.literal("command"), mark: optionalText, check: optionalText }),
  z.looseObject({
    kind: z.literal("profile"),
    name: z.string(),
    profileId: z.string(),
    own: z.optional(z.literal(true)),
    ...Known,
  }),
  z.looseObject({
    kind: z.literal("file"),
    path: z.string(),
    as: z.string().check(z.refine(isSecretFormat)),
    device: optionalText,
    inode: optionalText,
    born: optionalText,
    reserved: optionalText,
    ...Known,
  }),
  z.looseObject({ kind: z.literal("store"), to: z.string(), facts: z.record(z.string(), z.string()), ...Known }),
]);

/** What a record says about its destination. */
export const Destination = z.union([
  Single,
  z.looseObject({
    kind: z.literal("several"),
    places: z.array(z.looseObject({ state: z.enum(["pending", "delivered", "failed"]), at: Single })),
  }),
]);

interface KnownPlace {
  readonly machine?: string | undefined;
  readonly proof?: string | undefined;
  readonly consent?: string | undefined;
}

/** One destination. For a file, `device`, `inode` and `born` name the reserved file. */
export type SingleDestination =
  | { readonly kind: "stdout" }
  | {
      readonly kind: "command";
      /** Distinguishes another command from this one. */
      readonly mark?: string;
      /** How a check after it was to see the secret; absent if none was asked for. */
      readonly check?: "output" | "exit";
    }
  | (KnownPlace & {
      readonly kind: "file";
      readonly path: string;
      readonly as: SecretFormat;
      readonly device?: string;
      readonly inode?: string;
      /** When the reserved file was created (nanoseconds), if the file system says so: an inode number is used again. */
      readonly born?: string;
      /** The reserved file's own name until it gets the requested one. */
      readonly reserved?: string;
    })
  | (KnownPlace & {
      readonly kind: "profile";
      readonly name: string;
      readonly profileId: string;
      /** A person agreed that the credential of the acting profile is replaced. */
      readonly own?: true | undefined;
    })
  | (KnownPlace & {
      readonly kind: "store";
      /** `<scheme>:<address>` */
      readonly to: string;
      /** What else decides where that is, such as the server: never a secret, a token or what opens one. */
      readonly facts: Readonly<Record<string, string>>;
    });

/** One of several destinations, and how far its delivery came. */
export interface DestinationProgress {
  readonly state: "pending" | "delivered" | "failed";
  readonly at: SingleDestination;
}

export type EntryDestination =
  | SingleDestination
  | { readonly kind: "several"; readonly places: readonly DestinationProgress[] };

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

export type Consent = Readonly<z.infer<typeof ConsentSchema>>;
