// Every status × body × framing that an answer to a creation may have, and what each must come to, written from §2.3, §4.2
// and §7 alone.
import { gzipSync } from "node:zlib";

export const secretText = "whole-secret-8Qz1";

const client = {
  object: "oauth_client",
  id: "oac_1",
  service_account_id: "sa_1",
  client_id: "cid_1",
  scopes: ["entity:read"],
  status: "active",
  created_at: "2026-11-21T00:00:00.000Z",
  client_secret: secretText as string | null,
};

const whole = JSON.stringify(client);

/** What a body means where the status is 201 and the framing carries it whole. */
export type Meaning = "delivered" | "lost" | "pending" | "unusable" | "kept" | "unknown";

interface Body {
  readonly bytes: Buffer;
  readonly means: Meaning;
  /** A whole one-time secret stands in it. */
  readonly hasSecret: boolean;
}

function json(value: unknown, means: Meaning): Body {
  const text = JSON.stringify(value);
  return { bytes: Buffer.from(text), means, hasSecret: text.includes(`"client_secret":"${secretText}"`) };
}

function text(value: string | Buffer, means: Meaning = "unknown"): Body {
  const bytes = Buffer.from(value as string);
  return { bytes, means, hasSecret: bytes.includes(`"client_secret":"${secretText}"`) };
}

