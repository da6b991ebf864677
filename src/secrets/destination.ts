// Defines what a destination of one-time secrets does, its options, and how it is described.
import { createHash } from "node:crypto";
import type { SecretDigests } from "../journal/keys.ts";
import type {
  DestinationProgress,
  EntryDestination,
  SecretFormat,
  SingleDestination,
} from "../journal/entry-destination.ts";

export type { DestinationProgress, SecretFormat };

export interface OneTimeSecret {
  readonly secret: string;
  readonly kind: "oauth_client" | "access_key";
  readonly id: string;
  /** The id that an OAuth client uses in a token exchange. */
  readonly clientId?: string;
  /** The text with the secret, which stdout receives. Empty if the secret was read back from a destination. */
  readonly receipt: string;
}

export interface SecretOrigin {
  readonly entry: string;
  readonly profile: string;
  readonly region: string;
  readonly serviceAccount?: string | undefined;
}

export type DestinationRecord = EntryDestination;
export type SingleRecord = SingleDestination;

export type RecordOf<K extends DestinationRecord["kind"]> = Extract<DestinationRecord, { kind: K }>;

/** A destination as an option, a prompt, a policy or the journal names it. */
export type DestinationOption =
  | ({ readonly kind: "file"; readonly path: string; readonly as?: SecretFormat } & ContentConsent)
  | ({
      readonly kind: "command";
      readonly command: string;
      readonly as?: SecretFormat;
      readonly check?: SecretCheck | undefined;
    } & ContentConsent)
  | ({
      readonly kind: "profile";
      readonly name: string;
      /** The recorded profile's id: another profile of the same name is refused. */
      readonly profileId?: string;
      /** Set for the acting profile, whose credential the user agreed to replace. */
      readonly own?: true | undefined;
    } & ContentConsent)
  | ({
      readonly kind: "store";
      readonly to: string;
      /** Facts from the journal, such as the server's address. */
      readonly facts?: RecordOf<"store">["facts"];
    } & ContentConsent);

/** Content that integ may replace besides its own deliveries. */
export interface ContentConsent {
  /** Digest or version of the content that the user agreed to replace. */
  readonly consent?: string | undefined;
  readonly force?: boolean | undefined;
}

/** The command must print the secret (`output`) or exit with 0 (`exit`). */
export interface SecretCheck {
  readonly command: string;
  readonly by: "output" | "exit";
}

export interface SecretOptions {
  /** The destinations in the order of the command line; stdout if empty. */
  readonly to: readonly DestinationOption[];
  /** The destinations of an existing entry. `to` replaces only those that lack the secret. */
  readonly remembered?: RecordOf<"several"> | undefined;
  /** A format that no file or command of `to` uses: `destinationFor` refuses it. */
  readonly as?: SecretFormat | undefined;
  readonly force?: boolean | undefined;
  /** An existing file may be integ's own earlier delivery, which is checked later. */
  readonly mayBeOwn?: boolean | undefined;
  readonly commandLimitMs?: number | undefined;
  /** Age recipients for the team's journal. */
  readonly escrow?: readonly string[] | undefined;
  /** The kind of the secret, if known: a profile needs a token endpoint for an OAuth client. */
  readonly yields?: OneTimeSecret["kind"];
  /** The service that issues the secret; by default, the acting profile's. */
  readonly issuedBy?: Issuer;
}

/** Only the issuing service and organization accept the secret (§1, §5.1 rule 4). */
export interface Issuer {
  readonly baseUrl: string;
  readonly organizationId?: string | undefined;
}

interface DestinationDescription {
  readonly name: string;
  readonly delivered?: string;
  readonly proof: string;
  /** The option that selects the destination again; absent for stdout and commands. */
  readonly option?: DestinationOption;
  /** True for files and profiles, which a later process on the same machine can check without a request. */
  readonly leavesTrace: boolean;
}

const commandProofs = {
  none: "the command ended with 0",
  exit: "the check ended with 0",
  output: "the check printed the secret",
} as const;

function storeProof(to: string): string {
  return storeKindOf(to)?.proof ?? "written";
}

export function describeDestination(record: SingleRecord): DestinationDescription {
  switch (record.kind) {
    case "stdout":
      return { name: "standard output", proof: "written", leavesTrace: false };
    case "command":
      return {
        name: "a command",
        delivered: "The secret was given to the command.",
        proof: commandProofs[record.check ?? "none"],
        leavesTrace: false,
      };
    case "file": {
      const { path, as, consent } = record;
      return {
        name: path,
        delivered: `The secret is in ${path}, readable by you alone.`,
        proof: "written and synced",
        option: { kind: "file", path, as, consent },
        leavesTrace: true,
      };
    }
    case "profile": {
      const { name, profileId, own, consent } = record;
      return {
        name: `profile ${name}`,
        delivered: `The secret is the credential of profile ${name} now.`,
        proof: "stored",
        option: { kind: "profile", name, profileId, own, consent },
        leavesTrace: true,
      };
    }
    case "store": {
      const { to, facts, consent } = record;
      return {
        name: to,
        delivered: `The secret is in ${to}.`,
        proof: storeProof(to),
        option: { kind: "store", to, facts, consent },
        leavesTrace: false,
      };
    }
  }
}

