// Owns: what `integ api` sends, from the words typed: method, path with its query, headers, body. Pure.
// Must not know: where it goes, whose credential goes along.
import type { RawRequest } from "../../api/raw.ts";
import { Failure } from "../../errors.ts";

export type ApiFlags = {
  method?: string;
  field?: string[];
  header?: string[];
};

const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] as const;

/** `-f` is the query of a GET, HEAD or DELETE, else the JSON body; a body makes the method POST where none is named. */
export function requestOf(path: string, flags: ApiFlags, input: string | undefined): RawRequest {
  const fields = (flags.field ?? []).map(pairOf);
  const method = methodOf(flags.method, { hasBody: input !== undefined });
  const inQuery = method === "GET" || method === "HEAD" || method === "DELETE";
  if (input !== undefined && fields.length > 0 && !inQuery)
    throw new Failure("usage", "--input and -f both make the body.", { hint: "Keep one of them." });
  const headers = Object.fromEntries((flags.header ?? []).map(headerOf));
  const body = input ?? (inQuery || fields.length === 0 ? undefined : JSON.stringify(bodyOf(fields)));
  return {
    method,
    path: inQuery ? withQuery(path, fields) : path,
    headers: {
      ...(body !== undefined && !hasContentType(headers) && { "content-type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body }),
  };
}

function methodOf(typed: string | undefined, { hasBody }: { hasBody: boolean }): (typeof methods)[number] {
  if (typed === undefined) return hasBody ? "POST" : "GET";
  const method = methods.find((one) => one === typed.toUpperCase());
  if (!method)
    throw new Failure("usage", `-X: "${typed}" is no method of the API.`, { hint: `One of ${methods.join(", ")}` });
  return method;
}

function pairOf(text: string): readonly [string, string] {
  const at = text.indexOf("=");
  if (at < 1) throw new Failure("usage", `-f: "${text}" is not name=value.`, { hint: "-f type=person" });
  return [text.slice(0, at), text.slice(at + 1)];
}

/** A value that reads as JSON (a number, true, null, an array, an object) is one; anything else is a string. */
function bodyOf(fields: readonly (readonly [string, string])[]): Record<string, unknown> {
  const body: Record<string, unknown> = Object.create(null);
  for (const [name, value] of fields) {
    if (Object.hasOwn(body, name)) throw new Failure("usage", `-f: "${name}" is given twice.`);
    body[name] = jsonOrText(value);
  }
  return body;
}

function jsonOrText(value: string): unknown {
  if (!/^(?:-?\d|true$|false$|null$|\[|\{|")/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

function headerOf(text: string): readonly [string, string] {
  const match = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):\s*(.*)$/.exec(text);
  if (!match)
    throw new Failure("usage", `-H: "${text}" is not 'Name: value'.`, { hint: "-H 'Idempotency-Key: build-42'" });
  // Names have no case (RFC 9110 §5.1): one spelling, so that none is sent twice.
  return [match[1]!.toLowerCase(), match[2]!];
}

function hasContentType(headers: Readonly<Record<string, string>>): boolean {
  return Object.keys(headers).some((name) => name.toLowerCase() === "content-type");
}

function withQuery(path: string, fields: readonly (readonly [string, string])[]): string {
  if (fields.length === 0) return path;
  const query = fields.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join("&");
  return `${path}${path.includes("?") ? "&" : "?"}${query}`;
}
