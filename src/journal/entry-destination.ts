// Where a secret was to go, as it may be in the journal: no secret, nothing that opens one. Checked when it is read.

const plainFormats = ["raw", "line", "json", "json-string", "env"] as const;

/** How a secret is written to a file or a command: `env:NAME=field,…` and `template:<text>` carry what they need. */
export type SecretFormat = (typeof plainFormats)[number] | `env:${string}` | `template:${string}`;

function isSecretFormat(value: unknown): boolean {
  return (
    typeof value === "string" &&
    (plainFormats.some((word) => word === value) || value.startsWith("env:") || value.startsWith("template:"))
  );
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A digest (hexadecimal) of what was delivered, under a key that is kept for `entry` in the state folder. */
export interface DeliveryProof {
  readonly entry: string;
  readonly digest: string;
}

/** One destination. For a file, `device`, `inode` and `born` name the reserved file. */
export type SingleDestination =
  | { readonly kind: "stdout" }
  | {
      readonly kind: "command";
      /** Distinguishes another command from this one; absent in entries of earlier versions. */
      readonly mark?: string;
      /** How a check after it was to see the secret; absent if none was asked for, and in entries of earlier versions. */
      readonly check?: "output" | "exit";
    }
  | {
      readonly kind: "file";
      readonly path: string;
      /** Earlier versions wrote `format`, and their `raw` ended with a newline: it is read as `line`. */
      readonly as: SecretFormat;
      readonly force: boolean;
      readonly device?: string;
      readonly inode?: string;
      /** When the reserved file was created (nanoseconds), if the file system says so: an inode number is used again. */
      readonly born?: string;
      /** The reserved file's own name until it gets the requested one. */
      readonly reserved?: string;
      readonly proof?: DeliveryProof;
    }
  | { readonly kind: "profile"; readonly name: string; readonly profileId: string }
  | {
      readonly kind: "store";
      /** `<scheme>:<address>` */
      readonly to: string;
      /** What else decides where that is, such as the server: never a secret, a token or what opens one. */
      readonly facts: Readonly<Record<string, string>>;
      readonly proof?: DeliveryProof;
    };

/** One of several destinations, and how far its delivery came. */
export interface DestinationProgress {
  readonly state: "pending" | "delivered" | "failed";
  readonly at: SingleDestination;
}

export type EntryDestination =
  | SingleDestination
  | { readonly kind: "several"; readonly places: readonly DestinationProgress[] };

/** @returns undefined for what no version has written */
export function readDestination(value: unknown): EntryDestination | undefined {
  if (!isObject(value) || value.kind !== "several") return readSingle(value);
  if (!Array.isArray(value.places)) return undefined;
  const places: DestinationProgress[] = [];
  for (const place of value.places) {
    const at = isObject(place) ? readSingle(place.at) : undefined;
    if (at === undefined || !isProgress(place.state)) return undefined;
    places.push({ state: place.state, at });
  }
  return { kind: "several", places };
}

function isProgress(value: unknown): value is DestinationProgress["state"] {
  return value === "pending" || value === "delivered" || value === "failed";
}

function readSingle(value: unknown): SingleDestination | undefined {
  if (!isObject(value)) return undefined;
  if (value.kind !== "file" || value.as !== undefined) return isSingle(value) ? value : undefined;
  const { format, ...rest } = value;
  const earlier = { ...rest, as: format === "raw" ? "line" : format };
  return isSingle(earlier) ? earlier : undefined;
}

function isSingle(value: Record<string, unknown>): value is SingleDestination & Record<string, unknown> {
  const isText = (key: string): boolean => typeof value[key] === "string";
  const isTextOrNone = (key: string): boolean => value[key] === undefined || isText(key);
  switch (value.kind) {
    case "stdout":
      return true;
    case "command":
      return isTextOrNone("mark") && isTextOrNone("check");
    case "profile":
      return isText("name") && isText("profileId");
    case "file":
      return (
        isText("path") &&
        isSecretFormat(value.as) &&
        typeof value.force === "boolean" &&
        ["device", "inode", "born", "reserved"].every(isTextOrNone) &&
        isProof(value.proof)
      );
    case "store":
      return (
        isText("to") &&
        isObject(value.facts) &&
        Object.values(value.facts).every((fact) => typeof fact === "string") &&
        isProof(value.proof)
      );
    default:
      return false;
  }
}

function isProof(value: unknown): boolean {
  if (value === undefined) return true;
  return isObject(value) && typeof value.entry === "string" && typeof value.digest === "string";
}
