// Owns: one request as the rules of the service see it, and who sent it.
// Must not know: sockets, the state file.
import type { Region, RegionState, ServiceAccount, AccessKeyRecord } from "./state.ts";
import type { Answer } from "./problem.ts";

/** What a fault asks of the service itself (the rest of a fault happens on the wire). */
export interface Wishes {
  /** The creation stays pending for so many inspections. */
  readonly pending?: number;
  /** `withheld`: the answer that completes carries no secret; `replay`: only a replay completes a pending creation. */
  readonly secret?: "withheld" | "replay";
  /** What a creation leaves behind: a reservation that was given up, or work whose outcome nobody knows. */
  readonly effect?: "none" | "kept" | "abandoned" | "uncertain";
  /** When remote cleanup after a revocation is confirmed: so many ms later, or only when told. */
  readonly cleanup?: number | "open";
}

export interface Call {
  readonly method: string;
  readonly path: string;
  /** Decoded `{name}` parts of the path. */
  readonly parts: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
  readonly region: Region;
  readonly baseUrl: string;
  /** Every supported value of `Service-Version`. */
  readonly contractVersions: readonly string[];
  readonly settings: { readonly entities: number; readonly seed: number };
  readonly here: RegionState;
  readonly now: number;
  readonly wishes: Wishes;
}

/** Who sent a `/v1` request, with the permissions that count now (§5.1 rule 5, §5.2 rule 4). */
export interface V1Caller {
  readonly account: ServiceAccount;
  readonly permissions: ReadonlySet<string>;
  readonly version: string;
}

/** Who sent a legacy request: the access key that the bearer token was issued for. */
export interface LegacyCaller {
  readonly accessKey: AccessKeyRecord;
}

export type Handler<Caller> = (call: Call, caller: Caller) => Answer | Promise<Answer>;

/** A header's only value. */
export function headerOf(call: Pick<Call, "headers">, name: string): string | undefined {
  const value = call.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}

export function jsonAnswer(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status, headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(body) };
}

/** ISO 8601, UTC, milliseconds. */
export function timestamp(epochMs: number): string {
  return new Date(epochMs).toISOString();
}
