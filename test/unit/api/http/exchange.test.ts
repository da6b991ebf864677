// Memory for bodies: what goes in comes out, one body after the other, and nothing of an earlier one.
import { expect, test } from "vitest";
import { BodyBuffer } from "../../../../src/api/http/exchange.ts";

test("bodies of any length in pieces of any length, one after the other", () => {
  const buffer = new BodyBuffer();
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
    buffer.clear();
    for (let at = 0; at < length; at += piece) {
      const received = Buffer.from(body.subarray(at, at + piece));
      buffer.append(received);
      received.fill(0xff);
    }
    expect(buffer.bytes().equals(body)).toBe(true);
  }
});

test("a body that fits is received where the last one was; one alone takes no more than itself", () => {
  const buffer = new BodyBuffer();
  buffer.append(Buffer.alloc(1000, 1));
  const bytes = buffer.bytes();
  expect([bytes.byteLength, bytes.buffer.byteLength]).toEqual([1000, 1000]);
  buffer.clear();
  buffer.append(Buffer.alloc(600, 2));
  buffer.append(Buffer.alloc(400, 3));
  expect(buffer.bytes().buffer).toBe(bytes.buffer);
});
