// `integ api` sends an authenticated request to any endpoint of the API, without a journal entry.
import { addDryRun, defineVerb } from "../verb.ts";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Service } from "../../api/connect.ts";
import type { RawAnswer, RawRequest } from "../../api/raw.ts";
import { printList } from "../running/list-walk.ts";
import { whereOf, read, readAnswer } from "../running/read.ts";
import type { Context } from "../../context.ts";
import { Failure, invalidValue } from "../../errors.ts";
import { JsonText } from "../../api/json/json-text.ts";
import { visibleText } from "../../output/visible-text.ts";
import { quotedWord } from "../../next-step.ts";
import { isObject, tryParseJson } from "../../json.ts";

export const command = defineVerb({
  configure: (command) =>
    addDryRun(command)
      .argument("<path>", "/v1/…, /v1-reference/… or /api/v1/…")
      .option("-X, --method <method>", "HTTP method (default: GET; with --input: POST)")
      .option(
        "-f, --raw-field <name=value...>",
        "Add text: a query parameter of a GET or DELETE, else a field of the JSON body",
      )
      .option(
        "-F, --field <name=value...>",
        "Add a field like -f; in a body a number, true, false, null, [] or {} is JSON",
      )
      .option("--input <file>", "Read the body from a file, - for standard input; sent byte for byte")
      .option("-H, --header <header...>", "Add a header: 'Name: value'")
      .option("--paginate", "Fetch every page of a list")
      .option("--include", "Print status and headers before the body"),
  examples: [
    { line: "integ api /v1/entities -f type=person -f limit=5 --profile sandbox", does: "GET with a query" },
    { line: "integ api /v1/entities --paginate --ndjson", does: "every page, one row per line" },
    {
      line: "integ api /v1/oauth_clients/oc_1 -X DELETE",
      does: "a change: sent once, and not recorded in the journal",
    },
  ],
  more: "integ sends the profile's credential only to these paths of the profile's own address.",
  async run(context, { args: [path], options }) {
    const input = options.input === undefined ? undefined : await inputOf(context, options.input);
    const request = requestOf(path, options, input);
    const { checkRaw } = await import("../../api/raw.ts");
    checkRaw(request);
    if (options.dryRun && !isRead(request)) return showChange(context, request);
    if (options.paginate) return paginate(context, request);
    const service = await context.connect();
    const answer = isRead(request) ? await readRaw(context, service, request) : await change(context, service, request);
    for (const secret of secretsIn(answer)) await context.secrets.mask(secret, answer.body.toString("utf8"));
    if (options.include) await context.output.text(headOf(answer));
    await print(context, answer, isRead(request));
  },
});

async function inputOf(context: Context, file: string): Promise<Buffer> {
  if (file === "-") return context.input("body");
  try {
    return readFileSync(resolve(context.settings.cwd, file));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT")
      throw new Failure("usage", `--input: file not found: "${file}".`, {
        hint: "Name a file that exists, or - for standard input.",
      });
    throw new Failure("usage", `--input: ${file} cannot be read (${code ?? "unknown"}).`);
  }
}

async function showChange(context: Context, { method, path, headers, body }: RawRequest): Promise<void> {
  const { showSteps } = await import("../running/dry-run.ts");
  const { baseUrl } = await context.profiles.active();
  const bytes = body === undefined ? undefined : Buffer.from(body);
  const text = bytes?.toString("utf8");
  const shown = text === undefined || Buffer.from(text).equals(bytes!) ? text : `base64:${bytes!.toString("base64")}`;
  await showSteps(context, [
    {
      what: "send the request",
      method,
      url: `${baseUrl}${path}`,
      headers: { ...headers },
      ...(shown === undefined ? {} : { body: shown }),
    },
  ]);
}

function isRead({ method }: RawRequest): boolean {
  return method === "GET" || method === "HEAD";
}

async function readRaw(context: Context, service: Service, request: RawRequest): Promise<RawAnswer> {
  return (await read(context, `${request.method} ${request.path}`, () => service.raw.send(request))).value;
}

