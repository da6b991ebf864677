import type { ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import type { Answer } from "./call.ts";
import type { FaultEffects } from "./fault.ts";
import { changedDocument } from "./openapi/changed-document.ts";

const beatMs = 100;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

function headOf(response: ServerResponse, sent: { status: number; headers: Readonly<Record<string, string>> }): string {
  const lines = Object.entries(sent.headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${sent.status} ${response.statusMessage || "Fault"}\r\n${lines.join("")}Connection: close\r\n\r\n`;
}

/** The head announces the whole body, so that clients notice the missing part. */
function deliverCut(response: ServerResponse, given: { answer: Answer; cut: NonNullable<FaultEffects["cut"]> }): void {
  const { answer, cut } = given;
  const body = Buffer.from(answer.body ?? "");
  const head = headOf(response, {
    status: answer.status,
    headers: { ...answer.headers, "Content-Length": String(body.length) },
  });
  const part =
    cut.of === "wire"
      ? Buffer.concat([Buffer.from(head), body]).subarray(0, cut.bytes)
      : Buffer.concat([Buffer.from(head), body.subarray(0, cut.bytes)]);
  const { socket } = response;
  response.detachSocket(socket!);
  socket?.end(part, () => socket.destroy());
}

async function deliverSlowly(response: ServerResponse, given: { body: Buffer; bytesPerSecond: number }): Promise<void> {
  const { body, bytesPerSecond } = given;
  const startMs = performance.now();
  for (let at = 0; at < body.length && !response.destroyed; ) {
    const due = Math.min(body.length, Math.ceil(((performance.now() - startMs + beatMs) / 1000) * bytesPerSecond));
    if (due > at) response.write(body.subarray(at, due));
    at = Math.max(at, due);
    await pause(beatMs);
  }
  response.end();
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off("drain", done);
      response.off("close", done);
      resolve();
    };
    response.on("drain", done);
    response.on("close", done);
  });
}

async function deliverMalformed(
  response: ServerResponse,
  given: { answer: Answer; kind: NonNullable<FaultEffects["body"]> },
): Promise<void> {
  const malformed = malformedBody(given.kind, given.answer.body ?? "");
  response.writeHead(given.answer.status, { ...given.answer.headers, ...malformed.headers });
  for (const piece of malformed.pieces) {
    if (response.destroyed || response.socket?.destroyed) return;
    if (!response.write(piece)) await drained(response);
  }
  response.end();
}

export async function deliver(
  response: ServerResponse,
  given: { answer: Answer; effects: FaultEffects },
): Promise<void> {
  const { answer, effects } = given;
  if (effects.drop === "after") {
    response.destroy();
    return;
  }
  if (effects.body) return await deliverMalformed(response, { answer, kind: effects.body });
  if (effects.cut) {
    deliverCut(response, { answer, cut: effects.cut });
    return;
  }
  const body = Buffer.from(answer.body ?? "");
  const length = answer.status === 204 ? {} : { "Content-Length": String(body.length) };
  response.writeHead(answer.status, { ...answer.headers, ...length });
  if (effects.slow) return await deliverSlowly(response, { body, bytesPerSecond: effects.slow });
  response.end(body);
}

const hostileTexts = [
  "\u001b[31mred\u001b[0m\u001b[2J",
  "\u001b]8;;https://evil.example\u0007link\u001b]8;;\u0007",
  "\u001b]52;c;ZXZpbA==\u0007",
  "\u001bP+q544e\u001b\\dcs",
  "\u009b31mC1",
  "line\nbreak\r\nand \u2028 more\u2029",
  "\u202Egnp.exe\u202C \u2066isolate\u2069",
  "zero\u200Bwidth\uFEFF\u00AD",
  "\u0000nul\u0008\u0007\u007F",
  '=HYPERLINK("https://evil.example";"x")',
  "\u{E0041}\u{E007F}tags",
  "\r\u001b[1A\u001b[Kintegrity ok",
];

const namedFields = new Set([
  "display_name",
  "displayName",
  "name",
  "title",
  "detail",
  "error_description",
  "boundEmail",
]);

function withHostileText(body: string): string {
  let next = 0;
  return JSON.stringify(
    JSON.parse(body, (key, value: unknown) =>
      namedFields.has(key) && typeof value === "string" ? hostileTexts[next++ % hostileTexts.length] : value,
    ),
  );
}

type List = Record<string, unknown>;

function asList(body: string): List | undefined {
  try {
    const value: List | null = JSON.parse(body);
    return value?.object === "list" ? value : undefined;
  } catch {
    return undefined;
  }
}

function breakEnvelope(list: List, how: NonNullable<FaultEffects["envelope"]>): void {
  if (how === "broken") Object.assign(list, { has_more: true, next_page_token: null });
  if (how === "token-at-end") Object.assign(list, { has_more: false, next_page_token: "bm90LXRoZS1lbmQ" });
  if (how === "empty-token") Object.assign(list, { has_more: true, next_page_token: "" });
  if (how === "no-token-key") delete list.next_page_token;
  if (how === "no-data") delete list.data;
}

function withRetryable(body: string, retryable: boolean): string {
  if (!body.includes('"retryable"')) return body;
  return JSON.stringify(JSON.parse(body, (key, value: unknown) => (key === "retryable" ? retryable : value)));
}

export function withContentFaults(answer: Answer, given: { effects: FaultEffects; pageToken: string | null }): Answer {
  const { effects, pageToken } = given;
  if (Object.keys(effects).length === 0) return answer;
  const { body: good = "" } = answer;
  let body = good;
  const list = effects.envelope || effects.token ? asList(body) : undefined;
  if (list) {
    if (effects.envelope) breakEnvelope(list, effects.envelope);
    if (effects.token && pageToken !== null) Object.assign(list, { has_more: true, next_page_token: pageToken });
    body = JSON.stringify(list);
  }
  if (effects.retryable) body = withRetryable(body, effects.retryable === "true");
  if (effects.document) body = changedDocument(body, effects.document);
  if (effects.text && body !== "") body = withHostileText(body);
  return body === good ? answer : { ...answer, body };
}

interface MalformedBody {
  readonly headers: Readonly<Record<string, string>>;
  readonly pieces: Iterable<Buffer | string>;
}

const html =
  "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway</h1>" +
  "<p>The proxy could not reach the server.</p></body></html>\n";

const mebibyte = 1_048_576;
const enormousMebibytes = 512;
const deepLevels = 200_000;

function* enormous(): Generator<Buffer | string> {
  yield '{"object":"list","next_page_token":null,"has_more":false,"data":["';
  const piece = Buffer.alloc(mebibyte, "a");
  for (let sent = 0; sent < enormousMebibytes; sent++) yield piece;
  yield '"]}';
}

/** Repeats a member: about a megabyte expands to more than a gigabyte. */
function gzipBomb(): Buffer[] {
  const member = gzipSync(Buffer.alloc(16 * mebibyte, " "));
  return Array.from({ length: 80 }, () => member);
}

/** Each body is complete HTTP; `truncated` cuts only the JSON. */
function malformedBody(kind: NonNullable<FaultEffects["body"]>, good: string): MalformedBody {
  const json = { "Content-Type": "application/json" };
  const bodies: Record<typeof kind, () => MalformedBody> = {
    html: () => ({ headers: { "Content-Type": "text/html; charset=utf-8" }, pieces: [html] }),
    truncated: () => ({ headers: json, pieces: [good.slice(0, Math.floor(good.length / 2))] }),
    empty: () => ({ headers: json, pieces: [] }),
    deep: () => ({ headers: json, pieces: ["[".repeat(deepLevels), "]".repeat(deepLevels)] }),
    enormous: () => ({ headers: json, pieces: enormous() }),
    "gzip-bomb": () => ({ headers: { ...json, "Content-Encoding": "gzip" }, pieces: gzipBomb() }),
  };
  return bodies[kind]();
}
