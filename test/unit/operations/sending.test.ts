import { DiskHealth } from "../../../src/disk/disk-health.ts";
import { describe, expect, it } from "vitest";
import type { Attempt } from "../../../src/api/call/attempt.ts";
import {
  assertNoneInFlight,
  delayBeforeNext,
  isRateLimitRefusal,
  waitUntilDue,
  wait,
} from "../../../src/operations/sending.ts";
import { outcomeUnknown, type Workbench } from "../../../src/operations/workbench.ts";
import { send } from "../../../src/operations/acts/send.ts";
import { Failure } from "../../../src/errors.ts";
import { newEntry } from "../../../src/journal/admission.ts";
import type { Entry } from "../../../src/journal/entry.ts";
import type { EntryLease } from "../../../src/journal/journal.ts";
import { shell } from "../../../src/next-step.ts";
import { intent } from "../journal/intent.ts";

const start = Date.parse("2026-11-21T02:00:00.000Z");
const at = (ms: number): string => new Date(start + ms).toISOString();

function entry(changes: Partial<Entry> = {}): Entry {
  return { ...newEntry(intent(), { id: "1rs6y1ys1e", key: "k", at: at(0) }), ...changes };
}

function benchAt({ now = start, elapsed = 0, retryForMs = 60_000, offset = undefined as number | undefined } = {}) {
  const [slept, said] = [[] as number[], [] as string[]];
  const clock = {
    now: () => now,
    elapsed: () => elapsed,
    random: () => 0.5,
    sleep: async (ms: number) => void slept.push(ms),
  };
  const tell = {
    waiting: (label: string, ms: number) => {
      said.push(`${label} ${ms}`);
      return () => void said.push("done");
    },
  };
  const account = { service: { clockOffset: () => offset } };
  return { bench: { clock, tell, account, retryForMs } as unknown as Workbench, slept, said };
}

async function failureOf(work: Promise<unknown>): Promise<Failure> {
  return work.then(
    () => expect.fail("it did not fail"),
    (error: unknown) => error as Failure,
  );
}

describe("the same request is repeated", () => {
  const lasting = ["dns", "tls", "proxy", "redirect", "interrupted", "unsendable"];
  const rows: readonly (readonly [what: string, answer: object, delay: number | null])[] = [
    ["after 429", { kind: "refused", status: 429 }, 250],
    ["not after 403", { kind: "refused", status: 403 }, null],
    ["not after 409", { kind: "refused", status: 409 }, null],
    ["after a cut", { kind: "unknown", reason: "closed" }, 250],
    ["after a refused connection", { kind: "not_sent", reason: "refused" }, 250],
    ...lasting.flatMap((reason) => [
      [`not after ${reason}, sent`, { kind: "unknown", reason }, null] as const,
      [`not after ${reason}, not sent`, { kind: "not_sent", reason }, null] as const,
    ]),
    ["after a name that is missing for a moment", { kind: "not_sent", reason: "dns", temporary: true }, 250],
    ["not after an unknown name", { kind: "not_sent", reason: "dns", temporary: false }, null],
  ];

  it.each(rows)("%s", (_what, answer, delay) => {
    expect(delayBeforeNext(benchAt().bench, answer as Attempt<unknown>, { attempt: 1, startedAt: 0 })).toBe(delay);
  });

  it.each([
    ["until --retry-for is over", 59_750, 250],
    ["and not after", 59_751, null],
  ])("%s", (_what, elapsed, delay) => {
    const answer = { kind: "refused", status: 429 } as Attempt<unknown>;
    const { bench } = benchAt({ elapsed: elapsed + 100 });
    expect(delayBeforeNext(bench, answer, { attempt: 1, startedAt: 100 })).toBe(delay);
  });
});

describe("a request that was too early", () => {
  it.each([
    ["is refused by the service", new Failure("rate_limited", "x"), true],
    ["was sent, as it records", new Failure("rate_limited", "x", { unsent: false }), true],
    ["is not one that a token endpoint delayed", new Failure("rate_limited", "x", { unsent: true }), false],
    ["is not a final refusal", new Failure("auth", "x"), false],
  ])("%s", (_what, failure, isEarly) => {
    expect(isRateLimitRefusal(failure)).toBe(isEarly);
  });

  it("is not sent if its entry is untrusted", async () => {
    const { bench } = benchAt();
    Object.assign(bench, { disk: new DiskHealth() });
    Object.assign(bench.clock, { interruption: new AbortController().signal });
    const kept = entry({ attempts: 1, base_url: bench.account.baseUrl });
    const lease = { entry: kept, isTrusted: async () => false } as unknown as EntryLease;
    const refused = await send(bench, lease, { change: "create client" }).catch((error: unknown) => error as Failure);
    expect(refused).toMatchObject({ kind: "auth" });
    // Recovery alone would fail again, so the next step is `journal trust`.
    const { nextCommand } = outcomeUnknown(kept, refused as Failure).details;
    expect(nextCommand).toBe(`integ journal trust ${kept.id}`);
  });

  it.each([
    ["without a time", undefined, undefined, undefined],
    ["with a time", 7, undefined, at(7000)],
    ["with a fraction of a second", 6.2, undefined, at(7000)],
    ["by the service's clock", 7, 60_000, at(67_000)],
    ["with a time beyond the last date", 1e15, undefined, "+275760-09-13T00:00:00.000Z"],
  ])("is recorded %s", async (_what, retryAfterSeconds, offset, until) => {
    const { bench } = benchAt({ offset });
    const refused = async () => ({ kind: "refused", status: 429, problem: { status: 429 }, retryAfterSeconds });
    Object.assign(bench.clock, {
      finishing: (work: () => unknown) => work(),
      interruption: new AbortController().signal,
    });
    Object.assign(bench.tell, { busy: () => () => {} });
    Object.assign(bench, { disk: new DiskHealth() });
    Object.assign(bench.account.service, { oauthClients: { create: refused } });
    let kept = entry({ detail: { marked: true }, attempts: 1, base_url: bench.account.baseUrl });
    const note = (change: object): void => void (kept = { ...kept, ...change });
    const lease = { entry: kept, note, isTrusted: async () => true } as unknown as EntryLease;
    await send(bench, lease, { change: "create client" });
    expect(kept.detail).toEqual({ marked: true, put_off_until: until });
  });
});

