// The account as the service itself holds it, looked at behind the API and through it: what there is to compare the
// program's word with.
import type { Service } from "./service.ts";

/** An OAuth client as the sandbox's control address tells it. */
export interface HeldClient {
  readonly id: string;
  readonly status: string;
  readonly client_id: string | null;
  readonly service_account_id: string;
  readonly scopes: readonly string[];
  readonly idempotency_key: string | null;
}

/** A request as the service met it. */
export interface MetRequest {
  readonly method: string;
  readonly path: string;
  readonly body: string | null;
  readonly idempotency_key: string | null;
  readonly headers: Readonly<Record<string, string>>;
  /** null where the full response was not sent. */
  readonly status: number | null;
}

export interface MadeClient {
  readonly id: string;
  readonly client_id: string;
  readonly client_secret: string;
}

/** How keys of clients begin that a test made past the program. */
export const pastTheProgram = "past-the-program-";

export class Account {
  readonly service: Service;

  constructor(service: Service) {
    this.service = service;
  }

  async clients(): Promise<HeldClient[]> {
    return (await this.service.control("GET", "/oauth_clients")) as HeldClient[];
  }

  /** Clients that work or may come to work. */
  async live(): Promise<HeldClient[]> {
    return (await this.clients()).filter(({ status }) => status === "active" || status === "pending");
  }

  async requests(): Promise<MetRequest[]> {
    return ((await this.service.control("GET")) as { requests: MetRequest[] }).requests;
  }

  /** Creations that the service met, whatever it answered. */
  async creations(): Promise<MetRequest[]> {
    return (await this.requests()).filter(({ method, path }) => method === "POST" && path === "/v1/oauth_clients");
  }

  /** No faults, no requests in the log, no live client and no slot held: as if nothing had happened. */
  async clear(): Promise<void> {
    await this.service.calm();
    for (const { id, status } of await this.clients())
      if (status !== "revoked")
        await this.service.control("POST", `/oauth_clients/${id}`, { status: "revoked", cleanup: "confirmed" });
  }

  /** A client made past the program, its secret in hand. */
  async make(scopes: readonly string[]): Promise<MadeClient> {
    const { us } = this.service;
    const answer = await fetch(`${us.base_url}/v1/oauth_clients`, {
      method: "POST",
      headers: {
        authorization: basic("apikey", us.api_key),
        "content-type": "application/json",
        "idempotency-key": `${pastTheProgram}${crypto.randomUUID()}`,
      },
      body: JSON.stringify({ service_account_id: us.service_account_id, scopes }),
    });
    if (answer.status !== 201) throw new Error(`making a client: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as MadeClient;
  }

  /** True where this secret gets a token for that client: the only proof that a delivered secret is the right one. */
  async opens(clientId: string, secret: string): Promise<boolean> {
    const answer = await fetch(this.service.us.token_endpoint, {
      method: "POST",
      headers: { authorization: basic(clientId, secret), "content-type": "application/x-www-form-urlencoded" },
      body: "grant_type=client_credentials",
    });
    await answer.arrayBuffer();
    return answer.ok;
  }
}

function basic(user: string, password: string): string {
  return `Basic ${Buffer.from(`${encodeURIComponent(user)}:${encodeURIComponent(password)}`).toString("base64")}`;
}
