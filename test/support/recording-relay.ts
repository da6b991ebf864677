// Relays between the program and a service, records every passing secret, and can send hostile responses.
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll } from "vitest";
import { relays } from "./check-output.ts";

/** A request and its response, whose values a hostile response may repeat. */
export interface Exchange {
  readonly method: string;
  readonly path: string;
  /** The request's secrets. The secret of HTTP Basic is in the list a second time, in encoded form. */
  readonly credentials: readonly string[];
  readonly answer: string;
}

export interface HostileResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

interface HeldResponses {
  /** Resolves when the last of the requests has arrived and the service has responded. */
  readonly arrived: Promise<void>;
  letGo(): void;
}

export interface RecordingRelay {
  /** Replaces the service's origin in an address by the relay's. */
  through(address: string): string;
  /** Responds to matching requests in the service's place, after the service has handled them. */
  answer(path: RegExp, hostile: (exchange: Exchange) => HostileResponse): void;
  /** Holds the next `count` responses to matching requests (`POST /v1/…`) until `letGo`. */
  hold(path: RegExp, count?: number): HeldResponses;
  calm(): void;
  close(): Promise<void>;
}

export async function relayOfFile(target: string): Promise<RecordingRelay> {
  const relay = await startRecordingRelay(target);
  afterAll(() => relay.close());
  return relay;
}

/** @param onSecret called with each passing secret and its role */
export async function startRecordingRelay(
  target: string,
  onSecret: (role: string, secret: string) => void = () => {},
): Promise<RecordingRelay> {
  const { hostname, port, origin } = new URL(target);
  let hostile: { path: RegExp; answer: (exchange: Exchange) => HostileResponse } | undefined;
  let held: { path: RegExp; left: number; arrive: () => void; mayGo: Promise<void> } | undefined;
  const pass = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const body = await bytesOf(incoming);
    const credentials = credentialsIn(incoming.headers.authorization, body.toString("latin1"));
    for (const [role, secret] of credentials) onSecret(role, secret);
    const { method = "GET", url: path = "/", headers } = incoming;
    const answered = await new Promise<IncomingMessage>((resolve, reject) => {
      const onward = request({ hostname, port, method, path, headers: { ...headers, connection: "close" } }, resolve);
      onward.on("error", reject);
      onward.end(body);
    });
    const answer = await bytesOf(answered);
    for (const [role, secret] of secretsIn(answer.toString("utf8"))) onSecret(role, secret);
    const instead = hostile?.path.test(path)
      ? hostile.answer({
          method,
          path,
          credentials: credentials.map(([, secret]) => secret),
          answer: answer.toString(),
        })
      : undefined;
    if (held?.path.test(`${method} ${path}`)) {
      const { arrive, mayGo } = held;
      held.left -= 1;
      if (held.left === 0) {
        held = undefined;
        arrive();
      }
      await mayGo;
    }
    const { "content-length": _, "transfer-encoding": _te, connection: _c, ...kept } = answered.headers;
    if (instead)
      outgoing.writeHead(instead.status, { ...kept, "content-type": "application/json", ...instead.headers });
    else outgoing.writeHead(answered.statusCode ?? 502, kept);
    outgoing.end(instead ? instead.body : answer);
  };
  const server = createServer((incoming, outgoing) => void pass(incoming, outgoing).catch(() => outgoing.destroy()));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const here = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  relays.set(here, origin);
  return {
    through: (address) => address.replace(origin, here),
    answer(path, answer) {
      relays.delete(here);
      hostile = { path, answer };
    },
    hold(path, count = 1) {
      const [arrived, going] = [latch(), latch()];
      held = { path, left: count, arrive: arrived.open, mayGo: going.opened };
      return { arrived: arrived.opened, letGo: going.open };
    },
    calm: () => void (hostile = held = undefined),
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function latch(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}

async function bytesOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function credentialsIn(authorization: string | undefined, body: string): [string, string][] {
  const found: [string, string][] = secretsIn(body);
  const posted = new URLSearchParams(body).get("client_secret");
  if (posted) found.push(["client secret", posted]);
  const [scheme = "", value = ""] = (authorization ?? "").split(" ");
  if (/^bearer$/i.test(scheme)) found.push(["bearer token", value]);
  if (!/^basic$/i.test(scheme)) return found;
  const pair = Buffer.from(value, "base64").toString();
  const [user, password] = [pair.slice(0, pair.indexOf(":")), pair.slice(pair.indexOf(":") + 1)];
  const secret = password === "" ? user : password;
  return [
    ...found,
    ["Basic credential", value],
    [user === "apikey" || password === "" ? "API key" : "client secret", secret],
  ];
}

const roles: Readonly<Record<string, string>> = {
  client_secret: "client secret",
  secret: "access key secret",
  access_token: "bearer token",
};

function secretsIn(text: string): [string, string][] {
  return [...text.matchAll(/"(client_secret|secret|access_token)"\s*:\s*"([^"]{12,})"/g)].map(([, name, secret]) => [
    roles[name!]!,
    secret!,
  ]);
}
