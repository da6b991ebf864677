// Owns: reading what the service says of an error (§7), leniently: whatever is there and has the right type.
// Must not know: what the error means for a command. The words are untrusted text: only output/ may show them.
import type { Problem } from "../../errors.ts";
import { isObject, type JsonObject } from "../json/json-object.ts";

/** Longest text taken over from an error body: more is no explanation. In UTF-16 units. */
const maxDetail = 2000;
const maxWord = 300;

/**
 * The problem of an error answer.
 * @param status of the answer: it wins over what the body says
 * @param body the parsed body, or anything else where it was no JSON
 * @param requestId header `Request-Id`: it wins over the body's
 * @assumed The legacy contract's error shape is not shown (§7): `error` as text or object, `message`, `error_description`
 * and `errors` are looked for too.
 */
export function readProblem(status: number, body: unknown, requestId?: string): Problem {
  const outer = isObject(body) ? body : {};
  const inner = [outer.error, first(outer.errors)].find(isObject) ?? {};
  const text = (names: readonly string[], limit = maxWord): string | undefined => pick([outer, inner], names, limit);
  const retryable = [outer.retryable, inner.retryable].find((value) => typeof value === "boolean");
  return withoutGaps({
    status,
    code: text(["code"]) ?? textOf(outer.error, maxWord) ?? text(["error_code"]),
    title: text(["title"]),
    detail:
      text(["detail", "error_description", "message", "description"], maxDetail) ??
      textOf(first(outer.errors), maxDetail),
    param: text(["param"]),
    request_id: textOf(requestId, maxWord) ?? text(["request_id", "requestId"]),
    // `type` may be a mere word outside /v1.
    doc_url: text(["doc_url"]) ?? (/^https?:\/\//.test(text(["type"]) ?? "") ? text(["type"]) : undefined),
    retryable,
  });
}

function first(value: unknown): unknown {
  return Array.isArray(value) ? value[0] : undefined;
}

function pick(sources: readonly JsonObject[], names: readonly string[], limit: number): string | undefined {
  for (const source of sources)
    for (const name of names) {
      const found = Object.hasOwn(source, name) ? textOf(source[name], limit) : undefined;
      if (found !== undefined) return found;
    }
  return undefined;
}

function textOf(value: unknown, limit: number): string | undefined {
  if (typeof value !== "string" || value === "") return undefined;
  return value.length <= limit ? value : `${value.slice(0, limit).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

function withoutGaps(problem: Problem): Problem {
  return Object.fromEntries(Object.entries(problem).filter(([, value]) => value !== undefined));
}
