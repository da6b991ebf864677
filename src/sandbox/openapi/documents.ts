// Owns: publication of the machine-readable specifications (§4.5).
// Must not know: what stands in them.
import { type Call, jsonAnswer } from "../call.ts";
import { type Answer, notFound } from "../problem.ts";
import { legacyDocument, tokenDocument } from "./legacy-document.ts";
import { v1Document } from "./v1-document.ts";

function documentOf(call: Call, version: string): Answer {
  const { baseUrl } = call;
  return jsonAnswer(200, v1Document({ version, baseUrl, tokenUrl: `${baseUrl}/oauth/token` }));
}

/** GET /v1-reference/openapi-v1.json */
export function publishCurrent(call: Call): Answer {
  return documentOf(call, call.contractVersions[0]!);
}

/** GET /v1-reference/openapi/<version>.json */
export function publishVersion(call: Call): Answer {
  const version = /^(.*)\.json$/.exec(call.parts.file!)?.[1] ?? "";
  if (!call.contractVersions.includes(version)) throw notFound("No specification of this version is published.");
  return documentOf(call, version);
}

/** GET /api/v1-reference/openapi.json @assumed its address (§4.5 shows those of `/v1`) */
export function publishLegacy(call: Call): Answer {
  return jsonAnswer(200, legacyDocument(call.baseUrl));
}

/** GET /oauth/openapi.json @assumed that it has one (§5.2 rule 7 «not shown») */
export function publishTokenEndpoint(call: Call): Answer {
  return jsonAnswer(200, tokenDocument(call.baseUrl));
}
