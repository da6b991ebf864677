// What is said of a secret that was not delivered, in every way that it can be, and what is kept of one that came in a broken
// response.
import { describe, expect, it } from "vitest";
import {
  assertAsAsked,
  claimStep,
  deliverSecret,
  keepStray,
  reserveDestination,
  secretLost,
  undelivered,
} from "../../../src/operations/secret-delivery.ts";
import { originOf } from "../../../src/operations/acts/overwrite.ts";
import { isPartlyDelivered, reserveBeforeRevocation } from "../../../src/operations/delivery-recovery.ts";
import { keyReceipt, leavesSpaceForMark, markedName, proveSecret } from "../../../src/operations/key.ts";
import { clientReceipt } from "../../../src/operations/client.ts";
import type { Workbench } from "../../../src/operations/workbench.ts";
import { Failure } from "../../../src/errors.ts";
import type { Entry, EntryProgress } from "../../../src/journal/entry.ts";
import type { EntryLease } from "../../../src/journal/journal.ts";
import type { Destination, DestinationRecord, OneTimeSecret, SingleRecord } from "../../../src/secrets/destination.ts";
import { AWorld, type DestinationKind } from "./a-world.ts";
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
const said = ({ kind, message, details }: Failure): unknown => ({ kind, message, ...details });
const here = { where: "profile p (us)", request: "POST /v1/x", entry: "e1" };

describe("a lost secret", () => {
  it.each<[string, Partial<Entry>, Parameters<typeof secretLost>[1], object]>([
    [
      "of a client",
      {},
      {},
      {
        message: "The client r1 exists, and its one-time secret is lost.",
        meaning: "The API never shows a secret twice. To fix it: revoke this client and create another.",
      },
    ],
    [
      "of a key",
      { operation: "access_key.create" },
      {},
      {
        message: "The key r1 exists, and its one-time secret is lost.",
        meaning: "The API never shows a secret twice. To fix it: revoke this key and create another.",
      },
    ],
    [
      "of a key that was rotated",
      { operation: "access_key.rotate" },
      {},
      {
        message: "The key r1 exists, and its one-time secret is lost.",
        meaning: "The API never shows a secret twice. To fix it: rotate the key again.",
      },
    ],
    [
      "of one without an id",
      { resource_id: null },
      {},
      { message: "The client  exists, and its one-time secret is lost." },
    ],
    ["whose response is known", {}, { requestId: "req_9" }, { problem: { request_id: "req_9" } }],
    [
      "whose key others may have sent",
      { detail: {} },
      { requestId: "req_9" },
      {
        message: "The client r1 exists, and its secret is not here.",
        meaning:
          "Its idempotency key was given by hand: if it was created elsewhere with the same key, its secret may be in use. --yes alone does not revoke it.",
        problem: { request_id: "req_9" },
      },
    ],
    [
      "whose key others may have sent, without an id",
      { detail: {}, resource_id: null },
      {},
      { message: "The client  exists, and its secret is not here." },
    ],
    [
      "that may be kept in another place",
      { detail: { own_key: true, attempted_at: ["here:/s", "there:/s"] } },
      { here: "here:/s" },
      {
        message: "Its secret is not here. It was requested in there:/s too, and may be kept there.",
        meaning: "--yes alone does not revoke it. Look there first: integ journal claim e1",
      },
    ],
    [
      "that was requested here alone",
      { detail: { own_key: true, attempted_at: ["here:/s"] } },
      { here: "here:/s" },
      { message: "The client r1 exists, and its one-time secret is lost." },
    ],
  ])("%s", (_what, changes, about, words) => {
    expect(said(secretLost(entryOf(changes), about))).toMatchObject({
      kind: "secret_lost",
      ...here,
      nextCommand: expect.stringContaining("integ journal recover e1"),
      ...words,
    });
  });
});