/** A change is retried only after 429, because a retry after another error might repeat its effect. */
async function change(context: Context, service: Service, request: RawRequest): Promise<RawAnswer> {
  await context.secrets.checkMask(deliveringCommand(request));
  context.output.note("This change is not in the journal: if its response is lost, integ cannot recover it.");
  const what = `${request.method} ${request.path.split("?")[0]}`;
  const progress = context.output.progress(what);
  const about = { what, where: await whereOf(context), change: true };
  const send = () => context.clock.finishing(() => service.raw.send(request));
  return (await readAnswer(context, about, send).finally(() => progress.done())).value;
}

function deliveringCommand({ method, path }: RawRequest): string | undefined {
  if (method !== "POST") return undefined;
  if (path.startsWith("/v1/oauth_clients")) return "integ oauth-clients create or rotate";
  return path.startsWith("/api/v1/access-keys") ? "integ keys create or rotate" : undefined;
}

const secretName = /(?:secret|token|password|api_?key)$/i;
const pageToken = /page_?token$/i;

function secretsIn({ body }: RawAnswer): string[] {
  const secrets = new Set<string>();
  try {
    JSON.parse(body.toString("utf8"), (name, value: unknown) => {
      if (typeof value === "string" && value !== "" && secretName.test(name) && !pageToken.test(name))
        secrets.add(value);
      return value;
    });
  } catch {
    // integ finds secrets only in JSON.
  }
  return [...secrets];
}

async function print(context: Context, { body }: RawAnswer, isRead: boolean): Promise<void> {
  if (body.length === 0) return;
  const text = body.toString("utf8");
  const { format, typedFormat, fields } = context.output;
  // By default, the response is printed unchanged, because a table would show less.
  const isUnchanged = format === "table" && typedFormat === undefined && fields === undefined;
  const kind = isUnchanged ? "text" : kindOf(text);
  if (kind === "text") await context.output.text(text);
  else if (kind === "rows" && format !== "json") await printArray(context, text, isRead);
  else await context.output.resource(text, { columns: [], isRead });
}

function kindOf(text: string): "text" | "object" | "rows" {
  const value = tryParseJson(text);
  if (!Array.isArray(value)) return isObject(value) ? "object" : "text";
  return value.every(isObject) ? "rows" : "text";
}

async function printArray({ output }: Context, text: string, isRead: boolean): Promise<void> {
  const view = { columns: [], singular: "row", plural: "rows" };
  const writer = isRead ? output.list(view) : output.report(view).list;
  await writer.page(JsonText.of(text).items());
  await writer.end({ nextPageToken: null, hasMore: false });
}

