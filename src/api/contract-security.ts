// Which credentials a published operation takes (§5.1, §5.2), compared with those that are sent.
import { asArray, asObject, drift, type Finding, resolve, word } from "./contract-document.ts";
import type { JsonObject } from "./json/json-body.ts";

/**
 * @param operation `security` as the operation has it: the document's own holds where it has none. Each requirement is one
 * way in, and all schemes of a requirement are needed together.
 */
export function compareSecurity(
  root: JsonObject,
  operation: { readonly name: string; readonly security: unknown; readonly usesOAuth?: boolean },
): Finding[] {
  const { name, usesOAuth } = operation;
  const security = operation.security ?? root.security;
  if (security === undefined) return [drift(name, "does not say how to authenticate")];
  const ways = asArray(security).map((way) => Object.keys(asObject(way)));
  if (ways.every((way) => way.length === 0)) return [drift(name, "takes no credential")];
  const takes = (isSent: (scheme: JsonObject) => boolean): boolean =>
    ways.some((way) => way.length > 0 && way.every((scheme) => isSent(schemeOf(root, scheme))));
  return [
    ...(takes(isBasic) ? [] : [drift(name, "does not take HTTP Basic alone")]),
    ...(usesOAuth !== true || takes(isBearer) ? [] : [drift(name, "does not take the bearer tokens of OAuth clients")]),
  ];
}

function schemeOf(root: JsonObject, name: string): JsonObject {
  const schemes = asObject(asObject(root.components).securitySchemes);
  return resolve(root, Object.hasOwn(schemes, name) ? schemes[name] : undefined);
}

function isBasic({ type, scheme }: JsonObject): boolean {
  return type === "http" && word(scheme).toLowerCase() === "basic";
}

function isBearer({ type, scheme }: JsonObject): boolean {
  return type === "oauth2" || type === "openIdConnect" || (type === "http" && word(scheme).toLowerCase() === "bearer");
}
