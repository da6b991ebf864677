// A creation step by step: what stands on disk before the request leaves, in which order a secret goes home, and what is
// left wherever a step fails.
import { describe, expect, it } from "vitest";
import type { SecretAnswer } from "../../../src/api/access-keys.ts";
import type { Attempt } from "../../../src/api/http/attempt.ts";
import { driveKeyCreation, keyCreationIntent, markedName } from "../../../src/changes/access-key-creation.ts";
import { mayHaveArrived, post } from "../../../src/changes/access-key-posting.ts";
import { receiptOf } from "../../../src/changes/access-key-secret.ts";
import type { Workbench } from "../../../src/changes/workbench.ts";
import { Failure, type FailureKind } from "../../../src/errors.ts";
import type { Entry } from "../../../src/journal/entry.ts";
import type { EntryLease } from "../../../src/journal/journal.ts";
import { answered, Bench, type Faults } from "./access-key-bench.ts";

interface Ran {
  readonly desk: Bench;
  readonly entry: Entry;
  readonly kind: FailureKind | "done";
}

async function run(faults: Faults = {}): Promise<Ran> {
  const desk = new Bench(faults);
  const drive = desk.drive();
  let kind: Ran["kind"] = "done";
  try {
    await driveKeyCreation(desk.bench, drive, { destination: desk.destination });
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    kind = error.kind;
  }
  return { desk, entry: drive.entry, kind };
}

const lost: Attempt<SecretAnswer> = { kind: "unknown", reason: "closed", detail: "the connection closed" };
const tooMany: Attempt<SecretAnswer> = { kind: "refused", status: 429, problem: {}, retryAfterSeconds: 7 };
const notSent: Attempt<SecretAnswer> = { kind: "not_sent", reason: "refused", detail: "nobody listens" };

describe("a disk that failed once", () => {
  it("sends nothing more, though the service asked for it again", async () => {
    const answers = [tooMany, answered()];
    const well = await run({ answers });
    expect([well.kind, well.desk.posts]).toEqual(["done", 2]);
    // The second record says that the first request changed nothing.
    const ill = await run({ answers, failing: ["record:2"] });
    expect([ill.kind, ill.desk.posts]).toEqual(["failed", 1]);
  });
});

describe("the order", () => {
  it("place, room and attempt stand before the request; the copy is destroyed after the journal says done", async () => {
    const { desk, entry, kind } = await run();
    expect(kind).toBe("done");
    expect(desk.steps).toEqual([
      "prepare",
      "reserve",
      "record:1",
      "post",
      "keep",
      "deliver",
      "record:2",
      "destroy",
      "release",
    ]);
    expect(entry).toMatchObject({
      state: "done",
      attempts: 1,
      resource_id: "ak_1",
      detail: { in_flight: false, created_by: "user_1" },
    });
    expect(mayHaveArrived(entry)).toBe(false);
  });

  it("what waits is refused for certain: a 429 and an address where nobody listens are tried again, the rest is not", async () => {
    const { desk, kind } = await run({ answers: [tooMany, notSent, answered()] });
    expect([kind, desk.posts]).toEqual(["done", 3]);
    expect(desk.now - Date.parse("2026-11-21T02:00:00.000Z")).toBeGreaterThanOrEqual(7000);
    const { desk: once, entry, kind: ended } = await run({ answers: [tooMany, lost, answered()] });
    expect([ended, once.posts, entry.state]).toEqual(["outcome_unknown", 2, "unknown"]);
  });
});

describe("wherever a step fails", () => {
  it.each(["prepare", "reserve", "record:1"])("%s: nothing is sent", async (step) => {
    const { desk, kind } = await run({ failing: [step] });
    expect([kind, desk.posts]).toEqual(["failed", 0]);
    expect(desk.kept.size).toBe(0);
  });

  it("no copy can be kept: the secret is delivered all the same", async () => {
    const { desk, entry, kind } = await run({ failing: ["keep"] });
    expect([kind, entry.state, desk.delivered.length]).toEqual(["done", "done", 1]);
  });

  it("no delivery: the copy stays, the entry waits for claim", async () => {
    const { desk, entry, kind } = await run({ failing: ["deliver"] });
    expect([kind, entry.state, desk.kept.size]).toEqual(["undelivered", "undelivered", 1]);
  });

  it("neither: the loss is said, with the key that it leaves", async () => {
    const { entry, kind } = await run({ failing: ["keep", "deliver"] });
    expect([kind, entry.state, entry.resource_id]).toEqual(["secret_lost", "secret_lost", "ak_1"]);
  });

  it("the journal cannot say done: the copy stays, so that recovery never takes the key for an orphan", async () => {
    const { desk, entry, kind } = await run({ failing: ["record:2"] });
    expect([kind, desk.delivered.length, desk.kept.size]).toEqual(["done", 1, 1]);
    expect(mayHaveArrived(entry)).toBe(true);
    expect(desk.told.join()).toContain("journal could not be updated");
  });

  it("the copy cannot be destroyed: done, and said", async () => {
    const { desk, kind } = await run({ failing: ["destroy"] });
    expect(kind).toBe("done");
    expect(desk.told.join()).toContain("could not be destroyed");
  });
});

