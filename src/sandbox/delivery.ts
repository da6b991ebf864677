// Owns: putting an answer on the wire, whole or as a fault wants it: cut, slow, strange.
// Must not know: what the answer means.
import type { ServerResponse } from "node:http";
import type { FaultEffects } from "./fault.ts";
import { strangeBody } from "./fault-bodies.ts";
import type { Answer } from "./problem.ts";

/** A slow answer goes out in pieces, one each so often. */
const beatMs = 100;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

function headOf(response: ServerResponse, sent: { status: number; headers: Readonly<Record<string, string>> }): string {
  const lines = Object.entries(sent.headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${sent.status} ${response.statusMessage || "Fault"}\r\n${lines.join("")}Connection: close\r\n\r\n`;
}

/** Sends the beginning of an answer whose head promises all of it, then closes the connection. */
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
  const startMs = Date.now();
  for (let at = 0; at < body.length && !response.destroyed; ) {
    const due = Math.min(body.length, Math.ceil(((Date.now() - startMs + beatMs) / 1000) * bytesPerSecond));
    if (due > at) response.write(body.subarray(at, due));
    at = Math.max(at, due);
    await pause(beatMs);
  }
  response.end();
}

/** Waits until more may be written, or nobody reads any more. */
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

async function deliverStrange(
  response: ServerResponse,
  given: { answer: Answer; kind: NonNullable<FaultEffects["body"]> },
): Promise<void> {
  const strange = strangeBody(given.kind, given.answer.body ?? "");
  response.writeHead(given.answer.status, { ...given.answer.headers, ...strange.headers });
  for (const piece of strange.pieces) {
    if (response.destroyed || response.socket?.destroyed) return;
    if (!response.write(piece)) await drained(response);
  }
  response.end();
}

/** Sends `answer` as `effects` want it. */
export async function deliver(
  response: ServerResponse,
  given: { answer: Answer; effects: FaultEffects },
): Promise<void> {
  const { answer, effects } = given;
  if (effects.drop === "after") {
    response.destroy();
    return;
  }
  if (effects.body) return await deliverStrange(response, { answer, kind: effects.body });
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
