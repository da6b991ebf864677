// `integ api`: any endpoint, authenticated. What it changes is not journalled.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Service } from "../../api/connect.ts";
import type { RawAnswer, RawRequest } from "../../api/raw.ts";
import { printList } from "../running/list-walk.ts";
import { whereOf, read } from "../running/read.ts";
import { defineVerb } from "../verb.ts";
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import { visibleText } from "../../output/visible-text.ts";

export const command = defineVerb({
  configure: (command) =>
    command
      .argument("<path>", "/v1/…, /v1-reference/… or /api/v1/…")
      .option("-X, --method <method>", "GET; POST where there is a body")
      .option("-f, --field <name=value...>", "query of a GET or DELETE, else a field of the JSON body")
      .option("--input <file>", "the body from a file, - for standard input")
      .option("-H, --header <header...>", "a further header: 'Name: value'")
      .option("--paginate", "walk a list to its end")
      .option("--include", "status and headers before the body"),
  examples: [
    { line: "integ api /v1/entities -f type=person -f limit=5 --profile sandbox", does: "GET with a query" },
    { line: "integ api /v1/entities --paginate --ndjson", does: "every page, a row a line" },
    { line: "integ api /v1/oauth_clients/oc_1 -X DELETE", does: "a change: sent once, not in the journal" },
  ],
  more: "The credential of the profile goes to these paths of its own address and nowhere else.",
  async run(context, { args: [path], options }) {
    const input = options.input === undefined ? undefined : await inputOf(context, options.input);
    const request = requestOf(path, options, input);
    const { checkRaw } = await import("../../api/raw.ts");
    checkRaw(request);
    if (options.paginate) return paginate(context, request);
    const service = await context.connect();
    const answer = isRead(request) ? await readRaw(context, service, request) : await change(context, service, request);
    if (options.include) await context.output.text(headOf(answer));
    await print(context, answer);
  },
});

async function inputOf(context: Context, file: string): Promise<string> {
  if (file === "-") return context.secrets.fromStdin("body");
  try {
    return readFileSync(resolve(context.settings.cwd, file), "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") throw new Failure("usage", `--input: there is no file "${file}".`);
    throw new Failure("usage", `--input: "${file}" cannot be read (${code ?? "unknown"}).`);
  }
}

function isRead({ method }: RawRequest): boolean {
  return method === "GET" || method === "HEAD";
}

async function readRaw(context: Context, service: Service, request: RawRequest): Promise<RawAnswer> {
  return (await read(context, `${request.method} ${request.path}`, () => service.raw.send(request))).value;
}

/** Sent once: whether it may be repeated is not known here, and nothing is written down. */
async function change(context: Context, service: Service, request: RawRequest): Promise<RawAnswer> {
  context.output.note("This change is not in the journal: a lost answer is yours to settle.");
  const { failureOf } = await import("../../api/http/attempt.ts");
  const what = `${request.method} ${request.path.split("?")[0]}`;
  const progress = context.output.progress(what);
  const attempt = await context.clock.finishing(() => service.raw.send(request)).finally(() => progress.done());
  if (attempt.kind === "answered") return attempt.value;
  throw failureOf(attempt, { what, where: await whereOf(context), change: true });
}

async function print(context: Context, { body }: RawAnswer): Promise<void> {
  if (body.length === 0) return;
  const text = body.toString("utf8");
  if (isObject(text) && context.output.format !== "table") await context.output.resource(text, { columns: [] });
  else await context.output.text(text);
}

function isObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

function headOf({ status, headers }: RawAnswer): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${visibleText(value ?? "")}`);
  return `HTTP ${status}\n${lines.join("\n")}\n\n`;
}

/** The walk of any endpoint that answers with the list envelope (§2.1). */
function paginate(context: Context, request: RawRequest): Promise<void> {
  if (request.method !== "GET")
    throw new Failure("usage", "--paginate is for GET.", { hint: "Leave -X or --paginate out." });
  const view = { columns: [], singular: "row", plural: "rows" };
  return printList(context, view, {
    flags: { all: true },
    name: request.path,
    pagesOf:
      (service) =>
      async ({ limit, pageToken, signal }) => {
        const path = withParameters(request.path, { limit, page_token: pageToken });
        const attempt = await service.raw.send({ ...request, path, signal });
        return attempt.kind === "answered"
          ? { ...attempt, value: { body: attempt.value.body, requestId: attempt.requestId } }
          : attempt;
      },
  });
}

/** @param set parameters of the walk; a limit that was typed stays */
function withParameters(path: string, set: Record<string, string | number | undefined>): string {
  const [before = "", query = ""] = path.split("?", 2);
  const parameters = new URLSearchParams(query);
  for (const [name, value] of Object.entries(set))
    if (value !== undefined && !(name === "limit" && parameters.has(name))) parameters.set(name, String(value));
  const text = parameters.toString();
  return text === "" ? before : `${before}?${text}`;
}

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
    body,
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
