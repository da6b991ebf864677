// OAuth clients (§2.3, §3.1, §4.2, §8): the resource and its one-attempt requests.
import * as z from "zod/mini";
import type { Attempt } from "./call/attempt.ts";
import { type Caller, jsonOf } from "./call/caller.ts";
import { segment } from "./call/request.ts";
import { BrokenBody, type JsonBody } from "./json/json-text.ts";

/** An OAuth client (§2.3). Unknown fields and values are fine, documented fields have their types. */
export const OAuthClient = z.looseObject({
  object: z.literal("oauth_client"),
  /** Platform resource id. Not the id used in the token exchange. */
  id: z.string().check(z.minLength(1)),
  service_account_id: z.string(),
  /** The id used in the token exchange; null while creation is pending. */
  client_id: z.nullable(z.string().check(z.minLength(1))),
  scopes: z.array(z.string()),
  /** `active`, `pending`, `revoked`, `disabled`, `expired`, and whatever comes later. */
  status: z.string(),
  created_at: z.string(),
  /** Only in the response that completes creation. */
  client_secret: z.optional(z.nullable(z.string())),
});
export type OAuthClient = z.infer<typeof OAuthClient>;

/** Each call is one attempt. */
export interface OAuthClients {
  /**
   * @param bodyText what `creationBody` made
   * @param idempotencyKey sent unchanged; the same key with the same body gives the receipt of the same client
   */
  create(bodyText: string, idempotencyKey: string): Promise<Attempt<OAuthClient>>;
  /** @param id platform resource id */
  get(id: string): Promise<Attempt<OAuthClient>>;
  /** Safe to repeat; `answered` with a status other than `revoked` is possible and is not a confirmation. */
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
          // "Always 201, also for a recovered receipt" (§4.2).
          success: [201],
          secretField: "client_secret",
          resource,
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

/**
 * @param expected the id that was asked for, if one was
 * @throws BrokenBody
 */
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
