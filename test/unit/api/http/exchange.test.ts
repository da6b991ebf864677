// Memory for bodies: what goes in comes out, one body after the other, and nothing of an earlier one.
import fc from "fast-check";
import { expect, test } from "vitest";
import { BodyBuffer } from "../../../../src/api/http/exchange.ts";
import { sampled } from "../../../support/sample.ts";

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

/** What a socket reads at once: parts of the body, and what is before, between and behind them. */
const read = fc.array(fc.record({ between: fc.nat(300), body: fc.nat(90_000) }), { minLength: 1, maxLength: 4 });
const places = [undefined, 1024 * 1024];

test.each(places)(
  "bodies that are received in its space, in parts with others between, in a place of %s bytes",
  (bytes) => {
    fc.assert(
      fc.property(
        fc.array(fc.array(fc.tuple(fc.boolean(), read), { minLength: 1, maxLength: 5 }), { minLength: 1 }),
        (all) => {
          const place = bytes === undefined ? undefined : Buffer.alloc(bytes);
          const buffer = new BodyBuffer(() => place);
          let value = 0;
          for (const reads of all) {
            buffer.clear();
            const expected: Buffer[] = [];
            for (const [isInSpace, parts] of reads) {
              const raw = Buffer.concat(
                parts.map((part) => {
                  const body = Buffer.alloc(part.body, (value = (value + 1) % 250));
                  expected.push(body);
                  return Buffer.concat([Buffer.alloc(part.between, 255), body]);
                }),
              );
              const space = isInSpace ? buffer.space() : undefined;
              // What does not fit is read the next time.
              const there = space && space.length >= raw.length ? space.subarray(0, raw.length) : raw;
              if (there !== raw) raw.copy(there);
              let at = 0;
              for (const part of parts) {
                at += part.between;
                if (part.body > 0) buffer.append(there.subarray(at, at + part.body));
                at += part.body;
              }
            }
            expect(buffer.bytes().equals(Buffer.concat(expected))).toBe(true);
          }
        },
      ),
      { numRuns: sampled(200) },
    );
  },
);

test("a body in its space stays where it was received", () => {
  const buffer = new BodyBuffer();
  const space = buffer.space();
  space.write("head body");
  buffer.append(space.subarray(5, 7));
  buffer.append(space.subarray(7, 9));
  expect(buffer.bytes().toString()).toBe("body");
  expect(buffer.bytes().byteOffset).toBe(space.byteOffset + 5);
  expect(buffer.space().byteOffset).toBe(space.byteOffset + 9);
});

test("its space is never short of what is worth a call of the system", () => {
  const buffer = new BodyBuffer();
  for (let at = 0; at < 3_000_000; at += 50_000) {
    const space = buffer.space();
    expect(space.length).toBeGreaterThanOrEqual(64 * 1024);
    buffer.append(space.subarray(0, 50_000));
  }
});

test("the place is taken with the next body from the moment that there is one, and left for one that is longer", () => {
  let place: Buffer | undefined;
  const buffer = new BodyBuffer(() => place);
  buffer.append(Buffer.alloc(10));
  place = Buffer.alloc(1000);
  buffer.append(Buffer.alloc(10));
  expect(buffer.holds(place)).toBe(false);
  for (const [length, isThere] of [
    [1000, true],
    [1001, false],
    [10, false],
  ] as const) {
    buffer.clear();
    buffer.append(Buffer.alloc(length, 7));
    expect(buffer.bytes().equals(Buffer.alloc(length, 7))).toBe(true);
    expect(buffer.bytes().buffer === place.buffer && buffer.bytes().byteOffset === place.byteOffset).toBe(isThere);
  }
});

test("what is beside its memory in the same larger one is not its own", () => {
  const memory = Buffer.alloc(3000);
  const buffer = new BodyBuffer(() => memory.subarray(1000, 2000));
  buffer.clear();
  for (const [from, to, isOwn] of [
    [1000, 2000, true],
    [1500, 1500, true],
    [999, 1001, false],
    [1999, 2001, false],
    [0, 100, false],
    [2500, 2600, false],
  ] as const)
    expect(buffer.holds(memory.subarray(from, to))).toBe(isOwn);
  memory.fill(3, 0, 100);
  buffer.append(memory.subarray(0, 100));
  expect(buffer.bytes().byteOffset).toBe(memory.byteOffset + 1000);
});
