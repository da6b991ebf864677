// What a one-time secret's destination is, and what can be said of it by its journal record alone. Pure.
import { createHash } from "node:crypto";
import type { SecretDigests } from "../journal/keys.ts";
import type {
  DestinationProgress,
  EntryDestination,
  SecretFormat,
  SingleDestination,
} from "../journal/entry-destination.ts";

export type { DestinationProgress, SecretFormat };

/** A one-time secret with the public facts that belong to it. */
export interface OneTimeSecret {
  readonly secret: string;
  /** What the secret is for; names the variables of the `env` format and the keys of `json`. */
  readonly kind: "oauth_client" | "access_key";
  /** Resource id of the client or key. */
  readonly id: string;
  /** OAuth clients only: the id used in the token exchange. */
  readonly clientId?: string;
  /** The service's response that brought the secret, as it came: what standard output shows, and what `claim` shows later. */
  readonly receipt: string;
}

/** The piece of work that brought a secret, for formats and commands. */
export interface SecretOrigin {
  /** Id of the journal entry. */
  readonly entry: string;
  readonly profile: string;
  readonly region: string;
  /** OAuth clients only. */
  readonly serviceAccount?: string | undefined;
}

/** Where a secret was to go, as the journal remembers it. */
export type DestinationRecord = EntryDestination;
export type SingleRecord = SingleDestination;

/** The record of one kind of destination. */
export type RecordOf<K extends DestinationRecord["kind"]> = Extract<DestinationRecord, { kind: K }>;

/** One destination as it was typed, or as the journal remembers it. */
export type DestinationOption =
  | ({ readonly kind: "file"; readonly path: string; readonly as?: SecretFormat } & Consented)
  | {
      readonly kind: "command";
      readonly command: string;
      readonly as?: SecretFormat;
      /** Reads the secret back after the delivery. */
      readonly check?: SecretCheck | undefined;
    }
  | ({
      readonly kind: "profile";
      readonly name: string;
      /** The profile that the journal remembers: another one of that name is not meant. */
      readonly profileId?: string;
      /** It is the profile that acts, and a person agreed that its credential is replaced. */
      readonly own?: true | undefined;
    } & Consented)
  | ({
      readonly kind: "store";
      readonly to: string;
      /** What the journal remembers of it. */
      readonly facts?: RecordOf<"store">["facts"];
    } & Consented);

/** What may be replaced at a destination, besides what integ itself delivered there. */
export interface Consented {
  /** What was there when a person consented: it was recorded. */
  readonly consent?: string | undefined;
  /** The person consents now, to what is there now. */
  readonly force?: boolean | undefined;
}

/** `output`: the command prints the secret; `exit`: it ends with 0. */
export interface SecretCheck {
  readonly command: string;
  readonly by: "output" | "exit";
}

/** The secret options as they were typed. */
export interface SecretOptions {
  /** In the order in which they were typed; none: standard output. */
  readonly to: readonly DestinationOption[];
  /** The destinations of an entry: what is typed is for those of them that are missing. */
  readonly remembered?: RecordOf<"several"> | undefined;
  /** For a remembered file if none is typed. */
  readonly as?: SecretFormat | undefined;
  /** Consents to the replacement of what is at the destinations now. */
  readonly force?: boolean | undefined;
  /** What is at a destination may be what integ delivered there for the same client or key: that is found out later. */
  readonly mayBeOurs?: boolean | undefined;
  readonly commandLimitMs?: number | undefined;
  /** Public keys that the secret is encrypted to, for the team's journal. */
  readonly escrow?: readonly string[] | undefined;
  /** What the command yields, if it is known before: a profile that is to take an OAuth client needs a token endpoint. */
  readonly yields?: OneTimeSecret["kind"];
  /** Whose service issues the secret; the chosen profile's, if it is not said. */
  readonly issuedBy?: Issuer;
}

/** Whose service issues the secret: it opens nothing anywhere else (§1, §5.1 rule 4). */
export interface Issuer {
  readonly baseUrl: string;
  readonly organizationId?: string | undefined;
}

