// The service in memory: clients with idempotency keys (§4.2), access keys without them (§4.4), and chosen outcomes.
import type { ClientProof } from "../../../src/api/auth/credential.ts";
import type { AccessKey, AccessKeyRequest, SecretAnswer } from "../../../src/api/access-keys.ts";
import type { Service } from "../../../src/api/connect.ts";
import type { Attempt } from "../../../src/api/call/attempt.ts";
import type { Rows } from "../../../src/api/json/unknown-list.ts";
import type { OAuthClient } from "../../../src/api/oauth-clients.ts";
import type { Problem } from "../../../src/errors.ts";

/** Without a fate, the service responds as the contract says. */
export type Fate =
  | "lost before" // The request never arrived.
  | "lost after" // The change happened, and its response is lost.
  | "cut" // The change happened, and the received part has the secret.
  | "broken after" // The change happened, and the response is 500.
  | "silent" // The change happened, and the response has no secret.
  | "pending"
  | "revoked"
  | "disabled" // Like `pending` and `revoked`, the created client's status.
  | "not sent"
  | { readonly refused: number; readonly code?: string; readonly retryAfterSeconds?: number };

export type Request = "create" | "get" | "revoke" | "list" | "rotate" | "exchange";

export interface Made {
  readonly id: string;
  readonly clientId: string;
  readonly body: string;
  readonly key: string | undefined;
  readonly createdAt: string;
  secret: string;
  status: string;
  /** The credential of the request that created the client or key (§4.2 rule 2). */
  readonly credential: string;
  /** True if a response, arrived or lost, contained the one-time secret. */
  isGiven: boolean;
  lastUsedAt: string | null;
}

const lost = { kind: "unknown", reason: "closed", detail: "the connection closed" } as const;

export class AnAccount {
  readonly clients: Made[] = [];
  readonly keys: Made[] = [];
  readonly requests: string[] = [];
  readonly answered: [what: Request, id: string][] = [];
  readonly fates: Partial<Record<Request, Fate[]>> = {};
  onRequest: (what: Request, about: { id?: string; body?: string; key?: string }) => void = () => {};
  now: () => number = () => 0;
  /** Each value is the credential of another service account. */
  credential = "first";
  /** How many milliseconds the service's clock is ahead of the machine's. */
  aheadMs = 0;
  /** The false fields of a POST's receipt. */
  lies: Readonly<Record<string, unknown>> = {};
  /** If set, a DELETE revokes nothing, and its response has these fields. */
  revocationLies: Readonly<Record<string, unknown>> | undefined;
  step: <T>(name: string, effect: () => T, about?: string) => T = (_name, effect) => effect();

  addExisting(kind: "client" | "key", id: string, { name = "old", at }: { name?: string; at?: number } = {}): Made {
    const made = this.#make(kind, { body: kind === "key" ? JSON.stringify({ name }) : "{}", id, at });
    made.isGiven = true;
    return made;
  }

  live(kind: "client" | "key"): Made[] {
    return (kind === "client" ? this.clients : this.keys).filter(({ status }) => status === "active");
  }