export function isReadable(at: SingleRecord): boolean {
  return at.kind === "file" || at.kind === "profile" || (at.kind === "store" && !at.to.startsWith("github:"));
}

export function placesOf(record: DestinationRecord | null): readonly SingleRecord[] {
  if (record === null) return [];
  return record.kind === "several" ? record.places.map(({ at }) => at) : [record];
}

export function namesOf(record: DestinationRecord): string {
  return placesOf(record)
    .map((place) => describeDestination(place).name)
    .join(", ");
}

export function missingPlaces(record: DestinationRecord | null): readonly SingleRecord[] {
  if (record?.kind !== "several") return [];
  return record.places.filter(({ state }) => state !== "delivered").map(({ at }) => at);
}

export function isPartlyDelivered({ destination }: { readonly destination: DestinationRecord | null }): boolean {
  return destination?.kind === "several" && destination.places.some(({ state }) => state === "delivered");
}

export function isForProfile(destination: DestinationRecord | null, profile: string): boolean {
  return placesOf(destination).some((at) => at.kind === "profile" && at.name === profile);
}

/** Does not compare the machines. */
export function isSamePlace(one: SingleRecord, other: SingleRecord): boolean {
  if (one.kind === "stdout") return other.kind === "stdout";
  if (one.kind === "command") return other.kind === "command" && one.mark === other.mark;
  if (one.kind === "file") return other.kind === "file" && one.path === other.path;
  if (one.kind === "profile") return other.kind === "profile" && one.name === other.name;
  return other.kind === "store" && one.to === other.to;
}

/**
 * Eight hexadecimal digits: enough to distinguish commands, too few to reveal one. The journal does not store the text,
 * because it may contain a credential.
 */
export function commandMark({ command, as = "raw" }: { readonly command: string; readonly as?: SecretFormat }): string {
  return createHash("sha256").update(`${as}\0${command.trim()}`).digest("hex").slice(0, 8);
}

/** `hidden` content cannot be read back: only its version identifies it. */
export type Found =
  | { readonly is: "absent"; readonly version?: string | undefined }
  | (FoundContent & { readonly is: "text"; readonly text: string; readonly version?: string | undefined })
  | (FoundContent & {
      readonly is: "hidden";
      readonly version: string;
      /** The entry's facts that may select another place of the same command. */
      readonly differsBy?: readonly ("serviceAccount" | "profile")[];
    });

interface FoundContent {
  /** Client id or key id of a profile's credential. */
  readonly of?: string | undefined;
}

/** @throws Failure if the content must not be replaced */
export type MayReplace = (at: SingleRecord, found: Found) => Promise<void>;

export interface Delivery<R extends DestinationRecord = DestinationRecord> {
  readonly origin: SecretOrigin;
  /** Called with the content immediately before the write. */
  readonly may: MayReplace;
  /** Saves the record in the journal, so that a later process can continue. */
  readonly record: (record: R) => Promise<void>;
}

export interface Preparation {
  readonly before?: DestinationRecord | null;
  /** If the secret is kept, a destination that fails does not stop the others. */
  readonly isKept?: boolean;
  /** Called with the content before the request, so that a refusal prevents the request. */
  readonly may?: MayReplace;
  /** All destinations, because two may be fields of one Vault secret. */
  readonly places?: readonly SingleRecord[];
}

/** True if the same name means a different place on another machine. */
export function isLocal(at: SingleRecord): boolean {
  return at.kind === "file" || at.kind === "profile" || (at.kind === "store" && at.to.startsWith("keychain:"));
}

/**
 * Without a list, every destination is allowed. A list has `file:<path>`, `profile:<name>`, a store's address, `stdout` or
 * `command:<text>`; a final `*` matches any rest, except for commands.
 */
export function isAllowed(at: SingleRecord, allowed: readonly string[] | undefined): boolean {
  if (allowed === undefined) return true;
  if (at.kind === "command")
    return allowed.some((one) => one.startsWith("command:") && isCommandOf(at, one.slice("command:".length)));
  const name =
    at.kind === "store"
      ? at.to
      : at.kind === "stdout"
        ? "stdout"
        : `${at.kind}:${at.kind === "file" ? at.path : at.name}`;
  return allowed.some((one) => one === name || (one.endsWith("*") && name.startsWith(one.slice(0, -1))));
}

/** Compares marks, because the record lacks the command. */
function isCommandOf({ mark }: RecordOf<"command">, command: string): boolean {
  const formats = ["raw", "line", "json", "json-string", "env"] as const;
  return formats.some((as) => commandMark({ command, as }) === mark);
}

