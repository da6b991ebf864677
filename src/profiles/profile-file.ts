// The format of profiles.json: its schema, positions of errors, and the journal settings.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod/mini";
import { fileFailure } from "../disk/error-words.ts";
import { checkCommandFile } from "../disk/private-file.ts";
import { Failure } from "../errors.ts";
import { checkBaseUrl, checkEndpoint } from "./address.ts";
import { mapJson, type JsonPosition, positionAt, positionOfValue } from "./json-place.ts";
import { namePattern, organizationIdPattern, reservedNames } from "./names.ts";

/** Users may edit addresses by hand, so the schema applies the rules of the flags. */
function passes(check: (text: string) => unknown): (text: string) => boolean {
  return (text) => {
    try {
      check(text);
      return true;
    } catch (error) {
      if (error instanceof Failure) return false;
      throw error;
    }
  };
}

const addressWords = "must be an https:// address (http:// on loopback only) without user name or fragment";
const Endpoint = z.string().check(z.refine(passes(checkEndpoint), addressWords));

const Region = z.enum(["us", "eu"], { error: "must be us or eu" });
export type Region = z.infer<typeof Region>;

/** The two Basic forms of an API key (§5.1 rule 1). */
const BasicStyle = z.enum(["apikey-user", "key-as-user"], { error: "must be apikey-user or key-as-user" });
export type BasicStyle = z.infer<typeof BasicStyle>;

const ClientAuth = z.enum(["client_secret_basic", "client_secret_post"], {
  error: "must be client_secret_basic or client_secret_post",
});

/** The organization's settings of the token exchange (§5.2 rule 3). */
const oauthFields = {
  token_endpoint: Endpoint,
  audience: z.optional(z.string()),
  issuer: z.optional(z.string()),
  scope: z.optional(z.string()),
  client_auth: ClientAuth,
};
const OAuthSettings = z.looseObject(oauthFields);
export type OAuthSettings = z.infer<typeof OAuthSettings>;

/** integ stores the secret under `ref`, or a command prints it at each use. */
const secretFields = {
  source: z.enum(["stored", "command"], { error: "must be stored or command" }),
  command: z.optional(z.string().check(z.minLength(1))),
  ref: z.optional(z.uuid()),
  kept: z.optional(z.enum(["keychain", "file"], { error: "must be keychain or file" })),
};

/** A client can authenticate without a secret: by an assertion that a command prints, or by a private key file. */
const clientSecretFields = {
  ...secretFields,
  source: z.enum(["stored", "command", "assertion_command", "key_file"], {
    error: "must be stored, command, assertion_command or key_file",
  }),
  key_file: z.optional(z.string().check(z.minLength(1))),
};

export type SecretFields = z.infer<z.ZodMiniObject<typeof clientSecretFields>>;

function isComplete({ source, command, key_file, ref, kept }: SecretFields): boolean {
  if (source === "stored") return ref !== undefined && kept !== undefined;
  return (source === "key_file" ? key_file : command) !== undefined;
}
const incompleteWords =
  "with source stored needs ref and kept, with source key_file needs key_file, with another source needs command";

const ApiKeyCredential = z
  .looseObject({
    kind: z.literal("api_key"),
    basic_style: BasicStyle,
    /** The resource id of the access key, by which integ recognizes the profile's own key. */
    key_id: z.optional(z.string()),
    ...secretFields,
  })
  .check(z.refine(isComplete, incompleteWords));

const ClientCredential = z
  .looseObject({
    kind: z.literal("client_credentials"),
    client_id: z.string().check(z.minLength(1)),
    ...oauthFields,
    ...clientSecretFields,
  })
  .check(z.refine(isComplete, incompleteWords));

const StoredCredential = z.discriminatedUnion("kind", [ApiKeyCredential, ClientCredential]);
export type StoredCredential = z.infer<typeof StoredCredential>;

/**
 * §5.3 does not show how a key's secret is exchanged for a legacy bearer token, so the profile names a command or an
 * endpoint.
 */
const LegacyAccess = z.discriminatedUnion("kind", [
  z.looseObject({ kind: z.literal("access_token_command"), command: z.string().check(z.minLength(1)) }),
  z.looseObject({ kind: z.literal("access_token_endpoint"), url: Endpoint }),
]);
export type LegacyAccess = z.infer<typeof LegacyAccess>;

