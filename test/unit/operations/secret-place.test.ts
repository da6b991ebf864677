// A crash between any two steps of changing a destination loses no information.
import { expect, it } from "vitest";
import { reserveDestination } from "../../../src/operations/secret-delivery.ts";
import type { EntryLease, Journal } from "../../../src/journal/journal.ts";
import type { SecretKeeping } from "../../../src/secrets/kept.ts";
import { plainDigests } from "../../model/in-memory.ts";
import { machine } from "../../support/known-places.ts";
import type { Destination, DestinationRecord } from "../../../src/secrets/destination.ts";

function fileAt(path: string, more: { reserved?: string } = {}): DestinationRecord {
  return { kind: "file", path, as: "raw", ...more };
}

async function take(before: DestinationRecord | null, place: DestinationRecord, isKept?: boolean) {
  const steps: unknown[] = [];
  const lease = {
    entry: { id: "1abc", destination: before },
    isTrusted: async () => true,
    record: (change: { destination: DestinationRecord }) => steps.push(["record", change.destination]),
  } as unknown as EntryLease;
  const destination = {
    record: place,
    check: async () => place,
    prepare: async (work: string) => (steps.push(["prepare", work]), { ...place, reserved: `.${work}` }),
  } as unknown as Destination;
  const journal = { unsettled: async () => [], digests: plainDigests } as unknown as Journal;
  const secrets: Partial<SecretKeeping> = {
    machine,
    reread: async () => undefined,
    completeDelivery: async () => false,
    isKept: () => false,
    readKept: () => Promise.reject(new Error("nothing is kept")),
    removeReserve: async (...given: unknown[]) => void steps.push(["remove", ...given]),
  };
  const taken = await reserveDestination({ journal, secrets: secrets as SecretKeeping }, lease, {
    destination,
    isKept,
  });
  return { steps, taken };
}

it("a remembered place is only prepared", async () => {
  const { steps, taken } = await take(fileAt("/a"), fileAt("/a"));
  expect(steps).toEqual([["prepare", "1abc"]]);
  expect(taken).toEqual(fileAt("/a", { reserved: ".1abc" }));
  expect((await take({ kind: "command" }, { kind: "stdout" })).steps).toEqual([["prepare", "1abc"]]);
});

it("another file: the first is released while it is still recorded, the second recorded before it is created", async () => {
  const before = fileAt("/a", { reserved: "/.a" });
  expect((await take(before, fileAt("/b"), true)).steps).toEqual([
    ["remove", before, "1abc", { isKept: true }],
    ["record", fileAt("/b")],
    ["prepare", "1abc"],
  ]);
});

it.each([
  [fileAt("/a"), { kind: "stdout" }, 3],
  [{ kind: "stdout" }, fileAt("/a"), 2],
  [null, fileAt("/a"), 2],
] as const)("%j, then %j", async (before, place, count) => {
  const { steps } = await take(before, place);
  expect(steps).toHaveLength(count);
  expect(steps.at(-2)).toEqual(["record", place]);
});