describe("answers", () => {
  it("a secret in an answer that broke off is kept, whatever else is lost", async () => {
    const text = '{"id":"ak_9","secret":"s3cr3t-9","na';
    const { desk, entry, kind } = await run({ answers: [{ ...lost, salvage: { secret: "s3cr3t-9", text } }] });
    expect([kind, entry.state, entry.resource_id]).toEqual(["undelivered", "undelivered", "ak_9"]);
    expect(JSON.parse(desk.kept.get("1abc")!.receipt)).toEqual({ id: "ak_9", secret: "s3cr3t-9" });
  });

  it("a key without a secret is a lost secret, told with its id", async () => {
    const none = answered("") as Extract<Attempt<SecretAnswer>, { kind: "answered" }>;
    const { entry, kind } = await run({ answers: [{ ...none, value: { ...none.value, secret: undefined } }] });
    expect([kind, entry.state, entry.resource_id]).toEqual(["secret_lost", "secret_lost", "ak_1"]);
  });

  it("a time that is spent ends as refused: nothing is left open", async () => {
    const { entry, kind } = await run({ answers: [tooMany], retryForMs: 0 });
    expect([kind, entry.state]).toEqual(["rate_limited", "refused"]);
  });
});

describe("a request after one that may have arrived", () => {
  it("leaves the entry unknown at every moment until it is answered: a crash while it waits forgets nothing", async () => {
    const desk = new Bench({ answers: [tooMany, notSent, tooMany, answered()] });
    const drive = desk.drive();
    const states: string[] = [];
    const watched: EntryLease = {
      ...drive,
      get entry() {
        return drive.entry;
      },
      async record(change) {
        const entry = await drive.record(change);
        states.push(entry.state);
        return entry;
      },
    };
    const send = (): Promise<Attempt<SecretAnswer>> => desk.bench.account.service.accessKeys.create("");
    await post({
      bench: desk.bench,
      drive: watched,
      destination: desk.destination,
      what: "rotate access key",
      send,
      ifUnknown: "",
      before: "unknown",
    });
    expect(states.length).toBeGreaterThan(5);
    expect(new Set(states)).toEqual(new Set(["unknown"]));
  });
});

describe("the intent", () => {
  const account = {
    profile: "p",
    profileId: "i",
    organizationId: null,
    region: "us",
    baseUrl: "x",
    serviceVersion: "v",
  };
  const bench = { account } as unknown as Workbench;

  it("is the same for the same key: scopes as a set, an expiry as it was asked for, the mark left out", () => {
    const of = (scopes: string[], expiresAt: string, mark: string) =>
      keyCreationIntent(bench, { request: { name: "n", scopes, expiresAt }, expiry: "in 1 ms", marked: true }, mark);
    const one = of(["*", "push-ingest:*"], "2027-01-01T00:00:00Z", "-a");
    const other = of(["push-ingest:*", "*", "*"], "2027-01-02T00:00:00Z", "-b");
    expect(one.twin).toBe(other.twin);
    expect(JSON.parse(one.request_text)).toMatchObject({ name: "n-a" });
    expect(keyCreationIntent(bench, { request: { name: "n" }, marked: false }, "").twin).not.toBe(one.twin);
  });

  it("a mark fits within 255 characters or is refused; astral characters count once", () => {
    expect(markedName("🔑".repeat(250), "-1234")).toHaveLength(505);
    expect(() => markedName("x".repeat(251), "-1234")).toThrow(Failure);
  });
});

describe("a receipt", () => {
  it.each([
    [
      "flat, as it came",
      '{"id":"a","secret":"s","n":12345678901234567890}',
      '{"id":"a","secret":"s","n":12345678901234567890}',
    ],
    ["without an id", '{"secret":"s"}', '{"id":"a","secret":"s"}'],
    ["wrapped", '{"key":{"id":"a","secret":"s"}}', '{"id":"a","secret":"s"}'],
  ])("%s", (_name, text, shown) => {
    expect(receiptOf({ text, key: { id: "a" }, secret: "s" })).toBe(shown);
  });
});