describe("an undelivered secret", () => {
  const file: SingleRecord = { kind: "file", path: "/secret", as: "raw" };
  const several = (...states: ("pending" | "delivered")[]): DestinationRecord => ({
    kind: "several",
    places: states.map((state, mark) => ({ state, at: { kind: "command", mark: String(mark) } })),
  });
  it.each<[string, Partial<Entry>, object]>([
    ["without a place", {}, { nextCommand: "integ journal claim e1" }],
    ["for a file", { destination: file }, { nextCommand: "integ journal claim e1" }],
    [
      "for a profile, of a client",
      { destination: { kind: "profile", name: "p p", profileId: "1" } },
      { nextCommand: "integ journal claim e1" },
    ],
    [
      "for a profile, of a key",
      { destination: { kind: "profile", name: "p p", profileId: "1" }, operation: "access_key.create" },
      { nextCommand: "integ journal claim e1 --secret-profile 'p p'" },
    ],
    ["for a command", { destination: { kind: "command", mark: "m" } }, { nextCommand: "integ journal claim e1" }],
    [
      "for two commands",
      { destination: several("pending", "pending") },
      { hint: "Claim the entry e1 and pass --secret-command 2 times again: commands are not stored." },
    ],
    [
      "for one of two commands",
      { destination: several("delivered", "pending") },
      { hint: "Claim the entry e1 and pass --secret-command again: commands are not stored." },
    ],
    ["for commands that have it", { destination: several("delivered") }, { nextCommand: "integ journal claim e1" }],
  ])("%s, is claimed", (_what, changes, step) => {
    expect(claimStep(entryOf(changes))).toEqual(step);
  });

  const untilClaimed = "kept on this machine, readable by you alone, until you claim it.";
  it.each<[string, Partial<Entry>, unknown, boolean, object]>([
    [
      "a client",
      {},
      "the disk is full.",
      false,
      {
        kind: "undelivered",
        message: "The client was created, but its secret could not be delivered: the disk is full.",
        meaning: `The secret is ${untilClaimed}`,
      },
    ],
    [
      "a key",
      { operation: "access_key.rotate" },
      new Failure("failed", "The disk is full."),
      false,
      {
        kind: "undelivered",
        message: "The service sent the secret, but it could not be delivered. The disk is full.",
        meaning: `It is ${untilClaimed}`,
      },
    ],
    [
      "one that met another change",
      {},
      new Failure("conflict", "It changed."),
      true,
      {
        kind: "conflict",
        meaning:
          "The secret is encrypted in the team's journal: any machine with an identity of its recipients can claim it.",
      },
    ],
  ])("of %s, is named", (_what, changes, because, isEscrowed, words) => {
    const failure = undelivered(entryOf(changes), because, { isEscrowed: (id) => isEscrowed && id === "e1" });
    expect(said(failure)).toMatchObject({ ...here, ...words });
  });
});

describe("an entry", () => {
  it.each([
    ["oauth_client.create", "client"],
    ["access_key.rotate", "key"],
  ] as const)("of %s whose %s differs is not what was asked for", (operation, noun) => {
    const entry = entryOf({ operation, state: "unusable", detail: { differs: "it has more scopes" } });
    expect(() => assertAsAsked(entry)).toThrow(`The ${noun} r1 differs from the request: it has more scopes.`);
    for (const other of [
      { ...entry, state: "done" as const },
      { ...entry, detail: {} },
    ])
      expect(() => assertAsAsked(other)).not.toThrow();
  });

  it("says whose its secret is", () => {
    const known = { entry: "e1", profile: "p", region: "us" };
    expect(originOf(entryOf({}))).toEqual({ ...known, serviceAccount: "sa_1" });
    expect(originOf(entryOf({ operation: "access_key.create", request_text: "no text" }))).toEqual(known);
  });

  it.each<[DestinationRecord | null, boolean]>([
    [null, false],
    [{ kind: "stdout" }, false],
    [{ kind: "several", places: [{ state: "pending", at: { kind: "stdout" } }] }, false],
    [
      {
        kind: "several",
        places: [
          { state: "pending", at: { kind: "stdout" } },
          { state: "delivered", at: { kind: "stdout" } },
        ],
      },
      true,
    ],
  ])("with %j is delivered in part: %s", (destination, is) => {
    expect(isPartlyDelivered(entryOf({ destination }))).toBe(is);
  });
});

/** Work on an entry of a world of its own. */
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

