// Owns: what every request of the /v1 contract carries (§4.1), and the contract version that is sent with it (§9).
// Must not know: single resources, where the credential comes from.
import { Failure } from "../errors.ts";
import { type Authorization, type Caller, createCaller } from "./http/caller.ts";
import type { Transport } from "./http/exchange.ts";

export interface V1Options {
  readonly transport: Transport;
  readonly baseUrl: string;
  /** `YYYY-MM-DD`: pinned with each request, so that no request depends on the service account's own version. */
  readonly serviceVersion: string;
  /** HTTP Basic or an OAuth bearer token (§5.1, §5.2). */
  readonly authorization: Authorization;
  readonly now: () => number;
}

/** The /v1 contract: each call is one attempt. */
export type V1 = Caller;

export function createV1({ transport, baseUrl, serviceVersion, authorization, now }: V1Options): V1 {
  return createCaller({ transport, baseUrl, authorization, now, commonHeaders: () => versionHeader(serviceVersion) });
}

/** @throws Failure `usage` for anything but a date in form */
export function versionHeader(serviceVersion: string): Readonly<Record<string, string>> {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(serviceVersion))
    throw new Failure("usage", `"${serviceVersion}" is no contract version.`, {
      hint: "Write a date, like --service-version 2026-07-01",
    });
  return { "service-version": serviceVersion };
}
