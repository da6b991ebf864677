import { describe, expect, it, vi } from "vitest";
import { Failure } from "../../../../src/errors.ts";
import { readAddress } from "../../../../src/journal/postgres/address.ts";
import { LostConnection, serverErrorOf } from "../../../../src/journal/postgres/failures.ts";
import { nothingSent } from "../../../../src/journal/store.ts";
import { Session, type SessionParts } from "../../../../src/journal/postgres/session.ts";
import { stopTime } from "../../../support/stopped-time.ts";
import { type Answer, AServer, type AServerParts } from "./a-server.ts";

function sessionAt(hosts: string, check: SessionParts["check"] = async () => {}): Session {
  const address = readAddress(`postgresql://ada@${hosts}/journal`, { env: {} });
  return new Session({ address, check });
}

async function thrownBy(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    (value) => Promise.reject(new Error(`no error: ${JSON.stringify(value)}`)),
    (error: unknown) => error,
  );
}

function respondingWith(...answers: readonly Answer[]): AServerParts {
  const left = [...answers];
  return { answers: () => left.shift() ?? [] };
}

const one = [{ one: 1 }];
const never = async (): Promise<undefined> => undefined;

/** The pauses double up to a second, until less than half a second of the ten seconds is left. */
const everyWait = [50, 100, 200, 400, 800, ...Array.from({ length: 8 }, () => 1000)];

describe("a statement", () => {
  it("is sent once, with its values, over the one checked connection", async () => {
    const time = stopTime();
    const server = await AServer.start(respondingWith(one, [{ two: "b" }]));
    const checks: unknown[] = [];
    const session = sessionAt(server.host, async (_, about) => void checks.push(about));
    expect(await session.read("SELECT 1")).toEqual(one);
    expect(await session.write({ text: "UPDATE $1", values: ["a", null], findOutcome: never })).toEqual([{ two: "b" }]);
    expect(server.statements).toEqual([
      { text: "SELECT 1", values: [] },
      { text: "UPDATE $1", values: ["a", null] },
    ]);
    expect([checks, server.startups.length, time.waits]).toEqual([[{ isReadOnly: false, encoding: "UTF8" }], 1, []]);
  });

  it("that the server refuses is not repeated, and the connection stays open", async () => {
    const time = stopTime();
    const server = await AServer.start(respondingWith({ refuses: "42703" }, one));
    const session = sessionAt(server.host);
    expect(serverErrorOf(await thrownBy(session.read("SELECT nothing")))).toEqual({
      code: "42703",
      message: "refused",
    });
    expect(await session.read("SELECT 1")).toEqual(one);
    expect([server.startups.length, time.waits]).toEqual([1, []]);
  });

  it.each<[string, Answer, number]>([
    ["whose connection is lost", "cut", 2],
    ["that a stopping server refuses", { refuses: "57P01" }, 2],
    ["that a starting server refuses", { refuses: "57P03" }, 2],
    ["that conflicts with another transaction", { refuses: "40001" }, 1],
    ["that ends in a deadlock", { refuses: "40P01" }, 1],
  ])("%s is repeated", async (_what, answer, connections) => {
    const time = stopTime();
    const server = await AServer.start(respondingWith(answer, answer, one));
    expect(await sessionAt(server.host).read("SELECT 1")).toEqual(one);
    expect([server.statements.length, time.waits]).toEqual([3, [50, 100]]);
    expect(server.startups).toHaveLength(2 * connections - 1);
  });

  it.each<[string, Answer, object]>([
    ["the connection", "cut", { name: "LostConnection", message: "the connection was lost" }],
    ["the server's own refusal", { refuses: "57P01" }, { code: "57P01" }],
    ["the conflict", { refuses: "40001" }, { code: "40001" }],
  ])("is repeated until the time limit, and %s is the final error", async (_what, answer, error) => {
    const time = stopTime();
    const server = await AServer.start({ answers: () => answer });
    expect(await thrownBy(sessionAt(server.host).read("SELECT 1"))).toMatchObject(error);
    expect(time.waits).toEqual(everyWait);
    expect(server.statements).toHaveLength(everyWait.length + 1);
  });

  it.each([
    [9500, [50]],
    [9501, []],
  ])("whose connection ends after %i ms of ten seconds is repeated after %j", async (ms, waits) => {
    const time = stopTime();
    let tries = 0;
    const server = await AServer.start({
      answers: () => {
        tries += 1;
        if (tries > 1) return one;
        time.pass(ms);
        return "cut";
      },
    });
    const reading = sessionAt(server.host).read("SELECT 1");
    if (waits.length > 0) expect(await reading).toEqual(one);
    else expect(await thrownBy(reading)).toBeInstanceOf(LostConnection);
    expect(time.waits).toEqual(waits);
  });

  it("without a response in the remaining time ends together with its connection", async () => {
    const time = stopTime();
    const server = await AServer.start({
      greets: () => {
        time.pass(4490);
        return [{ read_only: false, standby: false, encoding: "UTF8" }];
      },
      answers: ({ text }) => (text === "CHECK" ? [] : "silence"),
    });
    const session = sessionAt(server.host, async (query) => {
      await query("CHECK");
      time.pass(5490);
    });
    const error = await thrownBy(session.read("SELECT 1"));
    expect(error).toEqual(new LostConnection("no response within 10 s"));
    await server.allClosed();
    expect([server.statements.map(({ text }) => text), time.waits]).toEqual([["CHECK", "SELECT 1"], []]);
  });

  it("to a server that was never reached is not repeated", async () => {
    const time = stopTime();
    const error = await thrownBy(sessionAt("127.0.0.1:1").read("SELECT 1"));
    expect(error).toEqual(new LostConnection("no server accepts connections there (connection refused)"));
    expect(time.waits).toEqual([]);
  });

  it("over a connection whose check fails is not sent: the connection is closed, and the next one is checked", async () => {
    const time = stopTime();
    const server = await AServer.start(respondingWith(one));
    const refused = new Failure("usage", "not this one");
    const refusals = [refused];
    const session = sessionAt(server.host, async () => {
      const why = refusals.pop();
      if (why) throw why;
    });
    expect(await thrownBy(session.read("SELECT 1"))).toBe(refused);
    await server.allClosed();
    expect([server.statements, time.waits]).toEqual([[], []]);
    expect(await session.read("SELECT 1")).toEqual(one);
    expect(server.startups).toHaveLength(2);
  });

  it("after the session was closed uses a new connection", async () => {
    const server = await AServer.start(respondingWith(one, one));
    const session = sessionAt(server.host);
    session.close();
    expect(await session.read("SELECT 1")).toEqual(one);
    session.close();
    await server.allClosed();
    expect(await session.read("SELECT 1")).toEqual(one);
    expect(server.startups).toHaveLength(2);
  });
});

