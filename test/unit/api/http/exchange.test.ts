// Memory for bodies: what goes in comes out, one body after the other, and nothing of an earlier one.
import { expect, test } from "vitest";
import { BodyRoom } from "../../../../src/api/http/exchange.ts";

test("bodies of any length in pieces of any length, one after the other", () => {
  const room = new BodyRoom();
  for (const [length, piece] of [
    [0, 1],
    [1, 1],
    [10, 3],
    [100_000, 4096],
    [7, 7],
    [200_001, 65_536],
    [3, 2],
  ] as const) {
    const body = Buffer.from(Array.from({ length }, (_, i) => (i * 31 + length) % 256));
    room.clear();
    for (let at = 0; at < length; at += piece) {
      const received = Buffer.from(body.subarray(at, at + piece));
      room.append(received);
      received.fill(0xff);
    }
    expect(room.bytes().equals(body)).toBe(true);
  }
});

test("a body that fits is received where the last one was; one alone takes no more than itself", () => {
  const room = new BodyRoom();
  room.append(Buffer.alloc(1000, 1));
  const { buffer, byteLength } = room.bytes();
  expect([byteLength, buffer.byteLength]).toEqual([1000, 1000]);
  room.clear();
  room.append(Buffer.alloc(600, 2));
  room.append(Buffer.alloc(400, 3));
  expect(room.bytes().buffer).toBe(buffer);
});