describe("a wait requested by the service", () => {
  const due = (ms: number, changes: Partial<Entry> = {}): Entry =>
    entry({ attempts: 1, detail: { put_off_until: at(ms) }, ...changes });

  it.each([
    ["is waited for", due(60_000), {}, [60_000]],
    ["is over", due(0), {}, []],
    ["was over long ago", due(-5), { now: start + 5 }, []],
    ["is over a moment later", due(1), {}, [1]],
    [
      "also applies to one that may have arrived",
      entry({ detail: { in_flight: true, put_off_until: at(60_000) } }),
      {},
      [60_000],
    ],
    ["without a time does not exist", entry({ attempts: 1 }), {}, []],
    ["is over by the service's clock", due(60_000), { offset: 60_000 }, []],
    ["is longer by the service's clock", due(30_000), { offset: -10_000 }, [40_000]],
    ["uses the recorded clock difference", due(30_000, { clock_offset_ms: 10_000 }), {}, [20_000]],
    ["uses the service's current time", due(30_000, { clock_offset_ms: 10_000 }), { offset: 0 }, [30_000]],
    ["is unknown after the clock was set back", due(60_000), { now: start - 1 }, []],
  ])("%s", async (_what, one, setting, slept) => {
    const at = benchAt(setting);
    await waitUntilDue(at.bench, one);
    expect(at.slept).toEqual(slept);
    expect(at.said).toEqual(slept.flatMap((ms) => [`The service asked for this wait ${ms}`, "done"]));
  });

  it.each([
    [
      "longer than --retry-for",
      60_001,
      {},
      shell`integ journal recover 1rs6y1ys1e ${["--retry-for", "4m"]}`,
      undefined,
    ],
    [
      "of a step of larger work",
      60_001,
      { parent: "1rs0000000" },
      shell`integ journal recover 1rs0000000 ${["--retry-for", "4m"]}`,
      undefined,
    ],
    ["of a day", 86_400_000, {}, shell`integ journal recover 1rs6y1ys1e ${["--retry-for", "1442m"]}`, undefined],
    [
      "of more than a day",
      86_400_001,
      {},
      shell`integ journal recover 1rs6y1ys1e`,
      `Wait until ${at(86_400_001)}, then run the command.`,
    ],
  ])("%s ends the command", async (_what, ms, changes, nextCommand, hint) => {
    const place = benchAt();
    const failure = await failureOf(waitUntilDue(place.bench, due(ms, changes)));
    expect([failure.kind, failure.message]).toEqual(["rate_limited", `The service asked to wait until ${at(ms)}.`]);
    expect(failure.details).toMatchObject({ unsent: true, entry: "1rs6y1ys1e", nextCommand });
    expect(failure.details.hint).toBe(hint);
    expect(place.slept).toEqual([]);
  });

  it("is reported as over even if it was interrupted", async () => {
    const place = benchAt();
    const clock = { ...place.bench.clock, sleep: () => Promise.reject(new Failure("failed", "Interrupted.")) };
    await failureOf(wait({ ...place.bench, clock }, 5, "Waiting"));
    expect(place.said).toEqual(["Waiting 5", "done"]);
  });
});

describe("a request that another process may still send", () => {
  it.each([
    ["does not exist without such a process", { state: "unknown" }, undefined, true],
    ["is unknown", { state: "unknown" }, at(9), false],
    ["was in flight", { detail: { in_flight: true } }, at(9), false],
    ["had a response", { detail: { in_flight: false } }, at(9), true],
    ["was never sent", {}, at(9), true],
  ] as const)("%s", (_what, changes, quietUntil, isQuiet) => {
    const lease = { entry: entry(changes), quietUntil } as EntryLease;
    const refusal = `Another process may still be sending the request of 1rs6y1ys1e, until ${at(9)} at the latest.`;
    if (isQuiet) expect(() => assertNoneInFlight(lease)).not.toThrow();
    else expect(() => assertNoneInFlight(lease)).toThrow(refusal);
  });
});
