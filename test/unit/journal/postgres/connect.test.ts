import { describe, expect, it, vi } from "vitest";
import { Failure } from "../../../../src/errors.ts";
import { readAddress } from "../../../../src/journal/postgres/address.ts";
import { connect, type Server } from "../../../../src/journal/postgres/connect.ts";
import { nothingSent } from "../../../../src/journal/store.ts";
import { LostConnection, serverErrorOf } from "../../../../src/journal/postgres/failures.ts";
import { stopTime } from "../../../support/stopped-time.ts";
import { type Answer, AServer } from "./a-server.ts";

function connectTo(hosts: string, query = "", env: Readonly<Record<string, string>> = {}) {
  return connect(readAddress(`postgresql://${hosts}/journal?${query}`, { env, user: "ada" }));
}

async function thrownBy(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => Promise.reject(new Error("no error: it is connected")),
    (error: unknown) => error,
  );
}

const fine: Server = { isReadOnly: false, encoding: "UTF8" };
const refused = "no server accepts connections there (connection refused)";
const nobody = "127.0.0.1:1";

describe("a server that accepts a connection", () => {
  it.each<Server>([fine, { isReadOnly: true, encoding: "UTF8" }, { ...fine, encoding: "LATIN1" }])(
    "describes itself: %j",
    async (about) => {
      let now = 0;
      // At the second reading 1.6 of the 4.5 seconds are left, so a failure would be reported soon.
      const clock = vi.spyOn(performance, "now").mockImplementation(() => (now = now === 0 ? 1 : 2901));
      const server = await AServer.start({ about });
      const { server: found } = await connectTo(server.host).finally(() => clock.mockRestore());
      expect(found).toEqual(about);
    },
  );

  it.each([
    ["", {}, { user: "ada", database: "journal", application_name: "integ" }],
    ["user=bob&application_name=ci", {}, { user: "bob", database: "journal", application_name: "ci" }],
    ["", { PGUSER: "eve", PGAPPNAME: "job" }, { user: "eve", database: "journal", application_name: "job" }],
  ])("receives the client's names with %j and %j", async (query, env, said) => {
    const server = await AServer.start();
    await connectTo(server.host, query, env);
    expect(server.startups).toEqual([{ ...said, client_encoding: "UTF8" }]);
  });

  it("gets the password if it needs one; without one the connection fails", async () => {
    const server = await AServer.start({ wantsPassword: true });
    await connectTo(server.host, "", { PGPASSWORD: "of-a-test" });
    expect(server.passwords).toEqual(["of-a-test"]);
    const failure = await thrownBy(connectTo(`bob@${server.host}`));
    expect(failure).toEqual(
      new Failure("usage", "The journal's server requires a password for the role bob, and none was found.", {
        meaning: nothingSent,
        hint: "Set PGPASSWORD, or add a line to ~/.pgpass.",
      }),
    );
    expect(server.passwords).toHaveLength(1);
  });

  it("sees the connection close after a disconnect", async () => {
    const server = await AServer.start();
    (await connectTo(server.host)).disconnect();
    await server.allClosed();
  });
});

const primary: Partial<Server> = {};
const standby: Partial<Server> = { isReadOnly: true };
const frozen: Partial<Server> = { isReadOnly: true };

