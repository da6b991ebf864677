// Checks rules of the API document for the caller (§4.2 rule 1, §5.1 rule 3, §9 rule 1). The built program sends a request
// to a plain server, which inspects the request and the journal on disk before it responds.
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Home } from "../support/program.ts";

let home: Home;
let server: Server;
let seen: IncomingMessage[];
let respond: (request: IncomingMessage, body: string) => readonly [status: number, headers: object, body: string];

beforeEach(async () => {
  home = new Home();
  seen = [];
  server = createServer((request, response) => {
    seen.push(request);
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const [status, headers, body] = respond(request, Buffer.concat(chunks).toString());
      response.writeHead(status, { "content-type": "application/json", ...headers }).end(body);
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
  home.remove();
});

function integ(...words: string[]): ReturnType<Home["integ"]> {
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const env = { INTEG_BASE_URL: address, INTEG_REGION: "us", INTEG_API_KEY: "k3y-of-the-person" };
  return home.integ(words, { env });
}

const creation = ["oauth-clients", "create", "--service-account", "sa_1", "--scope", "entity:read", "--retry-for", "0"];

it("the idempotency key and the body are on disk when the request arrives", async () => {
  let journal = "";
  let sent = "";
  respond = (_request, body) => {
    journal = readFileSync(home.path("state/journal.ndjson"), "utf8");
    sent = body;
    return [503, {}, "{}"];
  };
  expect((await integ(...creation)).code).toBe(7);
  const key = String(seen[0]!.headers["idempotency-key"]);
  expect(key).toMatch(/^[\x21-\x7e]{1,255}$/);
  expect(journal).toContain(JSON.stringify(key));
  expect(journal).toContain(JSON.stringify(sent));
});

it.each([301, 302, 303, 307, 308])("a redirect is not followed: %i", async (status) => {
  let elsewhere = 0;
  const other = createServer((_request, response) => {
    elsewhere += 1;
    response.end("{}");
  });
  await new Promise<void>((listening) => other.listen(0, "127.0.0.1", listening));
  const location = `http://127.0.0.1:${(other.address() as AddressInfo).port}/v1/entities`;
  respond = () => [status, { location }, "{}"];
  const read = await integ("entities", "list", "--retry-for", "0");
  const change = await integ(...creation);
  other.close();
  expect([read.code, change.code]).toEqual([11, 7]);
  expect(seen.map(({ method }) => method)).toEqual(["GET", "POST"]);
  expect(elsewhere).toBe(0);
});

it("the contract version is pinned in every request of /v1", async () => {
  respond = ({ method }) => [method === "GET" ? 404 : 409, {}, '{"status":409,"code":"x"}'];
  await integ("entities", "list");
  await integ("cohorts", "members", "c");
  await integ("oauth-clients", "get", "oac_1");
  await integ("oauth-clients", "revoke", "oac_1", "--yes");
  await integ(...creation);
  await integ("api", "GET", "/v1/entities");
  const versions = seen.map(({ url = "", headers }) => [url.startsWith("/v1/"), headers["service-version"]]);
  expect(versions.length).toBeGreaterThan(4);
  expect(versions.filter(([isV1, version]) => isV1 !== true || version !== "2026-07-01")).toEqual([]);
});
