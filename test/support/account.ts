// Reads and changes the account at the service without the program.
import type { Service } from "./service.ts";

export interface ListedClient {
  readonly id: string;
  readonly status: string;
  readonly client_id: string | null;
  readonly service_account_id: string;
  readonly scopes: readonly string[];
  readonly idempotency_key: string | null;
}

export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly body: string | null;
  readonly idempotency_key: string | null;
  readonly headers: Readonly<Record<string, string>>;
  /** null if the service sent no complete response. */
  readonly status: number | null;
}

export interface CreatedClient {
  readonly id: string;
  readonly client_id: string;
  readonly client_secret: string;
}

/** The start of the idempotency keys of clients that a test creates without the program. */
export const foreignKeyPrefix = "past-the-program-";

export class Account {
  readonly service: Service;

  constructor(service: Service) {
    this.service = service;
  }

  async clients(): Promise<ListedClient[]> {
    return (await this.service.control("GET", "/oauth_clients")) as ListedClient[];
  }

  async live(): Promise<ListedClient[]> {
    return (await this.clients()).filter(({ status }) => status === "active" || status === "pending");
  }

  async requests(): Promise<ReceivedRequest[]> {
    return ((await this.service.control("GET")) as { requests: ReceivedRequest[] }).requests;
  }

  async creations(): Promise<ReceivedRequest[]> {
    return (await this.requests()).filter(({ method, path }) => method === "POST" && path === "/v1/oauth_clients");
  }

  /** Removes faults and recorded requests, and revokes all clients with their cleanup confirmed. */
  async clear(): Promise<void> {
    await this.service.calm();
    for (const { id, status } of await this.clients())
      if (status !== "revoked")
        await this.service.control("POST", `/oauth_clients/${id}`, { status: "revoked", cleanup: "confirmed" });
  }

  async make(scopes: readonly string[]): Promise<CreatedClient> {
    const { us } = this.service;
    const answer = await fetch(`${us.base_url}/v1/oauth_clients`, {
      method: "POST",
      headers: {
        authorization: basic("apikey", us.api_key),
        "content-type": "application/json",
        "idempotency-key": `${foreignKeyPrefix}${crypto.randomUUID()}`,
      },
      body: JSON.stringify({ service_account_id: us.service_account_id, scopes }),
    });
    if (answer.status !== 201) throw new Error(`making a client: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as CreatedClient;
  }

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
