// Sends responses that undici or integ rejects. integ keeps the received part if it contains a one-time secret.
import type { Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { connect } from "../../../../src/api/connect.ts";
import { decideCreation } from "../../../../src/api/oauth-client-creation.ts";
import { closePeers, startRawPeer, transportTo } from "../peer.ts";

afterEach(closePeers);

const secret = "whole-secret-8Qz1";
const body = `{"object":"oauth_client","id":"oac_1","client_secret":"${secret}"}`;
const created = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n";
const sized = `${created}Content-Length: ${body.length}\r\n`;
const halves = [body.slice(0, 58), body.slice(58)].map((half) => `${half.length.toString(16)};x=y\r\n${half}\r\n`);

/** At `null` the peer pauses. */
const refused: Readonly<Record<string, readonly (string | null)[]>> = {
  "an unsolicited 100 Continue": ["HTTP/1.1 100 Continue\r\n\r\n", `${sized}\r\n${body}`],
  "an unsolicited 100 Continue, and the response later": ["HTTP/1.1 100 Continue\r\n\r\n", null, `${sized}\r\n${body}`],
  "an encoding that was not requested": [`${sized}Content-Encoding: snappy\r\n\r\n${body}`],
  "a false encoding": [`${sized}Content-Encoding: gzip\r\n\r\n${body}`],
  "the same length twice": [`${sized}Content-Length: ${body.length}\r\n\r\n${body}`],
  "two lengths": [`${sized}Content-Length: 5\r\n\r\n${body}`],
  "a length and chunks": [`${sized}Transfer-Encoding: chunked\r\n\r\n${halves.join("")}0\r\n\r\n`],
  "a wrong size after a chunk": [`${created}Transfer-Encoding: chunked\r\n\r\n${halves.join("")}zz\r\n`],
  "a header without a name": [`${sized}: x\r\n\r\n${body}`],
  "a head that is too long": [`${sized}x: ${"y".repeat(40_000)}\r\n\r\n${body}`],
  "no head at all": [body],
  "text before it": [`hello\r\n${sized}\r\n${body}`],
  "another status": [`HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n${body}`],
};

async function write(socket: Socket, parts: readonly (string | null)[], inBytes: boolean): Promise<void> {
  socket.setNoDelay(true);
  for (const part of parts) {
    if (part === null) await new Promise((later) => setTimeout(later, 1500));
    const step = inBytes ? Math.ceil((part ?? "").length / 300) : 1e6;
    for (let at = 0; at < (part ?? "").length; at += step) {
      socket.write((part ?? "").slice(at, at + step));
      await new Promise((turn) => setImmediate(turn));
    }
  }
}

describe.each(Object.entries(refused))("a creation whose response has %s", (_, parts) => {
  test.each([
    { inBytes: false, ends: true },
    { inBytes: false, ends: false },
    { inBytes: true, ends: true },
  ])("keeps the secret (in small pieces: $inBytes, connection closed: $ends)", async ({ inBytes, ends }) => {
    let requests = 0;
    const peer = await startRawPeer((socket) =>
      socket.once("data", () => {
        requests += 1;
        void write(socket, parts, inBytes).then(() => ends && socket.end());
      }),
    );
    const service = connect({
      transport: transportTo({ timeoutMs: 4000 }),
      baseUrl: peer.origin,
      credential: async () => ({ kind: "api_key", key: "k", style: "apikey-user" }),
      legacyCredential: () => Promise.reject(new Error("not asked for")),
      now: Date.now,
    });
    const decision = decideCreation(await service.oauthClients.create("{}", "key"));
    expect(decision).toMatchObject({ kind: "unknown", secret: { secret } });
    expect([requests, peer.connections()]).toEqual([1, 1]);
  });
});

test("half a secret is not kept", async () => {
  const peer = await startRawPeer((socket) =>
    socket.once("data", () => socket.end(`HTTP/1.1 100 Continue\r\n\r\n${sized}\r\n${body.slice(0, -3)}`)),
  );
  const service = connect({
    transport: transportTo(),
    baseUrl: peer.origin,
    credential: async () => ({ kind: "api_key", key: "k", style: "apikey-user" }),
    legacyCredential: () => Promise.reject(new Error("not asked for")),
    now: Date.now,
  });
  const decision = decideCreation(await service.oauthClients.create("{}", "key"));
  expect(decision.kind === "unknown" && decision.secret).toBeUndefined();
});