describe("a secret in a response that broke", () => {
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
      keepStray({ bench, lease }, { secret: "s", text }),
    );
    expect(ended.value).toEqual({ id: (secret as OneTimeSecret).id });
    expect(kept(ended)).toEqual({ secret: "s", ...secret });
  });

  it("is not kept where there is no space", async () => {
    const text = '{"id":"oc_1","client_secret":"s"';
    const { value } = await at({}, (bench, lease) => keepStray({ bench, lease }, { secret: "s", text }), ["keep"]);
    expect(value).toEqual({ id: "oc_1", refusal: "no keep" });
  });
});

describe("a secret in hand", () => {
  const client: OneTimeSecret = { secret: "s", kind: "oauth_client", id: "oc_1", clientId: "c", receipt: "{}" };
  const key: OneTimeSecret = { secret: "s", kind: "access_key", id: "ak_1", receipt: "{}" };
  interface Row {
    readonly secret: OneTimeSecret;
    readonly to?: DestinationKind;
    readonly failing?: readonly string[];
    readonly escrow?: "taken" | "fails";
    readonly isKept?: boolean;
    readonly isTeam?: boolean;
  }
  const rows: readonly (readonly [string, Row, unknown, string, readonly string[]])[] = [
    ["a client, to a file", { secret: client, to: "file" }, "done", "done", []],
    ["a client, to standard output", { secret: client, to: "stdout" }, "done", "done", []],
    ["a client of a team, to a file", { secret: client, to: "file", isTeam: true }, "done", "done", []],
    ["a key, to a file", { secret: key, to: "file" }, "done", "done", []],
    [
      "a client that is not taken",
      { secret: client, to: "file", failing: ["deliver"] },
      "undelivered",
      "undelivered",
      [],
    ],
    [
      "a client that was kept before",
      { secret: client, to: "file", isKept: true, failing: ["deliver"] },
      "undelivered",
      "undelivered",
      [],
    ],
    [
      "a client that is neither taken nor kept",
      { secret: client, to: "stdout", failing: ["deliver", "keep"] },
      "The secret could neither be delivered (no deliver) nor kept (no keep).",
      "secret_lost",
      ["No copy of the secret could be kept before its delivery: no keep"],
    ],
    [
      "a key that is neither taken nor kept",
      { secret: key, failing: ["deliver", "keep"] },
      "The secret could neither be kept nor delivered: no deliver",
      "secret_lost",
      ["No copy of the secret could be kept before its delivery: no keep"],
    ],
    [
      "a client that is in the team's journal alone",
      { secret: client, to: "stdout", failing: ["deliver", "keep"], escrow: "taken" },
      "undelivered",
      "undelivered",
      ["No copy of the secret could be kept before its delivery: no keep"],
    ],
    [
      "a client that the team's journal does not take",
      { secret: client, to: "file", escrow: "fails" },
      "done",
      "done",
      ["The secret could not be encrypted into the team's journal: no escrow"],
    ],
    [
      "a key of the team's journal, not taken",
      { secret: key, failing: ["deliver"], escrow: "taken" },
      "undelivered",
      "undelivered",
      [],
    ],
  ];
  it.each(rows)("%s", async (_what, row, end, state, told) => {
    const { secret, to = "file", failing = [], escrow, isKept = false, isTeam = false } = row;
    const operation = secret.kind === "access_key" ? "access_key.create" : "oauth_client.create";
    const { world, kind, failure } = await at(
      { operation },
      async (given, lease, world) => {
        const bench: Workbench = {
          ...given,
          journal: { ...given.journal, isShared: isTeam },
          secrets: {
            ...given.secrets,
            escrow: async () => {
              if (escrow === "fails") throw new Failure("failed", "no escrow");
              return escrow === "taken";
            },
          },
        };
        if (isKept) world.kept.set(lease.entry.id, secret);
        const destination = world.destination(to);
        await lease.record({ destination: { ...(await destination.prepare("w")) } });
        world.calls.length = 0;
        await deliverSecret({ bench, lease, destination }, secret, {
          learned: { resource_id: secret.id },
          requestId: "req_9",
          isKept,
        });
      },
      failing,
    );
    expect([kind === "secret_lost" ? failure?.message : kind, world.entries[0]!.state, world.told]).toEqual([
      end,
      state,
      told,
    ]);
    if (failure) expect(failure.details.problem?.request_id).toBe("req_9");
    const keeps = world.calls.filter((call) => call === "keep").length;
    const needsCopy = secret.kind === "access_key" || isTeam || to === "stdout";
    const again = failing.includes("keep") || (failing.includes("deliver") && !needsCopy && !isKept) ? 1 : 0;
    expect(keeps).toBe((isKept ? 0 : needsCopy ? 1 : 0) + (isKept ? 0 : again));
    expect(world.entries[0]!.resource_id).toBe(secret.id);
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
    ["at one that is full, after none", null, to(file("/a"), true), [file("/a")], []],
    ["at one that is full, after a file", file("/a"), to(file("/b"), true), [file("/b")], ["/a"]],
    [
      "at one that takes nothing, after a file",
      file("/a"),
      to({ kind: "stdout" }, true),
      [{ kind: "stdout" }, file("/a")],
      ["/a"],
    ],
  ])(
    "%s is remembered before it is made, and what is left is given back",
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

  it.each([
    [0, "refused"],
    [1, "unknown"],
  ])(
    "that is not there before something is revoked settles a replacement with %i attempts as %s",
    async (attempts, state) => {
      const { world, kind } = await at(
        { attempts },
        (bench, lease, world) => reserveBeforeRevocation(bench, lease, world.destination("file")),
        ["prepare"],
      );
      expect([kind, world.entries[0]!.state]).toEqual(["failed", state]);
      expect(world.calls).toContain("release");
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
  ])("with a name of %i characters has space for a mark: %s", (length, has) => {
    expect(leavesSpaceForMark("\u{1F511}".repeat(length))).toBe(has);
    const mark = `-${"0".repeat(12)}`;
    const name = "n".repeat(length);
    if (has) expect(markedName(name, mark)).toBe(`${name}${mark}`);
    else
      expect(() => markedName(name, mark)).toThrow(
        expect.objectContaining({
          kind: "usage",
          message: `With its mark the name has ${length + 13} characters: at most 255 are allowed.`,
          details: { hint: "Shorten the name to 242 characters, or leave --name-marker out." },
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
  ])("that comes as %s of %j is shown as %s", (text, key, receipt) => {
    expect(keyReceipt({ text, key, secret: "s" })).toBe(receipt);
  });

  it.each([
    ["as the profile does", {}, { kind: "endpoint", url: "https://now" }, true],
    [
      "as its rotation began to",
      { exchange: { kind: "endpoint", url: "https://then" } },
      { kind: "endpoint", url: "https://then" },
      true,
    ],
    ["not at all, if the rotation knew no way", { exchange: null }, undefined, false],
    ["not at all, if the command is gone", { exchange: { kind: "command" } }, { kind: "command" }, false],
  ] as const)("is proven %s", async (_what, detail, way, is) => {
    const asked: unknown[] = [];
    const { value } = await at({}, async (given) => {
      const bench = {
        ...given,
        account: {
          ...given.account,
          keyExchange: { kind: "endpoint", url: "https://now" } as const,
          exchangeKey: async (secret: string, how: { kind: string }) => {
            asked.push([secret, how]);
            return how.kind === "command"
              ? undefined
              : ({ kind: "answered", status: 200, value: undefined, body: Buffer.alloc(0) } as const);
          },
        },
      };
      return proveSecret(bench, entryOf({ detail }), "s");
    });
    expect([value, asked]).toEqual([is, way === undefined ? [] : [["s", way]]]);
  });
});

describe("the receipt of a client from before", () => {
  it.each([
    ["shown", undefined],
    ["not shown", { refused: 403 }],
  ] as const)("is what the service shows, or what is known: %s", async (_what, fate) => {
    const { value, world } = await at({}, async (bench, _lease, world) => {
      world.account.has("client", "oc_7");
      if (fate) world.account.fates.get = [fate];
      return clientReceipt(bench, entryOf({ resource_id: "oc_7" }));
    });
    const { id, client_secret } = JSON.parse(value!) as { id: string; client_secret: unknown };
    expect([id, client_secret, world.account.requests]).toEqual(["oc_7", null, ["get oc_7"]]);
    expect(value!.includes("service_account_id")).toBe(fate === undefined);
  });
});
