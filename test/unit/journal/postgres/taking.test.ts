// How the lease of an entry is taken, what of an earlier one is waited for, and how long.
import { describe, expect, it } from "vitest";
import { identify } from "../../../../src/disk/lock-owner.ts";
import { Failure } from "../../../../src/errors.ts";
import type { Row } from "../../../../src/journal/postgres/session.ts";
import { Busy, takeLease, waitForHolder } from "../../../../src/journal/postgres/taking.ts";
import { stopTime } from "../../../support/stopped-time.ts";
import { ada } from "../intent.ts";
import { anEntry, ASession, entryRow, heldRow, partsOf, type Responses } from "./a-session.ts";

const entry = anEntry();
const until = "2026-11-21T02:01:00.000Z";

async function taken(responses: Responses) {
  const server = new ASession(responses);
  return { server, lease: await takeLease(partsOf(server), entry.id) };
}

describe("a lease", () => {
  it.each<[quietMs: unknown, quiet: string | undefined]>([
    [null, undefined],
    [undefined, undefined],
    [-5, undefined],
    [0, undefined],
    [1, until],
    [5000, until],
  ])("of an entry whose earlier holder may be heard %j ms more is quiet until %s", async (quietMs, quiet) => {
    const time = stopTime();
    const { lease, server } = await taken([[entryRow(entry, { quiet_ms: quietMs, quiet_until: until })]]);
    if (lease instanceof Busy) throw new Error("it is busy");
    expect([lease.entry, lease.quietUntil]).toEqual([entry, quiet]);
    expect(server.asked).toHaveLength(1);
    time.pass(5000);
    expect(lease.quietUntil).toBeUndefined();
  });

  it("is found again by its own mark if the answer was lost", async () => {
    const row = entryRow(entry);
    const { server } = await taken([[row]]);
    const [id, holder, leaseMs] = server.asked[0]!.values;
    const { mark, ...named } = JSON.parse(holder as string) as { readonly mark: string };
    expect([id, leaseMs, named]).toEqual([entry.id, 45_000, { ...ada, process: identify(process.pid) }]);
    const settle = server.settled[0]!;
    const sought: unknown[] = [];
    const found = await settle(async (_, values) => {
      sought.push(values);
      return [row];
    });
    expect([found, sought]).toEqual([[row], [[entry.id, `%${mark}%`]]]);
    expect(await settle(async () => [])).toBeUndefined();
  });

  it.each<[string, Responses, Row | undefined]>([
    ["that another process has", [[], [heldRow()]], heldRow()],
    ["of an entry that is not there", [[], []], undefined],
  ])("%s is busy", async (_what, responses, row) => {
    const { server, lease } = await taken(responses);
    expect(lease).toEqual(new Busy(entry.id, row));
    expect(server.asked.map(({ values }) => values.length)).toEqual([3, 1]);
  });

  describe("of a process of this machine that has ended", () => {
    const own = identify(process.pid);
    const ended = { ...own, pid: 2 ** 22 + 1 };
    const row = heldRow({ holder: JSON.stringify({ user: "bob", host: own.host, process: ended }) });

    it.runIf(own.boot !== null)("is taken, as long as it is still the same one", async () => {
      const after = entryRow(entry, { epoch: "9" });
      const { server, lease } = await taken([[], [row], [after]]);
      if (lease instanceof Busy) throw new Error("it is busy");
      expect(lease.entry).toEqual(entry);
      const [first, , second] = server.asked;
      expect([first!.values.length, second!.values.slice(2)]).toEqual([3, [45_000, "8"]]);
      expect(second!.text).toContain("(epoch = $4)");
      await lease.release();
      expect(server.asked[3]!.values).toEqual([entry.id, "9"]);
    });

    it.runIf(own.boot !== null)("is busy if another took it first", async () => {
      const { lease } = await taken([[], [row], []]);
      expect(lease).toEqual(new Busy(entry.id, row));
    });
  });
});

describe("a holder that runs", () => {
  it.each([
    [0, [], "0"],
    [1, [1], "0"],
    [149, [10, 20, 40, 79], "0.1"],
    [1260, [10, 20, 40, 80, 160, 320, 320, 310], "1.3"],
    [10_000, [10, 20, 40, 80, 160, ...Array.from({ length: 30 }, () => 320), 90], "10"],
  ])("is waited for %i ms, at most a third of a second at a time", async (waitMs, waits, seconds) => {
    const time = stopTime();
    let attempts = 0;
    const attempt = async (): Promise<Busy> => {
      attempts += 1;
      return new Busy(entry.id, heldRow());
    };
    const failure: unknown = await waitForHolder({ waitMs }, attempt).catch((error: unknown) => error);
    expect([time.waits, attempts]).toEqual([waits, waits.length + 1]);
    expect(failure).toBeInstanceOf(Failure);
    const { kind, message, details } = failure as Failure;
    expect([kind, message]).toEqual([
      "outcome_unknown",
      `Journal entry 1rs6y1ys1e is in use by process 4711 (bob on farm) since 2026-11-21T01:59:00.000Z; its lease ends at ${until}; integ waited ${seconds} s.`,
    ]);
    expect(details).toEqual({
      meaning: "Nothing was sent and nothing changed.",
      hint: "Wait for that process, or take the entry from it if it has ended.",
      nextCommand: "integ journal release 1rs6y1ys1e",
      entry: "1rs6y1ys1e",
    });
  });

  it("is not waited for once it has ended", async () => {
    const time = stopTime();
    const came = [new Busy(entry.id, heldRow()), new Busy(entry.id, heldRow()), undefined];
    expect(await waitForHolder({ waitMs: 1000 }, async () => came.shift())).toBeUndefined();
    expect(time.waits).toEqual([10, 20]);
  });
});
