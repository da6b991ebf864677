// Builds the complete responses of a case, and serves them from a plain server. Imports nothing from src/.
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Answer, ContractCase, Json, JsonObject, RequestStep } from "./case.ts";
import { expand, filled } from "./matching.ts";

type Names = Readonly<Record<string, string>>;

export interface Served {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  readonly body: Json;
}

export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export const requestId = "req_of_the_case";

const uuid = "3f2b8c1e-9a4d-4e6f-8b7a-0c1d2e3f4a5b";

const samples: Readonly<Record<string, Json>> = {
  "<any>": {},
  "<text>": "a-text",
  "<timestamp>": "2026-01-02T03:04:05.678Z",
  "<uuid>": uuid,
  "<integer>": 900,
  "<boolean>": true,
  "<seconds>": "7",
};

export function namesIn(one: ContractCase): Names {
  const names: Record<string, string> = { n: "1" };
  for (const [, name] of JSON.stringify(one).matchAll(/\{\{([^}:]+)\}\}/g))
    names[name!] = name!.endsWith("organization_id") ? uuid : `the-${name!.replaceAll(".", "-")}`;
  return { ...names, service_account_id: "the-service-account" };
}

function sampled(value: Json): Json {
  if (typeof value === "string") return samples[value] ?? value;
  if (Array.isArray(value)) return value.map(sampled);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, sampled(item)]));
}

/** The documented success response of an operation, for a case that specifies only the status. */
function usualBody(method: string, path: string): JsonObject {
  if (path.startsWith("/v1/oauth_clients"))
    return method === "POST"
      ? { $like: "receipt", client_secret: "<text>" }
      : { $like: "oauth_client", status: method === "DELETE" ? "revoked" : "active" };
  if (/^\/v1\/(entities|cohorts)/.test(path)) return { $like: "list", data: [{ $like: "entity" }] };
  if (path === "/oauth/token" || path === "/api/v1/access-tokens") return { $like: "token" };
  if (method === "POST") return { $like: "created_access_key" };
  return method === "DELETE" ? { $like: "access_key", status: "revoked" } : { data: [{ $like: "access_key" }] };
}

export function completeResponse(step: RequestStep & { readonly answer: Answer }, names: Names): Served {
  const [method, path] = filled(step.request, names).split(" ") as [string, string];
  const { status, headers, body: shown } = step.answer;
  const problem = step.answer.problem ?? (status >= 400 && shown === undefined ? {} : undefined);
  const body = sampled(problem ? problemBody(expand(problem, names), status) : bodyOf(shown, { method, path, names }));
  const given = Object.entries(headers ?? {}).filter(
    (entry): entry is [string, string] => entry[1] !== null && entry[0] !== "www-authenticate",
  );
  const extra = given.map(([name, value]) => [name, sampled(filled(value, names)) as string]);
  return {
    status,
    headers: { "content-type": "application/json", ...Object.fromEntries(extra), "request-id": requestId },
    text: JSON.stringify(body),
    body,
  };
}

function bodyOf(wanted: Json | undefined, of: { method: string; path: string; names: Names }): Json {
  const body = expand(wanted ?? usualBody(of.method, of.path), of.names);
  const id = /^\/v1\/oauth_clients\/([^/?]+)$/.exec(of.path)?.[1];
  return id !== undefined && isObject(body) ? { ...body, id: decodeURIComponent(id) } : body;
}

function problemBody(problem: Json, status: number): Json {
  const all: JsonObject = { ...(expand({ $like: "problem" }, {}) as JsonObject), ...(problem as JsonObject), status };
  const address = `https://docs.example.com/developers/v1/errors/${all.code as string}`;
  return { ...all, type: address, doc_url: address, request_id: requestId };
}

export function jsonAnswer(status: number, body: Json): Served {
  const headers = { "content-type": "application/json", "request-id": requestId };
  return { status, headers, text: JSON.stringify(body), body };
}

function isObject(value: Json): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export class AnsweringServer {
  next: Served | "lost" = "lost";
  readonly received: ReceivedRequest[] = [];
  readonly #server: Server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (piece: string) => (body += piece));
    request.on("end", () => {
      this.received.push({ method: request.method!, path: request.url!, headers: request.headers, body });
      if (this.next === "lost") request.socket.destroy();
      else response.writeHead(this.next.status, this.next.headers).end(this.next.text);
    });
  });

  async start(): Promise<string> {
    await new Promise<void>((done) => this.#server.listen(0, "127.0.0.1", done));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