interface DestinationDescription {
  /** Its name for a person. */
  readonly name: string;
  /** Where a delivered secret is, as a sentence. */
  readonly delivered?: string;
  /** What showed that it arrived. */
  readonly proof: string;
  /** What opens it again, if the journal keeps enough of it. */
  readonly option?: DestinationOption;
  /** A later process can see there, on this machine alone, whether the secret has arrived. */
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

/** What can be said of a remembered destination. */
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

/** The destinations that a record names. */
export function placesOf(record: DestinationRecord): readonly SingleRecord[] {
  return record.kind === "several" ? record.places.map(({ at }) => at) : [record];
}

/** Their names for a person. */
export function namesOf(record: DestinationRecord): string {
  return placesOf(record)
    .map((place) => describeDestination(place).name)
    .join(", ");
}

/** Those of several that have not got the secret. */
export function missingPlaces(record: DestinationRecord | null): readonly SingleRecord[] {
  if (record?.kind !== "several") return [];
  return record.places.filter(({ state }) => state !== "delivered").map(({ at }) => at);
}

/** Whether two records name one place: the second secret written there would replace the first. */
export function isSamePlace(one: SingleRecord, other: SingleRecord): boolean {
  if (one.kind === "stdout") return other.kind === "stdout";
  if (one.kind === "command") return other.kind === "command" && one.mark === other.mark;
  if (one.kind === "file") return other.kind === "file" && one.path === other.path;
  if (one.kind === "profile") return other.kind === "profile" && one.name === other.name;
  return other.kind === "store" && one.to === other.to;
}

/**
 * Eight hexadecimal digits of a digest of a command and its format. A command may hold a credential, so that its text is
 * not kept: this distinguishes another one, and is far too short to show which it was.
 */
export function commandMark({ command, as = "raw" }: { readonly command: string; readonly as?: SecretFormat }): string {
  return createHash("sha256").update(`${as}\0${command.trim()}`).digest("hex").slice(0, 8);
}

/** What is at a destination now, as the field that a secret is stored in. */
export type Found =
  | { readonly is: "absent"; readonly version?: string | undefined }
  | (FoundThing & { readonly is: "text"; readonly text: string; readonly version?: string | undefined })
  /** Something that cannot be read back: its version alone distinguishes it. */
  | (FoundThing & { readonly is: "hidden"; readonly version: string });

interface FoundThing {
  /** The client or key that a profile's credential is of, as far as the profile says it. */
  readonly of?: string | undefined;
}

/** Decides whether what was found may be replaced. @throws Failure if it may not */
export type MayReplace = (at: SingleRecord, found: Found) => Promise<void>;

/** What a delivery works with. */
export interface Delivery<R extends DestinationRecord = DestinationRecord> {
  readonly origin: SecretOrigin;
  /** Asked about what is there at the moment of the write. */
  readonly may: MayReplace;
  /** Puts what a later process must know into the journal, before and after each step that it could not see otherwise. */
  readonly record: (record: R) => Promise<void>;
}

export interface Preparation {
  /** How the journal remembers the destination. */
  readonly before?: DestinationRecord | null;
  /** The secret exists and is safe: what cannot be made ready now is found out when it is delivered. */
  readonly isKept?: boolean;
  /** Asked about what is there now: a refusal comes before the request. */
  readonly may?: MayReplace;
  /** All places that the same secret goes to. */
  readonly places?: readonly SingleRecord[];
}

/** True of files, profiles and keychains: another machine has others of the same name. */
export function isLocal(at: SingleRecord): boolean {
  return at.kind === "file" || at.kind === "profile" || (at.kind === "store" && at.to.startsWith("keychain:"));
}

/**
 * Whether a list of destinations names this one: `file:<path>`, `profile:<name>`, the address of a store, `stdout`, or
 * `command:<text>`. A `*` at the end stands for any rest, except of a command.
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

/** The record of a command has a mark of its text and format alone. */
function isCommandOf({ mark }: RecordOf<"command">, command: string): boolean {
  const formats = ["raw", "line", "json", "json-string", "env"] as const;
  return formats.some((as) => commandMark({ command, as }) === mark);
}

/** What is forgiven in a text that a person or an editor touched: one newline at its end. */
export function withoutLastNewline(text: string): string {
  return text.endsWith("\n") ? text.slice(0, -1) : text;
}

/** Whether what was found is what a digest or a version stands for. */
export function isKnownAs(found: Found, known: string | undefined, digests: SecretDigests): boolean {
  if (known === undefined || known === "" || found.is === "absent") return false;
  return found.is === "text"
    ? digests.fits(withoutLastNewline(found.text), known)
    : known === `version ${found.version}`;
}

/** How what was found is recorded: nothing of what is not there. */
export function knownAs(found: Found, digests: SecretDigests): string | undefined {
  if (found.is === "absent") return undefined;
  return found.is === "text" ? digests.of(withoutLastNewline(found.text)) : `version ${found.version}`;
}

/**
 * A destination for a one-time secret.
 * `check` costs nothing and is called before anything is written anywhere; `prepare` makes sure that the delivery will
 * succeed (space reserved and synced, standard output open, profile there) and is called before every request that may
 * bring a secret. `deliver` returns only when the secret is safe and was seen there. Each throws `Failure` with words for a
 * person.
 */
export interface Destination {
  /** True if the secret goes to standard output with the rest of the result. */
  readonly isStdout: boolean;
  /** The place as far as it is known before anything is looked at. */
  readonly record: DestinationRecord;
  /** @returns the place as far as it is known before anything is reserved: what an intent remembers from the start. */
  check(preparation?: Preparation): Promise<DestinationRecord>;
  /** @param work id of the piece of work (journal entry): names what is reserved, so that a later process finds it. */
  prepare(work: string, preparation?: Preparation): Promise<DestinationRecord>;
  deliver(secret: OneTimeSecret, delivery: Delivery): Promise<void>;
  /** Gives back what `prepare` reserved, if no secret came. Safe to repeat. */
  release(): Promise<void>;
}

/** A destination by itself, and not several of them. */
export interface SingleDestinationPlace extends Destination {
  readonly record: SingleRecord;
  check(): Promise<SingleRecord>;
  prepare(work: string, preparation?: Pick<Preparation, "may" | "places">): Promise<SingleRecord>;
  deliver(secret: OneTimeSecret, delivery: Delivery<SingleRecord>): Promise<void>;
}

/** A destination as a later process finds it by its record. */
export interface RememberedDestination {
  /**
   * Whether what was delivered is there: read and recognized. A file that was written whole and that a crash left without
   * its name gets it now, if `may` allows that.
   * @throws Failure if the secret is there and its name cannot be given: it is not lost, and must not be replaced
   */
  completeDelivery(may: MayReplace): Promise<boolean>;
  /**
   * Removes what was reserved by a process that has ended, if it holds no whole secret or is only a second name of the
   * finished file. Safe to repeat.
   * @param entry id of the journal entry that it was made for
   * @param options.isKept the secret is safe elsewhere: a whole copy that has not got its name is wiped and removed too
   */
  removeReserve(entry: string, options?: { readonly isKept?: boolean }): void;
  /** The secret, if it is still there as it was delivered: for a proof by token exchange after a crash. */
  reread(): Promise<string | undefined>;
}

// The stores of `--secret-to`, as help, completion and questions name them. Pure: registry.ts opens them.

/** One line for each store: how its address is written, what it is, and what proves a delivery. */
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
  /** What every address of it has; the store itself checks more. */
  readonly pattern: RegExp;
  /** The same place in upper and lower case. */
  readonly isAnyCase?: boolean;
  readonly what: string;
  /** What shows that a secret arrived. */
  readonly proof: string;
}

export type StoreScheme = keyof typeof storeKinds;

/** The kind of store that an address begins with. */
export function storeKindOf(to: string): StoreKind | undefined {
  return Object.entries<StoreKind>(storeKinds).find(([scheme]) => to.startsWith(`${scheme}:`))?.[1];
}