  get service(): Service {
    let clockOffset: number | undefined;
    const answer = async <T>(
      what: Request,
      about: { id?: string; body?: string; key?: string },
      effect: (fate: Fate | undefined) => Attempt<T>,
    ): Promise<Attempt<T>> =>
      this.step(
        what,
        () => {
          this.onRequest(what, about);
          this.requests.push([what, about.id].filter(Boolean).join(" "));
          const id = `req_${this.requests.length}`;
          const fate = this.fates[what]?.shift();
          if (fate === "lost before") return lost;
          if (fate === "not sent") return { kind: "not_sent", reason: "refused", detail: "no server listens" };
          const attempt = typeof fate === "object" ? refusal(fate.refused, fate) : effect(fate);
          if (fate === "lost after") return lost;
          clockOffset = this.aheadMs;
          this.answered.push([what, id]);
          if (fate === "cut") return cutOff(attempt);
          if (attempt.kind === "answered" && fate !== "broken after") return { ...attempt, requestId: id };
          const { status = 500, problem = { status: 500 } } = attempt.kind === "refused" ? attempt : {};
          const named = { status, problem: { ...problem, request_id: id } };
          return attempt.kind === "refused"
            ? { ...attempt, ...named }
            : { ...named, kind: "unknown", reason: "status", detail: "500" };
        },
        [about.id, about.key].filter(Boolean).join(" "),
      );
    const service: Pick<Service, "oauthClients" | "accessKeys" | "authorize" | "clockOffset"> & {
      tokens: Partial<Service["tokens"]>;
    } = {
      oauthClients: {
        create: (body, key) => answer("create", { body, key }, (fate) => this.#createClient(body, key, fate)),
        get: (id) => answer("get", { id }, () => this.#shown(this.clients.find((one) => one.id === id))),
        revoke: (id) =>
          answer("revoke", { id }, () => this.#with(this.#shown(this.#revoked(this.clients, id)), this.revocationLies)),
      },
      accessKeys: {
        create: (body) => answer("create", { body }, (fate) => this.#keyAnswer(this.#make("key", { body }), fate)),
        list: () => answer("list", {}, () => this.#list()),
        rotate: (id) => answer("rotate", { id }, (fate) => this.#rotateKey(id, fate)),
        revoke: (id) =>
          answer("revoke", { id }, () => this.#with(keyShown(this.#revoked(this.keys, id)), this.revocationLies)),
      },
      authorize: async () => undefined,
      clockOffset: () => clockOffset,
      tokens: {
        exchangeAccessKey: async (secret: string) => answer("exchange", {}, () => this.#exchange(this.keys, secret)),
        exchangeClient: async (client: ClientProof) =>
          answer("exchange", {}, () =>
            this.#exchange(this.clients, "clientSecret" in client ? client.clientSecret : ""),
          ),
      },
    };
    return service as Service;
  }

  #make(kind: "client" | "key", about: { body: string; key?: string; id?: string; at?: number }): Made {
    const all = kind === "client" ? this.clients : this.keys;
    const number = all.length + 1;
    const made: Made = {
      id: about.id ?? `${kind === "client" ? "oc" : "ak"}_${number}`,
      clientId: `cid_${number}`,
      body: about.body,
      key: about.key,
      createdAt: new Date(about.at ?? this.now() + this.aheadMs).toISOString(),
      secret: `s3cr3t-${kind}-${number}`,
      status: "active",
      credential: this.credential,
      isGiven: false,
      lastUsedAt: null,
    };
    all.push(made);
    return made;
  }

  #createClient(body: string, key: string, fate: Fate | undefined): Attempt<OAuthClient> {
    const made = this.clients.find((one) => one.key === key) ?? this.#make("client", { body, key });
    if (made.body !== body || made.credential !== this.credential)
      return refusal(409, { code: "idempotency_key_reuse" });
    // A revoked client can never work again.
    const becomes = fate === "pending" || fate === "revoked" || fate === "disabled" ? fate : made.status;
    if (made.status !== "revoked") made.status = becomes;
    const attempt = this.#shown(made, { withSecret: fate !== "silent" });
    return this.#with(attempt, this.lies);
  }

  #with<T>(attempt: Attempt<T>, lies: Readonly<Record<string, unknown>> | undefined): Attempt<T> {
    return attempt.kind === "answered" ? { ...attempt, value: { ...attempt.value, ...lies } } : attempt;
  }

  #revoked(all: readonly Made[], id: string): Made | undefined {
    const made = all.find((one) => one.id === id);
    if (made && this.revocationLies === undefined) made.status = "revoked";
    return made;
  }

  #shown(made: Made | undefined, { withSecret = false } = {}): Attempt<OAuthClient> {
    if (made === undefined) return refusal(404, {});
    const shows = withSecret && made.status === "active" && !made.isGiven;
    if (withSecret || made.status !== "active") made.isGiven ||= made.status === "active";
    const { service_account_id = "sa_1", scopes = ["entity:read"] } = JSON.parse(made.body) as Partial<OAuthClient>;
    const value: OAuthClient = {
      object: "oauth_client",
      id: made.id,
      service_account_id,
      client_id: made.status === "pending" ? null : made.clientId,
      scopes,
      status: made.status,
      created_at: made.createdAt,
      client_secret: shows ? made.secret : null,
    };
    return { kind: "answered", status: 200, value, body: bytesOf(value), requestId: "req_1" };
  }

  #keyAnswer(made: Made, fate: Fate | undefined): Attempt<SecretAnswer> {
    made.isGiven = true;
    const key: AccessKey = { id: made.id, name: nameOf(made), createdByUserId: "user_1", ...this.lies };
    const secret = fate === "silent" ? undefined : made.secret;
    return {
      kind: "answered",
      status: 201,
      value: { key, secret },
      body: bytesOf({ ...key, secret }),
      requestId: "req_1",
    };
  }

  #rotateKey(id: string, fate: Fate | undefined): Attempt<SecretAnswer> {
    const made = this.keys.find((one) => one.id === id && one.status === "active");
    if (made === undefined) return refusal(404, {});
    made.secret = `${made.secret}+`;
    return this.#keyAnswer(made, fate);
  }

  #list(): Attempt<Rows> {
    const rows = this.keys.map((made) => {
      const {
        keyType = "user_bound",
        scopes = ["*"],
        expiresAt = null,
      } = JSON.parse(made.body) as Partial<AccessKeyRequest>;
      const { id, status, createdAt, lastUsedAt } = made;
      return {
        value: {
          id,
          name: nameOf(made),
          status,
          createdAt,
          lastUsedAt,
          keyType,
          scopes,
          expiresAt,
          createdByUserId: "user_1",
        },
      };
    });
    const value = { rows, saysMore: false } as unknown as Rows;
    return { kind: "answered", status: 200, value, body: Buffer.alloc(0) };
  }

  #exchange(all: readonly Made[], secret: string): Attempt<never> {
    const works = all.some((made) => made.secret === secret && made.status === "active");
    return works
      ? { kind: "answered", status: 200, value: undefined as never, body: Buffer.alloc(0) }
      : refusal(401, {});
  }
}

function nameOf({ body }: Made): string {
  return (JSON.parse(body) as { name: string }).name;
}

function keyShown(made: Made | undefined): Attempt<AccessKey> {
  if (made === undefined) return refusal(404, {});
  const value = { id: made.id, status: made.status };
  return { kind: "answered", status: 200, value, body: bytesOf(value) };
}

function refusal(
  status: number,
  { code, retryAfterSeconds }: { code?: string; retryAfterSeconds?: number },
): Attempt<never> {
  const problem: Problem = { status, code };
  return { kind: "refused", status, problem, retryAfterSeconds };
}

function cutOff<T>(attempt: Attempt<T>): Attempt<T> {
  const text = attempt.kind === "answered" ? attempt.body.toString() : "";
  const secret = /s3cr3t-[\w+-]+/.exec(text)?.[0];
  if (secret === undefined) return lost;
  return { ...lost, salvage: { secret, text: text.slice(0, text.indexOf(secret) + secret.length + 1) } };
}

function bytesOf(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}
