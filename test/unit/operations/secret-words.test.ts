import { describe, expect, it } from "vitest";
import { keepSalvaged, reserveDestination } from "../../../src/operations/secret-delivery.ts";
import { keyReceipt, leavesSpaceForMark, markedName } from "../../../src/api/access-keys.ts";
import { proveSecret } from "../../../src/operations/key.ts";
import { clientReceipt } from "../../../src/operations/client.ts";
import type { Workbench } from "../../../src/operations/workbench.ts";
import { Failure } from "../../../src/errors.ts";
import type { Entry, EntryProgress } from "../../../src/journal/entry.ts";
import type { EntryLease } from "../../../src/journal/journal.ts";
import type { Destination, DestinationRecord, OneTimeSecret, SingleRecord } from "../../../src/secrets/destination.ts";
import { AWorld } from "./a-world.ts";
import { intent } from "../journal/intent.ts";

const entryOf = (changes: Partial<Entry>): Entry =>
  ({
    id: "e1",
    profile: "p",
    region: "us",
    operation: "oauth_client.create",
    method: "POST",
    path: "/v1/x",
    request_text: '{"service_account_id":"sa_1"}',
    attempts: 1,
    detail: { own_key: true },
    parent: null,
    replaces: null,
    destination: null,
    resource_id: "r1",
    state: "secret_lost",
    ...changes,
  }) as Entry;

async function at<T>(
  { operation = "oauth_client.create", ...progress }: Partial<EntryProgress> & { operation?: Entry["operation"] },
  work: (bench: Workbench, lease: EntryLease, world: AWorld) => Promise<T>,
  failing: readonly string[] = [],
): Promise<{ readonly world: AWorld; readonly kind: string; readonly value?: T; readonly failure?: Failure }> {
  const world = new AWorld({ failing: failing.filter((call) => call !== "escrow") });
  const ended = await world.run(async (bench) => {
    const { lease } = await bench.journal.admit(intent({ operation }), { fresh: true });
    await lease.record({ state: "unknown", attempts: 1, ...progress });
    world.calls.length = 0;
    return work(bench, lease, world);
  });
  return { world, ...ended };
}

describe("a secret in a broken response", () => {
  const kept = ({ world }: { world: AWorld }): OneTimeSecret | undefined => [...world.kept.values()][0];
  it.each<[Entry["operation"], string | null, string, object]>([
    [
      "oauth_client.create",
      null,
      '{"id":"oc_1","client_id":"cid_1","client_secret":"s"',
      {
        kind: "oauth_client",
        id: "oc_1",
        clientId: "cid_1",
        receipt: '{"id":"oc_1","client_id":"cid_1","client_secret":"s"',
      },
    ],
    [
      "oauth_client.create",
      null,
      '{"client_secret":"s"',
      { kind: "oauth_client", id: "", receipt: '{"client_secret":"s"' },
    ],
    [
      "access_key.create",
      null,
      '{"id" : "ak_1","secret":"s"',
      { kind: "access_key", id: "ak_1", receipt: '{"id":"ak_1","secret":"s"}' },
    ],
    ["access_key.create", null, '{"secret":"s"', { kind: "access_key", id: "", receipt: '{"secret":"s"}' }],
    [
      "access_key.rotate",
      "old",
      '{"id":"ak_1","secret":"s"',
      { kind: "access_key", id: "old", receipt: '{"id":"old","secret":"s"}' },
    ],
  ])("of %s with %s is kept: %s", async (operation, resource_id, text, secret) => {
    const ended = await at({ operation, resource_id }, (bench, lease) =>
      keepSalvaged({ bench, lease }, { secret: "s", text }),
    );
    expect(ended.value).toEqual({ id: (secret as OneTimeSecret).id });
    expect(kept(ended)).toEqual({ secret: "s", ...secret });
  });

  it("is not kept if there is no space", async () => {
    const text = '{"id":"oc_1","client_secret":"s"';
    const { value } = await at({}, (bench, lease) => keepSalvaged({ bench, lease }, { secret: "s", text }), ["keep"]);
    expect(value).toEqual({ id: "oc_1", refusal: "no keep" });
  });
});

