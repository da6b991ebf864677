// What a request is made of: a path and query, into which text of a person or of the service is encoded, and the headers that
// say which contract it belongs to, the version for /v1 (§9) or the organization for the legacy one (§4.4).
import { Failure, invalidValue } from "../../errors.ts";
import { flags } from "../../next-step.ts";
import { isDate } from "../json/iso-time.ts";

/**
 * One segment of a path.
 * @param id as typed or as the service gave it; opaque
 * @param what names it in the words of the failure: `client id`
 * @throws Failure `usage` if no encoding makes a segment of it: empty, `.`, `..`, half of a surrogate pair
 */
export function segment(id: string, what: string): string {
  const encoded = encode(id);
  if (id === "" || id === "." || id === ".." || encoded === undefined)
    throw invalidValue(what, id, { hint: "Give the id as the API shows it." });
  return encoded;
}

export type Pair = readonly [name: string, value: string];

/** `?a=b&c=d`, each name and value encoded; empty if there is no pair. */
export function query(pairs: readonly Pair[]): string {
  if (pairs.length === 0) return "";
  return `?${pairs.map(([name, value]) => `${parameter(name)}=${parameter(value)}`).join("&")}`;
}

/** @throws Failure `usage` if it is not text */
function parameter(text: string): string {
  const encoded = encode(text);
  if (encoded === undefined) throw new Failure("usage", "A parameter is not valid Unicode text.");
  return encoded;
}

/** Nothing if the text holds half of a surrogate pair. */
function encode(text: string): string | undefined {
  try {
    return encodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** The version of /v1 that this program was written for (§9.1). */
export const contractVersion = "2026-07-01";

/** Instead of a version: no header is sent, and the service account's own version counts (§9). */
export const noVersion = "none";

/** Why a text cannot be sent as `Service-Version` (§9.1); nothing if it can. */
export function versionFault(text: string): string | undefined {
  if (text === noVersion) return undefined;
  if (!isDate(text)) return "it is not a date";
  if (text === "2026-08-05") return "it is the label of the legacy contract under /api/v1, which takes no version";
  return undefined;
}

/** @throws Failure `usage` for anything but a version that can be sent, or `none` */
export function versionHeader(serviceVersion: string): Readonly<Record<string, string>> {
  const fault = versionFault(serviceVersion);
  if (fault !== undefined)
    throw invalidValue("contract version", serviceVersion, {
      why: fault,
      hint: `Use ${flags.serviceVersion} 2026-07-01, or none to send no version.`,
    });
  return serviceVersion === noVersion ? {} : { "service-version": serviceVersion };
}

/**
 * @assumed `x-organization-id` is shown for the creation of access keys alone (§4.4); it is sent with every request.
 * @throws Failure `usage` if there is no organization id, or it is not a uuid
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
