// Loads a profile's credential at its first use, and only for the credential's origins (§5.1 to §5.3).
import type { ClientProof } from "../api/auth/credential.ts";
import { Failure } from "../errors.ts";
import type { Credentials } from "./credentials.ts";
import { type Environment, variable, type Resolution } from "./resolution.ts";
import {
  type ActiveProfile,
  type Credential,
  commandForCredential,
  missingCredentialOf,
  type LegacyAccess,
  type LegacyCredential,
  type OAuthSettings,
  noCredential,
  originsOf,
  type Profile,
  secretSourceOf,
  type StoredCredential,
} from "./profile.ts";
import type { secretFromCommand, ShellOptions } from "./shell-command.ts";
import { flags, settingOf } from "../next-step.ts";

export interface SandboxAccess {
  readonly organizationId: string;
  readonly oauth?: OAuthSettings;
  credential(): Promise<Credential>;
  legacy(): Promise<LegacyCredential>;
}

export interface ActivationTools {
  readonly env: Environment;
  readonly credentials: Pick<Credentials, "read">;
  readonly sandbox?: (region: "us" | "eu") => Promise<SandboxAccess>;
  readonly onStderr?: (chunk: Buffer) => void;
  readonly commandLimitMs?: number;
  readonly signal?: AbortSignal;
}

type Access = Pick<ActiveProfile, "credential" | "legacy" | "keyExchange">;

/** Caches the first success, so that a command or keychain is not used again. */
function once<T>(get: () => Promise<T>): () => Promise<T> {
  let cached: Promise<T> | undefined;
  return () => {
    cached ??= get().catch((error: unknown) => {
      cached = undefined;
      throw error;
    });
    return cached;
  };
}

function shellOptions(tools: ActivationTools): ShellOptions {
  return {
    env: tools.env,
    timeLimitMs: tools.commandLimitMs ?? 30_000,
    onStderr: tools.onStderr,
    signal: tools.signal,
  };
}

async function secretOf(profile: Profile, credential: StoredCredential, tools: ActivationTools): Promise<string> {
  const source = secretSourceOf(credential);
  if (source.from === "stored") {
    return tools.credentials.read(source, originsOf(profile)).catch((error: unknown) => {
      if (!(error instanceof Failure) || error.kind !== "auth" || error.details.hint !== undefined) throw error;
      throw new Failure("auth", error.message, { ...error.details, nextCommand: commandForCredential(profile) });
    });
  }
  if (source.from === "key_file") return keyIn(source.path, profile);
  const [isAssertion, isKey] = [source.from === "assertion", credential.kind === "api_key"];
  const flag = isAssertion ? flags.clientAssertionCommand : isKey ? flags.apiKeyCommand : flags.clientSecretCommand;
  return secretFrom(source.command, { ...shellOptions(tools), alone: isAssertion, flag, profile: profile.name });
}

async function keyIn(path: string, profile: Profile): Promise<string> {
  const { readPrivateFile } = await import("../disk/private-file.ts");
  const key = readPrivateFile(path);
  if (key !== undefined) return key;
  throw new Failure("auth", `The private key of profile ${profile.name} is missing: there is no file ${path}.`, {
    nextCommand: commandForCredential(profile),
  });
}

async function proofOf(profile: Profile, credential: StoredCredential, tools: ActivationTools): Promise<ClientProof> {
  const { from } = secretSourceOf(credential);
  if (from === "assertion") return { assertion: () => secretOf(profile, credential, tools) };
  const secret = await secretOf(profile, credential, tools);
  return from === "key_file" ? { privateKey: secret } : { clientSecret: secret };
}

const secretFrom: typeof secretFromCommand = async (command, options) =>
  (await import("./shell-command.ts")).secretFromCommand(command, options);

function clientCredential(clientId: string, proof: ClientProof, oauth: OAuthSettings): Credential {
  return {
    kind: "client_credentials",
    clientId,
    ...proof,
    tokenEndpoint: oauth.token_endpoint,
    clientAuth: oauth.client_auth,
    audience: oauth.audience,
    issuer: oauth.issuer,
    scope: oauth.scope,
  };
}

async function storedCredential(profile: Profile, tools: ActivationTools): Promise<Credential> {
  const { credential } = profile;
  const missing = missingCredentialOf(profile, "v1");
  if (missing !== undefined || credential === null) throw missing;
  return credential.kind === "api_key"
    ? { kind: "api_key", key: await secretOf(profile, credential, tools), style: credential.basic_style }
    : clientCredential(credential.client_id, await proofOf(profile, credential, tools), credential);
}