export const bodies: Readonly<Record<string, Body>> = {
  whole: json(client, "delivered"),
  "with unknown fields": json({ ...client, colour: "blue", nested: { deep: [1, 2] } }, "delivered"),
  "with a line end": text(`${whole}\r\n`, "delivered"),
  "secret null": json({ ...client, client_secret: null }, "lost"),
  "no secret field": json({ ...client, client_secret: undefined }, "lost"),
  "secret empty": json({ ...client, client_secret: "" }, "lost"),
  pending: json({ ...client, status: "pending", client_id: null, client_secret: null }, "pending"),
  "pending with a secret": json({ ...client, status: "pending", client_id: null }, "kept"),
  revoked: json({ ...client, status: "revoked", client_secret: null }, "unusable"),
  "a status nobody knows": json({ ...client, status: "frozen", client_secret: null }, "unusable"),
  "no client id": json({ ...client, client_id: null }, "kept"),
  "no id": json({ ...client, id: undefined }, "kept"),
  "id a number": json({ ...client, id: 7 }, "kept"),
  "another object": json({ ...client, object: "entity" }, "kept"),
  "scopes a string": json({ ...client, scopes: "entity:read" }, "kept"),
  "status an object": json({ ...client, status: {} }, "kept"),
  "secret a number": json({ ...client, client_secret: 5 }, "unknown"),
  array: json([client], "kept"),
  string: json("created", "unknown"),
  number: text("201"),
  null: text("null"),
  empty: text(""),
  html: text("<!DOCTYPE html><html><body>201 Created</body></html>"),
  "cut before the secret": text(whole.slice(0, whole.indexOf(secretText) + 4)),
  "cut after the secret": text(whole.slice(0, -1), "kept"),
  "two texts": text(`${whole}${whole}`, "kept"),
  "not UTF-8": text(
    Buffer.concat([Buffer.from('{"object":"oauth_client","x":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]),
  ),
  "too deep": text("[".repeat(5000) + "]".repeat(5000)),
  "an error object": json({ type: "https://x/errors/a", title: "t", status: 500, detail: "d", code: "c" }, "unknown"),
};

type Framed = "whole" | "no json" | "broken";

interface Framing {
  /** Whether the body arrives: whole and as JSON, as something else, or not as a full response at all. */
  readonly comes: Framed;
  readonly bytes: (status: number, body: Buffer) => Buffer;
}

function head(status: number, lines: readonly string[], version = "1.1"): string {
  return [`HTTP/${version} ${status} Status`, ...lines, "", ""].join("\r\n");
}

function plain(lines: (body: Buffer) => string[], version?: string): Framing["bytes"] {
  return (status, body) => Buffer.concat([Buffer.from(head(status, lines(body), version)), body]);
}

const length = (body: Buffer): string => `Content-Length: ${body.length}`;
const jsonType = "Content-Type: application/json";

function chunked(body: Buffer, end: string): Buffer {
  const half = body.length >> 1;
  const parts = [body.subarray(0, half), body.subarray(half)].filter((part) => part.length > 0);
  const chunks = parts.flatMap((part) => [Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from("\r\n")]);
  return Buffer.concat([...chunks, Buffer.from(end)]);
}

function inChunks(end: string): Framing["bytes"] {
  return (status, body) =>
    Buffer.concat([Buffer.from(head(status, [jsonType, "Transfer-Encoding: chunked"])), chunked(body, end)]);
}

export const framings: Readonly<Record<string, Framing>> = {
  json: { comes: "whole", bytes: plain((body) => [jsonType, length(body)]) },
  "json, charset": { comes: "whole", bytes: plain((body) => [`${jsonType}; charset=utf-8`, length(body)]) },
  "problem+json": { comes: "whole", bytes: plain((body) => ["Content-Type: application/problem+json", length(body)]) },
  "no type": { comes: "whole", bytes: plain((body) => [length(body)]) },
  html: { comes: "no json", bytes: plain((body) => ["Content-Type: text/html", length(body)]) },
  "odd Retry-After": { comes: "whole", bytes: plain((body) => [jsonType, length(body), "Retry-After: soon"]) },
  "a Location": { comes: "whole", bytes: plain((body) => [jsonType, length(body), "Location: http://127.0.0.1:9/"]) },
  chunks: { comes: "whole", bytes: inChunks("0\r\n\r\n") },
  "chunks without an end": { comes: "broken", bytes: inChunks("") },
  "chunks, size no number": { comes: "broken", bytes: inChunks("zz\r\n\r\n") },
  "length too great": { comes: "broken", bytes: plain((body) => [jsonType, `Content-Length: ${body.length + 1}`]) },
  "length no number": { comes: "broken", bytes: plain(() => [jsonType, "Content-Length: many"]) },
  "two lengths": {
    comes: "broken",
    bytes: plain((body) => [jsonType, length(body), `Content-Length: ${body.length + 3}`]),
  },
  gzip: {
    comes: "whole",
    bytes: (status, body) => {
      const packed = gzipSync(body);
      return Buffer.concat([Buffer.from(head(status, [jsonType, "Content-Encoding: gzip", length(packed)])), packed]);
    },
  },
  "gzip that is none": { comes: "broken", bytes: plain((body) => [jsonType, "Content-Encoding: gzip", length(body)]) },
  "an encoding nobody knows": {
    comes: "broken",
    bytes: plain((body) => [jsonType, "Content-Encoding: snappy", length(body)]),
  },
  "early hints before": {
    comes: "whole",
    bytes: (status, body) =>
      Buffer.concat([
        Buffer.from("HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n"),
        Buffer.from(head(status, [jsonType, length(body)])),
        body,
      ]),
  },
  "no HTTP": { comes: "broken", bytes: (_status, body) => Buffer.concat([Buffer.from("hello\r\n"), body]) },
};

/** Every final status that is known, and some that are not. */
export const statuses: readonly number[] = (
  "200 201 202 203 204 205 206 207 226 299 300 301 302 303 304 305 307 308 399 400 401 402 403 404 405 406 407 408 " +
  "409 410 411 412 413 414 415 416 417 418 421 422 423 424 425 426 428 429 431 451 499 500 501 502 503 504 505 506 507 508 510 511 599"
)
  .split(" ")
  .map(Number);

/** No body goes with these, whatever the head says (RFC 9110 §6.4.1). */
const bodiless = new Set([204, 304]);

export interface Answer {
  readonly status: number;
  readonly body: string;
  readonly framing: string;
}

export function everyAnswer(): Answer[] {
  return statuses.flatMap((status) =>
    Object.keys(bodies).flatMap((body) => Object.keys(framings).map((framing) => ({ status, body, framing }))),
  );
}

export function bytesOf({ status, body, framing }: Answer): Buffer {
  return framings[framing]!.bytes(status, bodies[body]!.bytes);
}

/**
 * What the answer must come to: one of these meanings. `refused`: a 4xx, nothing was made; `wait`: 429.
 * Where the framing is broken a refusal may also count as no answer at all.
 */
export function meaningsOf({ status, body, framing }: Answer): readonly (Meaning | "refused" | "wait")[] {
  const { means, hasSecret } = bodies[body]!;
  const { comes } = framings[framing]!;
  const salvaged: Meaning[] = hasSecret ? ["kept"] : ["unknown"];
  // A body that came all the same is kept, unless its framing makes the connection skip it.
  if (bodiless.has(status)) return hasSecret ? ["kept", "unknown"] : ["unknown"];
  if (status >= 400 && status < 500 && status !== 408) {
    const said = status === 429 ? "wait" : "refused";
    return comes === "broken" ? [said, ...salvaged] : [said];
  }
  if (comes === "broken") return salvaged;
  if (status !== 201) return hasSecret ? ["kept"] : ["unknown"];
  if (comes === "no json") return hasSecret ? ["kept"] : ["unknown"];
  return [means];
}