describe("a write with a lost response", () => {
  it.each<[string, Answer[], (readonly object[] | undefined)[], object[], string[]]>([
    ["had taken effect", ["cut"], [one], one, ["WRITE"]],
    ["had not", ["cut", one], [undefined], one, ["WRITE", "WRITE"]],
    ["takes effect meanwhile: nothing is left to do", ["cut", []], [undefined, one], one, ["WRITE", "WRITE"]],
    ["has taken effect: its row is there", ["cut", { refuses: "23505" }], [undefined, one], one, ["WRITE", "WRITE"]],
    ["finds nothing to do, before and after", ["cut", []], [undefined, undefined], [], ["WRITE", "WRITE"]],
    ["is another's", ["cut", []], [[]], [], ["WRITE"]],
  ])("%s", async (_what, answers, found, rows, asked) => {
    const time = stopTime();
    const server = await AServer.start(respondingWith(...answers));
    const settled = [...found];
    const findOutcome = async () => settled.shift() as readonly Record<string, unknown>[] | undefined;
    expect(await sessionAt(server.host).write({ text: "WRITE", values: [], findOutcome })).toEqual(rows);
    expect([server.statements.map(({ text }) => text), settled, time.waits]).toEqual([asked, [], [50]]);
  });

  it("is checked over the new connection", async () => {
    stopTime();
    const server = await AServer.start(respondingWith("cut", one));
    const session = sessionAt(server.host);
    const rows = await session.write({ text: "WRITE", values: [], findOutcome: (query) => query("SEEK") });
    expect([rows, server.statements.map(({ text }) => text)]).toEqual([one, ["WRITE", "SEEK"]]);
  });

  it("is not checked if a response arrived", async () => {
    const server = await AServer.start(respondingWith([], { refuses: "23505" }, { refuses: "42501" }));
    const session = sessionAt(server.host);
    const findOutcome = vi.fn<() => Promise<undefined>>(never);
    expect(await session.write({ text: "WRITE", values: [], findOutcome })).toEqual([]);
    expect(findOutcome).not.toHaveBeenCalled();
    expect(await thrownBy(session.write({ text: "WRITE", values: [], findOutcome }))).toMatchObject({ code: "23505" });
    expect(findOutcome).toHaveBeenCalledOnce();
    expect(await thrownBy(session.write({ text: "WRITE", values: [], findOutcome }))).toMatchObject({ code: "42501" });
    expect(findOutcome).toHaveBeenCalledOnce();
  });
});

