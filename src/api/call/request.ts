// Encodes paths and queries, and creates the version and organization headers (§9, §4.4).
import { Failure, invalidValue } from "../../errors.ts";
import { flags } from "../../next-step.ts";
import { isDate } from "../json/iso-time.ts";

/**
 * @param what the id's name in the failure, such as `client id`
 * @throws Failure `usage` for an id that a path cannot contain: empty, `.`, `..` or with half of a surrogate pair
 */
export function segment(id: string, what: string): string {
  const encoded = encode(id);
  if (id === "" || id === "." || id === ".." || encoded === undefined)
    throw invalidValue(what, id, { hint: "Give the id as the API shows it." });
  return encoded;
}

export type Pair = readonly [name: string, value: string];

export function query(pairs: readonly Pair[]): string {
  if (pairs.length === 0) return "";
  return `?${pairs.map(([name, value]) => `${parameter(name)}=${parameter(value)}`).join("&")}`;
}

function parameter(text: string): string {
  const encoded = encode(text);
  if (encoded === undefined) throw new Failure("usage", "A parameter is not valid Unicode text.");
  return encoded;
}

function encode(text: string): string | undefined {
  try {
    return encodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** The version of /v1 that integ supports (§9 rule 1). */
export const contractVersion = "2026-07-01";

/** With this value, integ sends no version header, so the version of the service account applies (§9). */
export const noVersion = "none";

export function versionFault(text: string): string | undefined {
  if (text === noVersion) return undefined;
  if (!isDate(text)) return "it is not a date";
  if (text === "2026-08-05") return "it is the label of the legacy contract under /api/v1, which takes no version";
  return undefined;
}

export function versionHeader(serviceVersion: string): Readonly<Record<string, string>> {
  const fault = versionFault(serviceVersion);
  if (fault !== undefined)
    throw invalidValue("contract version", serviceVersion, {
      why: fault,
      hint: `Use ${flags.serviceVersion} 2026-07-01, or ${flags.serviceVersion} none to send no version.`,
    });
  return serviceVersion === noVersion ? {} : { "service-version": serviceVersion };
}

/**
 * @assumed §4.4 shows `x-organization-id` only for creating access keys; integ sends it with every legacy request.
 * @throws Failure `usage` if the organization id is missing or not a UUID
 */
export function organizationHeader(organizationId: string | undefined): Readonly<Record<string, string>> {
  if (organizationId === undefined || organizationId === "")
    throw new Failure("usage", "The legacy contract needs the organization's id, and the profile has none.", {
      hint: `Add it to the profile with ${flags.organizationId}, or set INTEG_ORGANIZATION_ID.`,
    });
  if (!/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(organizationId))
    throw invalidValue("organization id", organizationId, {
      hint: "Write it as a UUID, like 3f2b8c1e-9a4d-4e6f-8b7a-0c1d2e3f4a5b.",
    });
  return { "x-organization-id": organizationId };
}
