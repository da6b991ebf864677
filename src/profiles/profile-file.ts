// profiles.json: its schema, and how it is read and replaced. Reading is a file and zod; only writing loads conf.
import { readFileSync, statSync } from "node:fs";
import { basename, dirname } from "node:path";
import * as z from "zod/mini";
import { linkTarget, replaceByCandidate } from "../disk/atomic-write.ts";
import { fileFailure, isMissing } from "../disk/error-words.ts";
import { Failure } from "../errors.ts";
import { checkBaseUrl, checkEndpoint } from "./address.ts";
import { mapJson, type JsonPosition, placeOf, placeOfValue } from "./json-place.ts";
import { namePattern, organizationIdPattern, reservedNames } from "./names.ts";
import { shell } from "../next-step.ts";

/** True if `check` takes the text: an address in a hand-edited file is held to the same rules as a flag. */
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

/** The two credential shapes of HTTP Basic (§5.1 rule 1). */
const BasicStyle = z.enum(["apikey-user", "key-as-user"], { error: "must be apikey-user or key-as-user" });
export type BasicStyle = z.infer<typeof BasicStyle>;

const ClientAuth = z.enum(["client_secret_basic", "client_secret_post"], {
  error: "must be client_secret_basic or client_secret_post",
});

/** What the organization's setup gives for the token exchange (§5.2 rule 3). */
const oauthFields = {
  token_endpoint: Endpoint,
  audience: z.optional(z.string()),
  issuer: z.optional(z.string()),
  client_auth: ClientAuth,
};
const OAuthSettings = z.looseObject(oauthFields);
export type OAuthSettings = z.infer<typeof OAuthSettings>;

/** Where the secret part of a credential is: kept by integ under `ref`, or printed by a command at each use. */
const secretFields = {
  source: z.enum(["stored", "command"], { error: "must be stored or command" }),
  command: z.optional(z.string().check(z.minLength(1))),
  ref: z.optional(z.uuid()),
  kept: z.optional(z.enum(["keychain", "file"], { error: "must be keychain or file" })),
};

export type SecretFields = z.infer<z.ZodMiniObject<typeof secretFields>>;

function isComplete(it: SecretFields): boolean {
  return it.source === "command" ? it.command !== undefined : it.ref !== undefined && it.kept !== undefined;
}
const incompleteWords = "with source command needs command, with source stored needs ref and kept";

const ApiKeyCredential = z
  .looseObject({
    kind: z.literal("api_key"),
    basic_style: BasicStyle,
    /** Resource id of the access key, if it is known: `keys rotate` then knows the profile's own key. */
    key_id: z.optional(z.string()),
    ...secretFields,
  })
  .check(z.refine(isComplete, incompleteWords));

const ClientCredential = z
  .looseObject({
    kind: z.literal("client_credentials"),
    client_id: z.string().check(z.minLength(1)),
    ...oauthFields,
    ...secretFields,
  })
  .check(z.refine(isComplete, incompleteWords));

const StoredCredential = z.discriminatedUnion("kind", [ApiKeyCredential, ClientCredential]);
export type StoredCredential = z.infer<typeof StoredCredential>;

/** How the key's secret becomes the short-lived bearer token of the legacy contract (§5.3; not shown there). */
const LegacyAccess = z.discriminatedUnion("kind", [
  z.looseObject({ kind: z.literal("access_token_command"), command: z.string().check(z.minLength(1)) }),
  z.looseObject({ kind: z.literal("access_token_endpoint"), url: Endpoint }),
]);
export type LegacyAccess = z.infer<typeof LegacyAccess>;

/** Unknown keys are kept: an older integ must not lose what a newer one wrote. */
const Profile = z.looseObject({
  /** Random, for ever the same: a profile removed and added again is another one. */
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
  /** The origins the credential was given for, see `originsOf`; empty if there is none. */
  credential_origins: z.array(z.string()),
  legacy: z.optional(LegacyAccess),
  /** Known token endpoint of a profile whose own credential is an API key: proves new clients, receives them. */
  oauth: z.optional(OAuthSettings),
  /** Address of the team's journal that its changes are kept in, without a password. */
  journal: z.optional(z.string()),
  /** Public keys (age) that undelivered secrets are encrypted to, for that journal. */
  escrow: z.optional(z.array(z.string())),
});
export type Profile = z.infer<typeof Profile>;

const formatVersion = 1;

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

function parseFile(text: string, path: string): ProfileFile {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw damaged(path, placeOf(text, mapJson(text).brokenAt ?? 0), "it is not valid JSON");
  }
  const parsed = ProfileFile.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const at = issue?.path ?? [];
  const where = at.length > 0 ? `${at.map(String).join(".")} ` : "";
  throw damaged(path, placeOfValue(text, at), where + (issue?.message ?? "it does not fit"));
}

/** Others may have inserted a command that runs as this user: a file they could change is not read. */
function refuseIfOpenToOthers(path: string): void {
  if (process.platform === "win32") return;
  if ((statSync(path).mode & 0o022) === 0) return;
  throw new Failure("usage", `${path} can be changed by other users.`, { nextCommand: shell`chmod 600 ${path}` });
}

export function readProfileFile(path: string): ProfileFile {
  let text: string;
  try {
    refuseIfOpenToOthers(path);
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (isMissing(error)) return { version: formatVersion, default: null, profiles: [] };
    throw fileFailure(error, "read", { path });
  }
  if (lastRead?.text !== text || lastRead.path !== path)
    // A byte order mark, as some editors leave it, is not an error.
    lastRead = { path, text, file: parseFile(text.replace(/^\uFEFF/, ""), path) };
  return lastRead.file;
}

/** The file is read each time; the same text is not checked again, since thousands of profiles take a while. */
let lastRead: { readonly path: string; readonly text: string; readonly file: ProfileFile } | undefined;

/** What conf does to a candidate of an older format: an entry for each new one, which sets `version` too. */
const migrations = {};

/**
 * Replaces profiles.json in one step; the caller holds its lock. A symbolic link to it (dotfiles) stays, and what it
 * names is replaced. conf brings the candidate to the newest format and writes it; it takes a short write on a full disk
 * for success and never syncs the folder, so that disk/ proves the candidate whole before it gets the name.
 */
export async function writeProfileFile(path: string, file: ProfileFile): Promise<void> {
  try {
    const { default: Conf } = await import("conf");
    replaceByCandidate(linkTarget(path), (candidate) => {
      let text = "";
      try {
        // eslint-disable-next-line no-new -- the constructor writes
        new Conf<Record<string, unknown>>({
          cwd: dirname(candidate),
          configName: basename(candidate),
          fileExtension: "",
          configFileMode: 0o600,
          defaults: file,
          projectVersion: `${formatVersion}.0.0`,
          migrations,
          serialize: (content) => (text = `${JSON.stringify({ ...content, [confState]: undefined }, null, 2)}\n`),
          deserialize: withConfState,
        });
      } catch (error) {
        if (!(error instanceof SyntaxError)) throw error; // a cut file that it reads again: the proof says why
      }
      return text;
    });
  } catch (error) {
    throw fileFailure(error, "write", { path });
  }
}

/** Where conf keeps the version that it migrates from. The file has it as `version` instead. */
const confState = "__internal__";

function withConfState(text: string): Record<string, unknown> {
  const content: { version: number } = JSON.parse(text);
  return { ...content, [confState]: { migrations: { version: `${content.version}.0.0` } } };
}