describe("space for a secret", () => {
  const file = (path: string): SingleRecord => ({ kind: "file", path, as: "raw" });
  const to = (record: DestinationRecord, isFull = false): Destination => ({
    isStdout: false,
    record,
    check: async () => record,
    prepare: async () => {
      if (isFull) throw new Failure("failed", "It is full.");
      return record;
    },
    deliver: async () => {},
    release: async () => {},
  });
  it.each<[string, DestinationRecord | null, Destination, readonly unknown[], readonly string[]]>([
    ["at the first place", null, to(file("/a")), [file("/a")], []],
    ["at the same place", file("/a"), to(file("/a")), [], []],
    ["at another file", file("/a"), to(file("/b")), [file("/b")], ["/a"]],
    ["at standard output after a file", file("/a"), to({ kind: "stdout" }), [{ kind: "stdout" }], ["/a"]],
    ["at standard output after a command", { kind: "command", mark: "m" }, to({ kind: "stdout" }), [], []],
    ["at a full one, as the first", null, to(file("/a"), true), [file("/a")], []],
    ["at a full one, after a file", file("/a"), to(file("/b"), true), [file("/b")], ["/a"]],
    [
      "at one that refuses the secret, after a file",
      file("/a"),
      to({ kind: "stdout" }, true),
      [{ kind: "stdout" }, file("/a")],
      ["/a"],
    ],
  ])(
    "%s is recorded before it is created, and the space at the earlier place is freed",
    async (_what, before, destination, records, removed) => {
      for (const isKept of [undefined, true, false]) {
        const seen: unknown[] = [];
        const given: unknown[] = [];
        await at({ destination: before }, async (bench, lease) => {
          const watched: EntryLease = {
            ...lease,
            get entry() {
              return lease.entry;
            },
            record: async (change) => (seen.push(change.destination), lease.record(change)),
          };
          const secrets = {
            ...bench.secrets,
            removeReserve: async (record: SingleRecord, entry: string, how: unknown) =>
              void given.push([(record as { path?: string }).path, entry === lease.entry.id, how]),
          };
          await reserveDestination({ ...bench, secrets }, watched, {
            destination,
            ...(isKept === undefined ? {} : { isKept }),
          });
        });
        expect(seen).toEqual(records);
        expect(given).toEqual(removed.map((path) => [path, true, { isKept: isKept ?? false }]));
      }
    },
  );
});

describe("a key", () => {
  const longest = 255;
  it.each([
    [0, true],
    [longest - 13, true],
    [longest - 12, false],
    [longest, false],
  ])("with a name of %i characters has space for a marker: %s", (length, has) => {
    expect(leavesSpaceForMark("\u{1F511}".repeat(length))).toBe(has);
    const mark = `-${"0".repeat(12)}`;
    const name = "n".repeat(length);
    if (has) expect(markedName(name, mark)).toBe(`${name}${mark}`);
    else
      expect(() => markedName(name, mark)).toThrow(
        expect.objectContaining({
          kind: "usage",
          message: `With its mark the name has ${length + 13} characters: at most 255 are allowed.`,
          details: { hint: "Shorten the name to 242 characters, or leave --marker out." },
        }),
      );
  });

  it.each([
    ['{"id":"k","secret":"s"}', { id: "k" }, '{"id":"k","secret":"s"}'],
    ['{"secret":"s","x":1}', { id: "k" }, '{"id":"k","secret":"s","x":1}'],
    ['{"secret":"s"}', {}, '{"secret":"s"}'],
    ['{"key":{"id":"k"},"secret":"t"}', { id: "k" }, '{"id":"k","secret":"s"}'],
    ['{"data":{"id":"k","secret":"s"}}', { id: "k", name: "n" }, '{"id":"k","name":"n","secret":"s"}'],
    ["null", { id: "k" }, '{"id":"k","secret":"s"}'],
    ['"s"', { id: "k" }, '{"id":"k","secret":"s"}'],
  ])("returned as %s of %j is shown as %s", (text, key, receipt) => {
    expect(keyReceipt({ text, key, secret: "s" })).toBe(receipt);
  });

  it.each([
    ["as the profile does", {}, { kind: "endpoint", url: "https://now" }, true],
    [
      "as the profile does, whatever the entry says",
      { exchange: { kind: "endpoint", url: "https://then" } },
      { kind: "endpoint", url: "https://now" },
      true,
    ],
    [
      "as the profile does, if the entry has no token source",
      { exchange: null },
      { kind: "endpoint", url: "https://now" },
      true,
    ],
    ["not at all without a token source", { exchange: { kind: "endpoint", url: "https://then" } }, null, false],
    ["not at all if the command is missing", {}, { kind: "command" }, false],
  ] as const)("is proven %s", async (_what, detail, way, is) => {
    const exchanges: unknown[] = [];
    const { value } = await at({}, async (given) => {
      const bench = {
        ...given,
        account: {
          ...given.account,
          keyExchange: way,
          exchangeKey: async (secret: string, how: { kind: string }) => {
            exchanges.push([secret, how]);
            return how.kind === "command"
              ? undefined
              : ({ kind: "answered", status: 200, value: undefined, body: Buffer.alloc(0) } as const);
          },
        },
      };
      return proveSecret(bench, entryOf({ detail }), "s");
    });
    expect([value, exchanges]).toEqual([is, way === null ? [] : [["s", way]]]);
  });
});

describe("the receipt of an existing client", () => {
  it.each([
    ["shown", undefined],
    ["not shown", { refused: 403 }],
  ] as const)("is the service's, or built from known fields: %s", async (_what, fate) => {
    const { value, world } = await at({}, async (bench, _lease, world) => {
      world.account.addExisting("client", "oc_7");
      if (fate) world.account.fates.get = [fate];
      return clientReceipt(bench, entryOf({ resource_id: "oc_7" }));
    });
    const { id, client_secret } = JSON.parse(value!) as { id: string; client_secret: unknown };
    expect([id, client_secret, world.account.requests]).toEqual(["oc_7", null, ["get oc_7"]]);
    expect(value!.includes("service_account_id")).toBe(fate === undefined);
  });
});