/** Users and editors add a final newline. */
export function withoutLastNewline(text: string): string {
  return text.endsWith("\n") ? text.slice(0, -1) : text;
}

export function hasContentId(found: Found, id: string | undefined, digests: SecretDigests): boolean {
  if (id === undefined || id === "" || found.is === "absent") return false;
  return found.is === "text" ? digests.fits(withoutLastNewline(found.text), id) : id === `version ${found.version}`;
}

export function contentId(found: Found, digests: SecretDigests): string | undefined {
  if (found.is === "absent") return undefined;
  return found.is === "text" ? digests.of(withoutLastNewline(found.text)) : `version ${found.version}`;
}

/**
 * `check` runs before the entry is written, `prepare` before each request that may return a secret: after a `Failure`, nothing is
 * sent. `deliver` returns when the destination has the secret.
 */
export interface Destination {
  readonly isStdout: boolean;
  readonly record: DestinationRecord;
  check(preparation?: Preparation): Promise<DestinationRecord>;
  /** @param work id of the journal entry; names the reserve for a later process */
  prepare(work: string, preparation?: Preparation): Promise<DestinationRecord>;
  deliver(secret: OneTimeSecret, delivery: Delivery): Promise<void>;
  /** Removes the reserve unless a secret was delivered. Safe to repeat. */
  release(): Promise<void>;
  /** Runs an `output` check again. @returns its output; undefined without such a check. @throws Failure if the check fails */
  shownBy?(record: SingleRecord, about: Shown): Promise<string | undefined>;
}

/** The client or key whose secret the check must print. */
export interface Shown extends Pick<OneTimeSecret, "id" | "clientId"> {
  readonly origin: SecretOrigin;
}

export interface SingleDestinationPlace extends Destination {
  readonly record: SingleRecord;
  check(): Promise<SingleRecord>;
  prepare(work: string, preparation?: Pick<Preparation, "may" | "places">): Promise<SingleRecord>;
  deliver(secret: OneTimeSecret, delivery: Delivery<SingleRecord>): Promise<void>;
}

/** A destination that a later process restores from its record. */
export interface RememberedDestination {
  /**
   * Checks whether the secret arrived. Renames a complete file that a crash left under its reserved name.
   * @throws Failure if `may` refuses, the rename fails or the place is unreadable: the secret may be there
   */
  completeDelivery(may: MayReplace): Promise<boolean>;
  /**
   * Removes an ended process's reserve, unless it has a complete secret that is not at the destination. Safe to repeat.
   * @param entry id of the reserve's journal entry
   * @param options.isKept true if the secret is safe elsewhere: a complete copy is then removed too
   */
  removeReserve(entry: string, options?: { readonly isKept?: boolean }): void;
  /** @returns the delivered secret; undefined if the content has changed or cannot be read back */
  reread(): Promise<string | undefined>;
  /** True if the environment now selects another server than the server that has the secret. */
  isOfOtherServer?(): Promise<boolean>;
}

export const storeKinds = {
  vault: {
    form: "vault:<mount>/<path>#<field>",
    pattern: /^vault:.+\/.+#.+$/u,
    what: "A field in HashiCorp Vault or OpenBao (KV version 2)",
    proof: "read back",
  },
  github: {
    form: "github:<owner>/<repo>[@<environment>]#<NAME>",
    pattern: /^github:.+\/.+#.+$/u,
    isAnyCase: true,
    what: "A secret of GitHub Actions",
    more: {
      "github:org/<organization>#<NAME>":
        "An organization secret. By default a new secret is for private repositories and an existing one keeps its access; append ?visibility=all, ?visibility=private or ?repositories=api,web to change that",
    },
    proof: "changed, as GitHub says",
  },
  k8s: {
    form: "k8s:<namespace>/<secret>#<key>",
    pattern: /^k8s:.+\/.+#.+$/u,
    what: "A key of a Kubernetes Secret, through kubectl",
    proof: "read back",
  },
  keychain: {
    form: "keychain:<service>/<account>",
    pattern: /^keychain:.+\/.+$/u,
    what: "The keychain of the operating system",
    proof: "read back",
  },
} as const satisfies Readonly<Record<string, StoreKind>>;

export interface StoreKind {
  readonly form: string;
  /** Matches all valid addresses, and some that the store refuses. */
  readonly pattern: RegExp;
  readonly isAnyCase?: boolean;
  readonly what: string;
  /** Other forms of the address, each with its description. */
  readonly more?: Readonly<Record<string, string>>;
  readonly proof: string;
}

export type StoreScheme = keyof typeof storeKinds;

export function storeKindOf(to: string): StoreKind | undefined {
  return Object.entries<StoreKind>(storeKinds).find(([scheme]) => to.startsWith(`${scheme}:`))?.[1];
}
