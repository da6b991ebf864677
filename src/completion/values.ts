// Selects the completion of a value: its `.choices()`, else an entry of `byPlace`, else of `byName`. A test fails for a
// name without an entry.
import { flags } from "../next-step.ts";

const liveNames = ["profiles", "entries", "unfinished", "claimable", "clients", "keys", "accounts", "items"] as const;
export type LiveNames = (typeof liveNames)[number];

export type Completion =
  | {
      readonly kind: "words";
      readonly words: readonly string[];
      /** True if other values are valid too. */
      readonly open: boolean;
    }
  | { readonly kind: "files" }
  | { readonly kind: "live"; readonly names: LiveNames }
  /** A list of the command's fields, separated by commas. */
  | { readonly kind: "fields" }
  | { readonly kind: "nothing" };

const nothing: Completion = { kind: "nothing" };
const files: Completion = { kind: "files" };
const live = (names: LiveNames): Completion => ({ kind: "live", names });
const examples = (...words: string[]): Completion => ({ kind: "words", words, open: true });

/** This machine does not know the values of these names, so they have no completion. */
const unknowable =
  "address audience cohort-id command count duration header id issuer key n name name=value names person-id place recipient spec status text time token url uuid when";

/** The keys are the words in angle brackets, such as `path` for `<path>`. */
export const byName: Readonly<Record<string, Completion>> = {
  path: files,
  file: files,
  plan: files,
  // `integ schema` takes this argument.
  object: examples("policy", "plan", "status", "report", "journal_entry", "error"),
  // The API document names one type and three permissions (§2.2, §5.1 rule 5); more may exist.
  type: examples("person"),
  scope: examples("entity:read", "organization:read", "service_account:manage"),
  store: examples("vault:", "github:", "k8s:", "keychain:"),
  "a,b.c": { kind: "fields" },
  method: examples("GET", "POST", "PUT", "PATCH", "DELETE"),
  date: examples("2026-07-01"),
  ...Object.fromEntries(unknowable.split(" ").map((name) => [name, nothing])),
};

/** Exceptions to `byName`: the key is a flag, or a command with a flag or an argument. */
export const byPlace: Readonly<Record<string, Completion>> = {
  [flags.profile]: live("profiles"),
  [flags.secretProfile]: live("profiles"),
  [flags.serviceAccount]: live("accounts"),
  "profiles show name": live("profiles"),
  "profiles use name": live("profiles"),
  "profiles edit name": live("profiles"),
  "profiles remove name": live("profiles"),
  "journal show id": live("entries"),
  "journal recover id": live("unfinished"),
  "journal claim id": live("claimable"),
  "journal forget id": live("unfinished"),
  "oauth-clients get id": live("clients"),
  "oauth-clients revoke id": live("clients"),
  "oauth-clients rotate id": live("clients"),
  "keys rotate id": live("keys"),
  "adopt oauth-client id": live("clients"),
  "adopt access-key id": live("keys"),
  "keys revoke id": live("keys"),
  "keys get id": live("keys"),
  [`plan ${flags.only}`]: live("items"),
  [`apply ${flags.only}`]: live("items"),
  [`oauth-clients rotate ${flags.name}`]: live("items"),
  [`keys rotate ${flags.name}`]: live("items"),
  [`keys create ${flags.scope}`]: examples("*", "push-ingest:*"),
  [`keys rotate ${flags.scope}`]: examples("*", "push-ingest:*"),
  // These paths have no id (§4.3 to §4.5).
  "api path": examples("/v1/entities", "/v1-reference/openapi-v1.json", "/api/v1/access-keys", "/api/v1/people/search"),
};

export interface Position {
  readonly path: readonly string[];
  readonly name: string;
  readonly flag?: string;
  readonly choices?: readonly string[] | undefined;
}

export function completionOf({ path, name, flag, choices }: Position): Completion {
  if (choices) return { kind: "words", words: choices, open: false };
  const special = byPlace[[...path, flag ?? name].join(" ")] ?? (flag === undefined ? undefined : byPlace[flag]);
  return special ?? byName[name] ?? nothing;
}