function headOf({ status, headers }: RawAnswer): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${visibleText(value ?? "")}`);
  return `HTTP ${status}\n${lines.join("\n")}\n\n`;
}

/** Only endpoints whose responses have the list envelope have pages (§2.1). */
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
        const path = withParameters(request.path, { limit, pageToken });
        const attempt = await service.raw.send({ ...request, path, signal });
        return attempt.kind === "answered"
          ? { ...attempt, value: { body: attempt.value.body, requestId: attempt.requestId } }
          : attempt;
      },
  });
}

/** A `limit` in the path is kept, and a `page_token` in the path is replaced. Other parameters keep their spelling. */
export function withParameters(
  path: string,
  { limit, pageToken }: { readonly limit?: number; readonly pageToken?: string },
): string {
  const at = path.includes("?") ? path.indexOf("?") : path.length;
  const typed = path.slice(at + 1);
  const names = typed === "" ? [] : typed.split("&").map(nameOf);
  const kept = typed.split("&").filter((_, index) => pageToken === undefined || names[index] !== "page_token");
  const pairs = [
    ...(typed === "" ? [] : kept),
    ...(limit === undefined || names.includes("limit") ? [] : [`limit=${limit}`]),
    ...(pageToken === undefined ? [] : [`page_token=${encodeURIComponent(pageToken)}`]),
  ];
  return pairs.length === 0 ? path : `${path.slice(0, at)}?${pairs.join("&")}`;
}

function nameOf(pair: string): string {
  const name = pair.split("=", 1)[0]!.replaceAll("+", " ");
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

export type ApiFlags = {
  method?: string;
  field?: string[];
  rawField?: string[];
  header?: string[];
};

const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] as const;

export function requestOf(path: string, flags: ApiFlags, input: Buffer | undefined): RawRequest {
  const fields = [
    ...(flags.rawField ?? []).map((text) => fieldOf(text, { flag: "-f" })),
    ...(flags.field ?? []).map((text) => fieldOf(text, { flag: "-F" })),
  ];
  const method = methodOf(flags.method, { hasBody: input !== undefined });
  const inQuery = method === "GET" || method === "HEAD" || method === "DELETE";
  if (input !== undefined && fields.length > 0 && !inQuery)
    throw new Failure("usage", "--input and -f or -F both make the body.", { hint: "Keep one of them." });
  const headers = Object.fromEntries((flags.header ?? []).map(headerOf));
  const body = input ?? (inQuery || fields.length === 0 ? undefined : bodyOf(fields));
  return {
    method,
    path: inQuery ? withQuery(path, fields) : path,
    headers: {
      ...(body !== undefined && !("content-type" in headers) && { "content-type": "application/json" }),
      ...headers,
    },
    body,
  };
}

function methodOf(typed: string | undefined, { hasBody }: { hasBody: boolean }): (typeof methods)[number] {
  if (typed === undefined) return hasBody ? "POST" : "GET";
  const method = methods.find((one) => one === typed.toUpperCase());
  if (!method) throw invalidValue("method", typed, { hint: `Choose one of ${methods.join(", ")}.` });
  return method;
}

interface Field {
  readonly name: string;
  readonly value: string;
  readonly json: string;
}

function fieldOf(text: string, { flag }: { flag: "-f" | "-F" }): Field {
  const at = text.indexOf("=");
  if (at < 1)
    throw invalidValue(flag, text, { why: "it is not name=value", hint: `Write it like ${flag} type=person.` });
  const value = text.slice(at + 1);
  return { name: text.slice(0, at), value, json: flag === "-F" ? typedJson(value) : JSON.stringify(value) };
}

/** Quotation marks are part of the value: `"5"` is a text of three characters. */
function typedJson(value: string): string {
  const parsed = tryParseJson(value);
  return parsed === undefined || typeof parsed === "string" ? JSON.stringify(value) : value;
}

/** A name ending in `[]` makes an array, even of one value. Any other name may be given once. */
function bodyOf(fields: readonly Field[]): string {
  const members = new Map<string, { readonly values: string[]; readonly isArray: boolean }>();
  for (const { name, json } of fields) {
    const isArray = name.endsWith("[]") && name.length > 2;
    const key = isArray ? name.slice(0, -2) : name;
    const earlier = members.get(key);
    if (earlier && !(isArray && earlier.isArray))
      throw new Failure("usage", `The field "${key}" is given twice.`, {
        hint: `Write it as ${quotedWord(`${key}[]=<value>`)} for an array.`,
      });
    if (earlier) earlier.values.push(json);
    else members.set(key, { values: [json], isArray });
  }
  const texts = [...members].map(([key, { values, isArray }]) => {
    const value = values.join(",");
    return `${JSON.stringify(key)}:${isArray ? `[${value}]` : value}`;
  });
  return `{${texts.join(",")}}`;
}

function headerOf(text: string): readonly [string, string] {
  const match = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):\s*(.*)$/.exec(text);
  if (!match)
    throw invalidValue("-H", text, {
      why: "it is not 'Name: value'",
      hint: "Write it like -H 'Idempotency-Key: build-42'.",
    });
  // Header names ignore case (RFC 9110 §5.1). In lower case, two spellings of one name are the same header.
  return [match[1]!.toLowerCase(), match[2]!];
}

function withQuery(path: string, fields: readonly Field[]): string {
  if (fields.length === 0) return path;
  const query = fields.map(({ name, value }) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join("&");
  return `${path}${path.includes("?") ? "&" : "?"}${query}`;
}