/** Unknown keys are kept, so that an older integ does not remove the settings of a newer one. */
const Profile = z.looseObject({
  /** The id is random and permanent: a profile that is removed and added again has another id. */
  id: z.uuid(),
  name: z.string().check(
    z.regex(namePattern, "must be 1 to 64 of A-Z a-z 0-9 . _ -"),
    z.refine((name) => !reservedNames.has(name), "is a reserved name (sandbox, sandbox-eu, env)"),
  ),
  region: Region,
  base_url: z.string().check(z.refine(passes(checkBaseUrl), `${addressWords} or query`)),
  organization_id: z.optional(z.string().check(z.regex(organizationIdPattern, "must be a UUID"))),
  service_version: z.optional(
    z.string().check(z.regex(/^(?:none|\d{4}-\d{2}-\d{2})$/, "must be a date, YYYY-MM-DD, or none")),
  ),
  credential: z.nullable(StoredCredential),
  /** The origins that the credential was given for (`originsOf`); empty without a credential. */
  credential_origins: z.array(z.string()),
  legacy: z.optional(LegacyAccess),
  /** The token endpoint that proves new clients and receives their secrets. Client credentials contain their own endpoint. */
  oauth: z.optional(OAuthSettings),
  /** The address of the team's journal, without a password. */
  journal: z.optional(z.string()),
  /** The command that prints the journal's keys; `INTEG_JOURNAL_KEY` overrides it. */
  journal_key_command: z.optional(z.string()),
  /** The age recipients of undelivered secrets in that journal. */
  escrow: z.optional(z.array(z.string())),
  /** If set, the only destinations allowed for the profile's secrets. */
  destinations: z.optional(z.looseObject({ allow: z.array(z.string()) })),
});
export type Profile = z.infer<typeof Profile>;

const formatVersion = 1;

export const noProfiles: ProfileFile = { version: formatVersion, default: null, profiles: [] };

export const ProfileFile = z.looseObject(
  {
    version: z.literal(formatVersion, { error: `must be ${formatVersion} (a newer integ may have written it)` }),
    default: z.nullable(z.string()),
    profiles: z.array(Profile).check(
      z.refine((all) => new Set(all.map((it) => it.name)).size === all.length, "must not repeat a name"),
      z.refine((all) => new Set(all.map((it) => it.id)).size === all.length, "must not repeat an id"),
    ),
  },
  "it must be one JSON object, as integ wrote it",
);
export type ProfileFile = z.infer<typeof ProfileFile>;

function damaged(path: string, place: JsonPosition, what: string): Failure {
  return new Failure("usage", `${path} is broken at line ${place.line}, column ${place.column}: ${what}.`, {
    meaning:
      "Nothing was changed, and no other profile or credential was used instead. Fix the line or move the file away.",
    where: `${path}:${place.line}:${place.column}`,
  });
}

function parseFile(marked: string, path: string): ProfileFile {
  const text = marked.replace(/^\uFEFF/, "");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw damaged(path, positionAt(text, mapJson(text).brokenAt ?? 0), "it is not valid JSON");
  }
  const parsed = ProfileFile.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const at = issue?.path ?? [];
  const where = at.length > 0 ? `${at.map(String).join(".")} ` : "";
  throw damaged(path, positionOfValue(text, at), where + (issue?.message ?? "it does not fit"));
}

/** conf parses and validates the file with `deserialize` on each read. */
export function formatOf(path: string): {
  deserialize: (text: string) => ProfileFile;
  serialize: (file: object) => string;
} {
  return {
    deserialize: (text) => parseFile(text, path),
    serialize: (file) => `${JSON.stringify(file, null, 2)}\n`,
  };
}

export interface ProfileJournal {
  readonly journal?: string | undefined;
  readonly keyCommand?: { readonly command: string; readonly profile: string } | undefined;
  readonly escrow: readonly string[];
}

/**
 * Reads the journal settings with the store's checks, so that an unreadable file never selects another journal.
 * @param name if undefined, the default profile
 * @throws Failure `usage` if the file is damaged or other users may write to it
 */
export function readProfileJournal(configDir: string, name: string | undefined): ProfileJournal {
  const path = join(configDir, "profiles.json");
  if (!checkCommandFile(path)) return { escrow: [] };
  const { default: standard, profiles } = parseFile(textOf(path), path);
  const found = profiles.find((profile) => profile.name === (name ?? standard));
  if (found === undefined) return { escrow: [] };
  const { journal, journal_key_command: command, escrow = [] } = found;
  return { journal, keyCommand: command === undefined ? undefined : { command, profile: found.name }, escrow };
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw fileFailure(error, "read", { path });
  }
}
