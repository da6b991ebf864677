import { connect, type Service } from "../../src/api/connect.ts";
import type { LegacyCredential } from "../../src/api/auth/credential.ts";
import { createTransport } from "../../src/api/http/transport.ts";

export type OpenClient = Service & { readonly close: () => void };

export function openClient(address: string, legacy: LegacyCredential): OpenClient {
  const transport = createTransport({
    locate: async () => address,
    timeoutMs: 10_000,
    signal: new AbortController().signal,
    userAgent: "integ-test",
  });
  const service = connect({
    transport,
    baseUrl: address,
    organizationId: "3f2b8c1e-9a4d-4e6f-8b7a-0c1d2e3f4a5b",
    credential: async () => ({ kind: "api_key", key: "an-api-key", style: "apikey-user" }),
    legacyCredential: async () => legacy,
    tokenEndpoint: { tokenEndpoint: `${address}/oauth/token`, clientAuth: "client_secret_post" },
    now: Date.now,
  });
  return { ...service, close: () => transport.close() };
}