describe("a transaction", () => {
  const begin = [
    "BEGIN ISOLATION LEVEL READ COMMITTED",
    "SET LOCAL synchronous_commit = on",
    "SET LOCAL idle_in_transaction_session_timeout = 60000",
  ];

  it("is committed durably, and each of its statements has ten minutes", async () => {
    const server = await AServer.start();
    const session = sessionAt(server.host);
    await session.read("SELECT 0");
    const timer = vi.spyOn(globalThis, "setTimeout");
    const done = await session.transaction(async (query) => [await query("WORK $1", ["a"]), "done"]);
    const limits = timer.mock.calls.map(([, ms]) => ms);
    timer.mockRestore();
    expect(done).toEqual([[], "done"]);
    expect(server.statements).toEqual([
      ...["SELECT 0", ...begin].map((text) => ({ text, values: [] })),
      { text: "WORK $1", values: ["a"] },
      { text: "COMMIT", values: [] },
    ]);
    expect(limits).toEqual(Array.from({ length: 5 }, () => 600_000));
  });

  it("whose work fails is rolled back, and its connection stays open", async () => {
    const server = await AServer.start();
    const session = sessionAt(server.host);
    const failing = session.transaction(() => Promise.reject(new Error("changed its mind")));
    expect(await thrownBy(failing)).toEqual(new Error("changed its mind"));
    expect(server.statements.map(({ text }) => text)).toEqual([...begin, "ROLLBACK"]);
    await session.read("SELECT 1");
    expect(server.startups).toHaveLength(1);
  });

  it("that cannot be rolled back closes its connection", async () => {
    const server = await AServer.start({ answers: ({ text }) => (text === "ROLLBACK" ? { refuses: "25P02" } : []) });
    const session = sessionAt(server.host);
    expect(await thrownBy(session.transaction(() => Promise.reject(new Error("no"))))).toEqual(new Error("no"));
    await server.allClosed();
    await session.read("SELECT 1");
    expect(server.startups).toHaveLength(2);
  });

  it.each<[Answer, object]>([
    ["cut", { name: "LostConnection", message: "the connection was lost", cause: expect.any(Error) }],
    [{ refuses: "57P01" }, { code: "57P01" }],
    [{ refuses: "40001" }, { code: "40001" }],
  ])("that ends with %j is not repeated", async (answer, error) => {
    const time = stopTime();
    const server = await AServer.start({ answers: ({ text }) => (text === "COMMIT" ? answer : []) });
    let runs = 0;
    const ending = sessionAt(server.host).transaction(async () => (runs += 1));
    expect(await thrownBy(ending)).toMatchObject(error);
    expect([runs, time.waits]).toEqual([1, []]);
  });

  it.each([
    ["08P01", "usage"],
    ["57P01", undefined],
  ])("that fails to start with %s reports it", async (code, kind) => {
    const server = await AServer.start({ answers: () => ({ refuses: code }) });
    const error = await thrownBy(sessionAt(server.host).transaction(async () => {}));
    expect(serverErrorOf(kind === undefined ? error : (error as Failure).details.cause)?.code).toBe(code);
    if (kind === undefined) return;
    expect(error).toMatchObject({
      kind,
      message: "The pooler before the server of the journal allows no transactions (pool_mode = statement).",
      details: {
        meaning: nothingSent,
        hint: "Use PgBouncer with pool_mode = transaction or session, or connect to the server itself.",
      },
    });
  });
});
