// Requests for OAuth clients, with checked responses (§2.3, §3.1, §4.2, §8).
import * as z from "zod/mini";
import type { Attempt } from "./call/attempt.ts";
import { type Caller, jsonOf } from "./call/caller.ts";
import { segment } from "./call/request.ts";
import { BrokenBody, type JsonBody } from "./json/json-text.ts";

/** The client of §2.3. Unknown fields are allowed. */
export const OAuthClient = z.looseObject({
  object: z.literal("oauth_client"),
  /** Not the client id of the token exchange. */
  id: z.string().check(z.minLength(1)),
  service_account_id: z.string(),
  /** For the token exchange; may be null until the creation completes. */
  client_id: z.nullable(z.string().check(z.minLength(1))),
  scopes: z.array(z.string()),
  status: z.string(),
  created_at: z.string(),
  /** Only in the response that completes the creation. */
  client_secret: z.optional(z.nullable(z.string())),
});
export type OAuthClient = z.infer<typeof OAuthClient>;

export interface OAuthClients {
  /** @param idempotencyKey repeated with the same body, returns the receipt of the same client */
  create(bodyText: string, idempotencyKey: string): Promise<Attempt<OAuthClient>>;
  get(id: string): Promise<Attempt<OAuthClient>>;
  /** Safe to repeat. Only the status `revoked` confirms the revocation. */
  revoke(id: string): Promise<Attempt<OAuthClient>>;
}

export function createOAuthClients(v1: Caller): OAuthClients {
  return {
    create: (bodyText, idempotencyKey) =>
      v1.send(
        {
          method: "POST",
          path: "/v1/oauth_clients",
          body: bodyText,
          headers: { "idempotency-key": idempotencyKey },
          // §4.2: "Always 201, also for a recovered receipt".
          success: [201],
          secretField: "client_secret",
          resource: "service_account",
        },
        (answer) => readOAuthClient(jsonOf(answer)),
      ),
    get: async (id) =>
      v1.send({ method: "GET", path: pathOf(id), success: [200], resource }, (answer) =>
        readOAuthClient(jsonOf(answer), id),
      ),
    revoke: async (id) =>
      v1.send({ method: "DELETE", path: pathOf(id), success: [200], resource }, (answer) =>
        readOAuthClient(jsonOf(answer), id),
      ),
  };
}

const resource = "oauth_client";

function pathOf(id: string): string {
  return `/v1/oauth_clients/${segment(id, "client id")}`;
}

function readOAuthClient({ value }: JsonBody, expected?: string): OAuthClient {
  const result = OAuthClient.safeParse(value);
  if (!result.success) {
    const place = result.error.issues[0]?.path.join(".") ?? "";
    throw new BrokenBody(`the response is not an OAuth client (${place === "" ? "not an object" : place})`);
  }
  if (expected !== undefined && result.data.id !== expected)
    throw new BrokenBody("the response is about another client");
  return result.data;
}
