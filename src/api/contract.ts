// Owns: fetching what the service publishes of its contract (§4.5).
// Must not know: how drift is told; what it is: contract-comparison.ts.
import type { Attempt } from "./http/attempt.ts";
import type { Authorization } from "./http/caller.ts";
import { createCaller } from "./http/caller.ts";
import type { Transport } from "./http/exchange.ts";
import { BrokenBody } from "./json/json-body.ts";
import { isObject, type JsonObject } from "./json/json-object.ts";
import { segment } from "./http/path.ts";

export { contractVersion, legacyContractVersion } from "./contract-version.ts";

export interface Contract {
  /**
   * The published machine-readable specification: the current one, or the snapshot of one version.
   * @returns the parsed document; `text` of the attempt is the service's own
   */
  published(version?: string): Promise<Attempt<JsonObject>>;
}

export interface ContractOptions {
  readonly transport: Transport;
  readonly baseUrl: string;
  readonly authorization: Authorization;
  readonly now: () => number;
}

/** @assumed §4.5 does not say whether the documents need a credential: it is shown only where it is asked for. */
export function createContract(options: ContractOptions): Contract {
  const anonymous: Authorization = { header: async () => undefined, rejected() {} };
  const callers = [anonymous, options.authorization].map((authorization) =>
    createCaller({ ...options, authorization, commonHeaders: () => ({}) }),
  );
  return {
    async published(version) {
      const path =
        version === undefined
          ? "/v1-reference/openapi-v1.json"
          : `/v1-reference/openapi/${segment(version, "contract version")}.json`;
      let attempt: Attempt<JsonObject> | undefined;
      for (const caller of callers) {
        attempt = await caller.json({ method: "GET", path, success: [200], page: true }, ({ value }) =>
          readDocument(value),
        );
        if (attempt.kind !== "refused" || (attempt.status !== 401 && attempt.status !== 403)) break;
      }
      return attempt!;
    },
  };
}

function readDocument(value: unknown): JsonObject {
  if (!isObject(value)) throw new BrokenBody("the answer is no specification");
  return value;
}
