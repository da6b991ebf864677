// Owns: which contract versions this program speaks (§9), and fetching what the service publishes of them (§4.5).
// Must not know: how drift is told; what it is: contract-comparison.ts.
import type { Attempt } from "./attempt.ts";
import type { Authorization } from "./caller.ts";
import { createCaller } from "./caller.ts";
import type { Transport } from "./exchange.ts";
import { BrokenBody } from "./json-body.ts";
import { segment } from "./path.ts";

/** The version of /v1 that this program was written for (§9.1). */
export const contractVersion = "2026-07-01";
/** The legacy contract's label (§9.4). It is no value for `Service-Version`. */
export const legacyContractVersion = "2026-08-05";

export interface Contract {
  /**
   * The published machine-readable specification: the current one, or the snapshot of one version.
   * @returns the parsed document; `text` of the attempt is the service's own
   */
  published(version?: string): Promise<Attempt<Readonly<Record<string, unknown>>>>;
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
      let attempt: Attempt<Readonly<Record<string, unknown>>> | undefined;
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

function readDocument(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new BrokenBody("the answer is no specification");
  return value as Record<string, unknown>;
}
