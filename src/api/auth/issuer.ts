// Owns: what the issuer of the tokens publishes of itself (RFC 8414 §3; OpenID Connect Discovery §4), held against what the
// profile says (§5.2 rule 3). No credential goes there.
// Must not know: what a difference means to a person.
import type { Answered, Attempt } from "../http/attempt.ts";
import { type Answer, toAttempt } from "../http/caller.ts";
import type { TokenEndpoint } from "./credential.ts";
import { BrokenBody, parseJson } from "../json/json-body.ts";
import { Failure } from "../../errors.ts";
import { type ExchangeOptions, splitAddress } from "./token-exchange.ts";

/** What of the profile's token endpoint the issuer does not say of itself. */
export type IssuerDifference =
  | { readonly kind: "token_endpoint"; readonly published: string | undefined }
  | { readonly kind: "client_auth"; readonly published: readonly string[] };

/** RFC 8414 §2: what holds where `token_endpoint_auth_methods_supported` is left out. */
const impliedAuth = ["client_secret_basic"];

/**
 * Reads the issuer's metadata, from the address of RFC 8414 or else from OpenID Connect's.
 * @returns the differences; `refused` where it publishes nothing, `unknown` where what it publishes is another issuer's
 * @assumed §5.2 rule 3 names an issuer and does not say what it is for: it vouches for the token endpoint, as in RFC 8414
 * @throws Failure `usage` where the issuer is no address
 */
export async function compareIssuer(
  expected: TokenEndpoint & { readonly issuer: string },
  options: ExchangeOptions,
): Promise<Attempt<readonly IssuerDifference[]>> {
  if (!URL.canParse(expected.issuer) || !/^https?:/i.test(expected.issuer))
    throw new Failure("usage", "The issuer is no address.", { hint: "It looks like https://auth.example.com" });
  const own = await read(expected.issuer, { ...options, algorithm: "oauth2" });
  const attempt = own.kind === "refused" ? await read(expected.issuer, { ...options, algorithm: "oidc" }) : own;
  return attempt.kind === "answered" ? { ...attempt, value: differences(expected, attempt.value) } : attempt;
}

type Metadata = import("oauth4webapi").AuthorizationServer;

async function read(
  issuer: string,
  { transport, now, algorithm }: ExchangeOptions & { readonly algorithm: "oauth2" | "oidc" },
): Promise<Attempt<Metadata>> {
  const oauth = await import("oauth4webapi");
  let address = "";
  await oauth.discoveryRequest(new URL(issuer), {
    algorithm,
    // Which addresses may be plain http is the transport's rule.
    [oauth.allowInsecureRequests]: true,
    async [oauth.customFetch](url: string) {
      address = url;
      return new Response();
    },
  });
  const headers = { accept: "application/json" };
  const exchange = await transport.exchange({ method: "GET", ...splitAddress(address), headers });
  const attempt = toAttempt(exchange, { request: { success: [200] }, read: (answer) => answer, now });
  if (attempt.kind !== "answered") return attempt;
  return await metadataOf(attempt, (response) => oauth.processDiscoveryResponse(new URL(issuer), response));
}

async function metadataOf(
  answer: Answered<Answer>,
  process: (response: Response) => Promise<Metadata>,
): Promise<Attempt<Metadata>> {
  const { body, headers } = answer.value;
  try {
    parseJson(body);
    const type = { "content-type": headers["content-type"] ?? "application/json" };
    return { ...answer, value: await process(new Response(new Uint8Array(body), { headers: type })) };
  } catch (error) {
    const detail = error instanceof BrokenBody ? error.message : "what it publishes is not this issuer's metadata";
    return { kind: "unknown", status: answer.status, reason: "malformed", detail };
  }
}

function differences({ tokenEndpoint, clientAuth }: TokenEndpoint, metadata: Metadata): IssuerDifference[] {
  const { token_endpoint: published, token_endpoint_auth_methods_supported: methods = impliedAuth } = metadata;
  return [
    ...(published === tokenEndpoint ? [] : [{ kind: "token_endpoint" as const, published }]),
    ...(methods.includes(clientAuth) ? [] : [{ kind: "client_auth" as const, published: methods }]),
  ];
}