describe("among several servers", () => {
  it.each<[kind: string, servers: Partial<Server>[], found: number]>([
    ["any", [standby, primary], 0],
    ["read-write", [standby, frozen, primary], 2],
  ])("the first that is %s of %j is used, and the other connections are closed", async (kind, abouts, found) => {
    const servers = await Promise.all(abouts.map((about) => AServer.start({ about })));
    const { client } = await connectTo(servers.map(({ host }) => host).join(), `target_session_attrs=${kind}`);
    for (const [index, server] of servers.entries()) if (index !== found) await server.allClosed();
    expect((await client.query("SELECT 1")).rows).toEqual([]);
    expect(servers.map(({ statements }) => statements.length)).toEqual(abouts.map((_, at) => Number(at === found)));
  });

  it("the next is tried after a failed connection, but not after a refusal", async () => {
    const server = await AServer.start();
    expect((await connectTo(`${nobody},${server.host}`)).server).toEqual(fine);
    const closed = await AServer.start({ greets: () => ({ refuses: "28P01" }) });
    const error = await thrownBy(connectTo(`${closed.host},${server.host}`));
    expect([serverErrorOf(error)?.code, server.startups.length]).toEqual(["28P01", 1]);
    await closed.allClosed();
  });

  it("each is listed with its reason", async () => {
    const time = stopTime();
    const server = await AServer.start({ about: standby });
    const one = await thrownBy(connectTo(server.host, "target_session_attrs=read-write"));
    expect(one).toEqual(new LostConnection(`${server.host} is read-only`));
    const both = await thrownBy(connectTo(`${server.host},${nobody}`));
    expect(both).toEqual(new LostConnection(`${server.host} is read-only; ${nobody}: ${refused} (none is read-write)`));
    const any = await thrownBy(connectTo(`${nobody},localhost:1`, "target_session_attrs=any"));
    expect(any).toEqual(new LostConnection(`${nobody}: ${refused}; localhost:1: ${refused}`));
    expect(await thrownBy(connectTo(nobody))).toEqual(new LostConnection(refused));
    expect(time.waits).toEqual([]);
  });
});

describe("a server that cannot accept a connection now", () => {
  const busy: Answer = { refuses: "53300" };
  const starting: Answer = { refuses: "57P03" };

  it.each([
    [0, [25, 50, 100, 200, 200]],
    [0.5, [50, 100, 200, 400, 400]],
    [0.75, [62.5, 125, 250, 500, 500]],
  ])("is tried again after random pauses: chance %d", async (chance, waits) => {
    const time = stopTime();
    const random = vi.spyOn(Math, "random").mockReturnValue(chance);
    const answers = [busy, starting, busy, starting, busy];
    const greets = () => answers.shift() ?? [{ ...fine }];
    const server = await AServer.start({ greets });
    await connectTo(server.host).finally(() => random.mockRestore());
    expect([time.waits, server.startups.length]).toEqual([waits, 6]);
  });

  it.each<[string, number, string]>([
    ["one", 1, ""],
    ["each", 2, " (none is read-write)"],
  ])("is tried again for four and a half seconds; %s gives the same result then", async (_what, count, none) => {
    const time = stopTime();
    const random = vi.spyOn(Math, "random").mockReturnValue(0.5);
    const server = await AServer.start({ greets: () => starting });
    const hosts = Array.from({ length: count }, () => server.host).join();
    const error = await thrownBy(connectTo(hosts)).finally(() => random.mockRestore());
    expect(time.waits).toEqual([50, 100, 200, ...Array.from({ length: 10 }, () => 400)]);
    expect(server.startups).toHaveLength(14 * count);
    if (count === 1) expect(serverErrorOf(error)?.code).toBe("57P03");
    else expect(error).toEqual(new LostConnection(`${server.host}: refused${none}`));
    await server.allClosed();
  });

  it.each([
    [4450, [50], "refused"],
    [4451, [], "refused"],
  ])("that takes %i ms to refuse is tried again after %j", async (ms, waits, message) => {
    const time = stopTime();
    const random = vi.spyOn(Math, "random").mockReturnValue(0.5);
    const greets = (): Answer => {
      time.pass(ms);
      return busy;
    };
    const server = await AServer.start({ greets });
    const error = await thrownBy(connectTo(server.host)).finally(() => random.mockRestore());
    expect((error as Error).message).toBe(message);
    expect([time.waits, server.startups.length]).toEqual([waits, 1]);
  });

  it("that cannot be reached is not tried again", async () => {
    const time = stopTime();
    expect(await thrownBy(connectTo(nobody))).toBeInstanceOf(LostConnection);
    expect(time.waits).toEqual([]);
  });
});

it("a connection leaves the last part of its time to the last server", async () => {
  const time = stopTime();
  const slow = await AServer.start({
    greets: () => {
      time.pass(4499);
      return { refuses: "57P03" };
    },
  });
  const silent = await AServer.start({ greets: () => "silence" });
  const error = await thrownBy(connectTo(`${slow.host},${silent.host}`));
  expect(error).toEqual(new LostConnection(`${slow.host}: refused; no response within 1 s (none is read-write)`));
  await silent.allClosed();
  expect(time.waits).toEqual([]);
});