async function storedLegacy(profile: Profile, tools: ActivationTools): Promise<LegacyCredential> {
  const { legacy, credential, name } = profile;
  const missing = missingCredentialOf(profile, "legacy");
  if (missing !== undefined || legacy === undefined) throw missing;
  const secret = credential?.kind === "api_key" ? await secretOf(profile, credential, tools) : undefined;
  if (legacy.kind === "access_token_endpoint") {
    if (secret === undefined) {
      throw new Failure("auth", `Profile ${name} has no API key to exchange for a legacy bearer token.`, {
        meaning: "OAuth client credentials work for /v1 only.",
      });
    }
    return { kind: "exchange_endpoint", url: legacy.url, secret, edit: commandForCredential(profile) };
  }
  return {
    kind: "exchange_command",
    secret,
    run: (input) =>
      secretFrom(legacy.command, {
        ...shellOptions(tools),
        input,
        alone: true,
        flag: flags.accessTokenCommand,
        profile: name,
      }),
  };
}

function environmentProof(tools: ActivationTools): ClientProof | undefined {
  const { env } = tools;
  const command = variable(env, "INTEG_CLIENT_ASSERTION_COMMAND");
  if (command !== undefined) {
    const options = { ...shellOptions(tools), alone: true, flag: "INTEG_CLIENT_ASSERTION_COMMAND", profile: "env" };
    return { assertion: () => secretFrom(command, options) };
  }
  const clientSecret = variable(env, "INTEG_CLIENT_SECRET");
  return clientSecret === undefined ? undefined : { clientSecret };
}

function environmentAccess(resolution: Resolution, tools: ActivationTools): Access & Pick<ActiveProfile, "principal"> {
  const { env } = tools;
  return {
    principal: variable(env, "INTEG_API_KEY") === undefined ? variable(env, "INTEG_CLIENT_ID") : undefined,
    credential: async () => {
      const key = variable(env, "INTEG_API_KEY");
      if (key !== undefined) return { kind: "api_key", key, style: "apikey-user" };
      const clientId = variable(env, "INTEG_CLIENT_ID");
      const proof = environmentProof(tools);
      if (clientId === undefined || proof === undefined || !resolution.oauth) throw noCredential("env");
      return clientCredential(clientId, proof, resolution.oauth);
    },
    legacy: async () => {
      const token = variable(env, "INTEG_ACCESS_TOKEN");
      if (token !== undefined) return { kind: "access_token", token };
      throw new Failure("auth", "The environment has no legacy bearer token.", {
        meaning:
          "/api/v1 needs a bearer token, and no variable names the endpoint that exchanges INTEG_API_KEY for one.",
        hint: `Set INTEG_ACCESS_TOKEN, or use a profile with ${flags.accessTokenEndpoint} or ${flags.accessTokenCommand}.`,
      });
    },
  };
}

function exchangeOf(legacy: LegacyAccess): Access["keyExchange"] {
  return legacy.kind === "access_token_endpoint" ? { kind: "endpoint", url: legacy.url } : { kind: "command" };
}

async function accessOf(resolution: Resolution, tools: ActivationTools): Promise<Access & Partial<ActiveProfile>> {
  const { from } = resolution;
  if (from.kind === "environment") return environmentAccess(resolution, tools);
  if (from.kind === "sandbox") {
    if (tools.sandbox === undefined) throw new Error("the sandbox profiles need the embedded service");
    const access = await tools.sandbox(resolution.region);
    return {
      organizationId: access.organizationId,
      oauth: access.oauth,
      keyExchange: { kind: "endpoint" },
      credential: () => access.credential(),
      legacy: () => access.legacy(),
    };
  }
  const { profile } = from;
  const keyId = profile.credential?.kind === "api_key" ? profile.credential.key_id : undefined;
  const { legacy } = profile;
  const keyExchange = legacy && exchangeOf(legacy);
  return {
    keyId,
    principal: profile.credential?.kind === "client_credentials" ? profile.credential.client_id : undefined,
    keyExchange,
    credential: () => storedCredential(profile, tools),
    legacy: () => storedLegacy(profile, tools),
  };
}

/** Reads no secret and runs no command until a credential is requested; only the sandbox is started here. */
export async function activate(resolution: Resolution, tools: ActivationTools): Promise<ActiveProfile> {
  const { from: _from, ...facts } = resolution;
  const access = await accessOf(resolution, tools);
  const profile = { ...facts, ...access };
  const legacy = once(access.legacy);
  return {
    ...profile,
    credential: once(access.credential),
    legacy: async () => {
      if (profile.organizationId !== undefined) return legacy();
      throw new Failure("usage", `Profile ${profile.name} has no organization id, and the legacy contract needs one.`, {
        ...(profile.name === "env"
          ? { hint: "Set INTEG_ORGANIZATION_ID." }
          : settingOf(profile.name, flags.organizationId)),
      });
    },
  };
}
