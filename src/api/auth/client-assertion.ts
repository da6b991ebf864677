// Authenticates an OAuth client by an assertion instead of a secret (RFC 7521 §4.2, RFC 7523 §2.2).
import { createPrivateKey, type KeyObject, webcrypto } from "node:crypto";
import { Failure } from "../../errors.ts";
import { parseJson } from "../json/json-text.ts";
import type { TokenEndpoint } from "./credential.ts";
import { isObject } from "../../json.ts";

type OAuth = typeof import("oauth4webapi");

export interface Authenticated {
  /** Claims of an assertion that a command printed, to show if the endpoint refuses the assertion. */
  readonly claims?: string;
}

export interface AuthenticatedBy extends Authenticated {
  readonly by: import("oauth4webapi").ClientAuth;
  /** The client secret or the assertion, to mask in responses. Absent if oauth4webapi signs the assertion later. */
  readonly secret?: string;
}

const leewayMs = 60_000;

/** @throws Failure `auth` for an assertion that is not a JWT, expired or not yet valid; its text omits the signature */
export function assertionAuthentication(assertion: string, checked: Checked): AuthenticatedBy {
  const { nowMs } = checked;
  const payload = payloadOf(assertion);
  if (payload === undefined)
    throw new Failure("auth", "The client assertion is not a signed JWT.", {
      meaning: "It has to be three parts in base64url with dots between them. Nothing was sent.",
      hint: "Check what the command prints: the assertion alone.",
    });
  const claims = claimsText(payload, checked);
  if (typeof payload.exp === "number" && payload.exp * 1000 < nowMs - leewayMs)
    throw new Failure("auth", "The client assertion has expired.", {
      meaning: `${claims} Nothing was sent.`,
      hint: "Check that the command gets a new assertion at each call, and that this machine's clock is right.",
    });
  if (typeof payload.nbf === "number" && payload.nbf * 1000 > nowMs + leewayMs)
    throw new Failure("auth", "The client assertion is not valid yet.", {
      meaning: `${claims} Nothing was sent.`,
      hint: "Check that this machine's clock is right, and what the command asks for.",
    });
  return {
    by(_server, client, body) {
      body.set("client_id", client.client_id);
      body.set("client_assertion", assertion);
      body.set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
    },
    secret: assertion,
    claims,
  };
}

type Checked = Pick<TokenEndpoint, "tokenEndpoint" | "issuer"> & { readonly clientId: string; readonly nowMs: number };

function payloadOf(assertion: string): Readonly<Record<string, unknown>> | undefined {
  const parts = /^[\w-]+\.([\w-]+)\.[\w-]+$/.exec(assertion);
  if (parts === null) return undefined;
  try {
    const payload = parseJson(Buffer.from(parts[1]!, "base64url")).value;
    return isObject(payload) ? payload : undefined;
  } catch {
    return undefined;
  }
}

/** RFC 7523 §3 defines the claims. */
function claimsText(payload: Readonly<Record<string, unknown>>, { clientId, nowMs, ...expected }: Checked): string {
  const { iss, sub, aud, exp, iat, nbf } = payload;
  const claims = {
    issuer: claimText(iss),
    subject: claimText(sub),
    audience: claimText(aud),
    expires: time(exp),
    ...(iat !== undefined && { issued: time(iat) }),
    ...(nbf !== undefined && { "valid from": time(nbf) }),
  };
  const servers = [expected.tokenEndpoint, ...(expected.issuer === undefined ? [] : [expected.issuer])];
  const isForServer = [aud].flat().some((one) => servers.some((server) => server === one));
  const client = `usually the client id ${JSON.stringify(clientId)}`;
  const differences = [
    // A CI service uses its own address as the issuer, which is valid too.
    iss !== clientId && !/^https?:/.test(String(iss)) && `the issuer is ${client}`,
    sub !== clientId && `the subject is ${client}`,
    !isForServer && `the audience is usually ${servers.map((one) => JSON.stringify(one)).join(" or ")}`,
    typeof exp === "number" ? exp * 1000 <= nowMs && "it has expired" : "it needs a time of expiry",
    typeof iat === "number" && iat * 1000 > nowMs && "it was issued in the future",
    typeof nbf === "number" && nbf * 1000 > nowMs && "it is not valid yet",
  ].filter(Boolean);
  const words = Object.entries(claims).map(([name, value]) => `${name} ${value}`);
  const usual = "these are the usual values, so check the key that signed it";
  return `The assertion says: ${[words.join(", "), ...(differences.length > 0 ? differences : [usual])].join("; ")}.`;
}

function claimText(claim: unknown): string {
  return JSON.stringify(claim) ?? "missing";
}

function time(claim: unknown): string {
  const at = typeof claim === "number" ? new Date(claim * 1000) : undefined;
  if (at !== undefined && !Number.isNaN(at.getTime())) return JSON.stringify(at.toISOString());
  return claim === undefined ? "missing" : `${claimText(claim)}, which is not a time in seconds since 1970`;
}

/** Authenticates by `private_key_jwt` (OpenID Connect Core §9). @throws Failure `auth` for a key that cannot sign */
export async function keyAuthentication(
  oauth: OAuth,
  { privateKey, issuer, tokenEndpoint }: TokenEndpoint & { readonly privateKey: string },
): Promise<AuthenticatedBy> {
  const key = await importedKey(privateKey);
  const by = oauth.PrivateKeyJwt(key, {
    [oauth.modifyAssertion](_header, payload) {
      payload.aud = issuer ?? tokenEndpoint;
    },
  });
  return { by };
}

async function importedKey(pem: string): Promise<webcrypto.CryptoKey> {
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch (error) {
    throw unusable("it is not a private key in PEM without a password", error);
  }
  const algorithm = algorithmOf(key);
  if (algorithm === undefined) throw unusable(`its kind (${key.asymmetricKeyType}) signs no assertions`);
  const der = key.export({ type: "pkcs8", format: "der" });
  return webcrypto.subtle.importKey("pkcs8", der, algorithm, false, ["sign"]);
}

function unusable(why: string, cause?: unknown): Failure {
  return new Failure("auth", `The client's private key cannot be used: ${why}.`, {
    hint: "Use a key of RSA, of the curves P-256, P-384 or P-521, or Ed25519.",
    cause,
  });
}

const curves: Readonly<Record<string, string>> = { prime256v1: "P-256", secp384r1: "P-384", secp521r1: "P-521" };

function algorithmOf({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): AnyAlgorithm | undefined {
  if (type === "rsa") return { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
  if (type === "ed25519") return { name: "Ed25519" };
  const namedCurve = type === "ec" ? curves[details?.namedCurve ?? ""] : undefined;
  return namedCurve === undefined ? undefined : { name: "ECDSA", namedCurve };
}

type AnyAlgorithm = { readonly name: string; readonly hash?: string; readonly namedCurve?: string };
