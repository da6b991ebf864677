import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FaultPlan, seededRandom } from "../../../src/sandbox/fault-plan.ts";
import { parseFault } from "../../../src/sandbox/fault.ts";

function errorOf(spec: string): string {
  try {
    parseFault(spec);
  } catch (error) {
    expect(error).toMatchObject({ code: "bad_fault" });
    return (error as Error).message;
  }
  return "nothing was wrong";
}

describe("the fault syntax", () => {
  it("matches exactly the named methods and paths", () => {
    const { matches } = parseFault("GET,DELETE /v1/oauth_clients/* status=500");
    expect(matches("GET", "/v1/oauth_clients/x")).toBe(true);
    expect(matches("DELETE", "/v1/oauth_clients/x/y")).toBe(true);
    expect(matches("POST", "/v1/oauth_clients/x")).toBe(false);
    expect(matches("GET", "/v1/oauth_clients")).toBe(false);
    expect(parseFault("* * latency=1s").matches("PUT", "/anything")).toBe(true);
    expect(parseFault("GET /*.json status=500").matches("GET", "/v1-reference/openapi-v1xjson")).toBe(false);
  });

  it("reads every kind of value", () => {
    const spec =
      'GET /v1/* status=429 retry-after="Sat, 21 Nov 2026 04:08:00 GMT" latency=1.5s probability=0.25 times=3 after=2 ' +
      "cut=wire:17 rate=5/500ms cleanup=2m";
    expect(parseFault(spec).effects).toEqual({
      status: 429,
      "retry-after": "Sat, 21 Nov 2026 04:08:00 GMT",
      latency: 1500,
      probability: 0.25,
      times: 3,
      after: 2,
      cut: { of: "wire", bytes: 17 },
      rate: { capacity: 5, perSecond: 10 },
      cleanup: 120_000,
    });
  });

  it.each([
    ["", "must begin with a method"],
    ["FETCH /v1/* status=500", 'not "FETCH"'],
    ["GET", "must name a path"],
    ["GET v1/entities status=500", "must name a path"],
    ["GET /v1/* boom=1", 'unknown key "boom". Known: times, after, probability, status'],
    ["GET /v1/* status=99", "needs status=<200..599>"],
    ["GET /v1/* status", "needs status=<200..599>"],
    ["GET /v1/* drop=maybe", "needs drop=before|after"],
    ["GET /v1/* probability=2 drop=after", "needs probability=<0..1>"],
    ["GET /v1/* rate=0/1s", "needs rate=<n>/<duration>"],
    ["GET /v1/* redirect=é", "needs redirect=<url>"],
    ["GET /v1/* status=500 status=503", "gives status twice"],
    ["GET /v1/* times=1", "does nothing. Give at least one of: status"],
  ])("reports the error in %j", (spec, sentence) => {
    expect(errorOf(spec)).toContain(sentence);
  });

  it("never crashes on any text", () => {
    const word = fc.oneof(
      fc.string(),
      fc.constantFrom("GET", "/v1/*", "status=500", "times=", "=", '"', "__proto__=1"),
    );
    fc.assert(
      fc.property(fc.array(word, { maxLength: 6 }), (words) => {
        expect(errorOf(words.join(" "))).not.toBe("");
      }),
    );
  });
});

describe("the faults of a request", () => {
  const at = { method: "GET", path: "/v1/entities", credential: "c", now: 0 };
  const plan = (...specs: string[]) => new FaultPlan({ specs, random: seededRandom(1) });
  const statuses = (of: FaultPlan, count: number) => Array.from({ length: count }, () => of.applyTo(at).status ?? 200);

  it("skip, count and end", () => {
    const one = plan("GET /v1/* status=500 after=2 times=3");
    expect(statuses(one, 7)).toEqual([200, 200, 500, 500, 500, 200, 200]);
    expect(one.list()).toEqual([{ fault: "GET /v1/* status=500 after=2 times=3", seen: 7, met: 3 }]);
  });

  it("do not count other requests", () => {
    const one = plan("GET /v1/* status=500 times=1");
    expect(one.applyTo({ ...at, method: "POST" })).toEqual({});
    expect(statuses(one, 2)).toEqual([500, 200]);
  });

  it("are combined; the first of a kind wins", () => {
    expect(plan("GET /v1/* status=500", "* * status=503 latency=1s").applyTo(at)).toMatchObject({
      status: 500,
      latency: 1000,
    });
  });

  it("occur with their probability, identically for the same seed", () => {
    const hits = statuses(plan("GET /v1/* status=500 probability=0.3"), 2000).filter((status) => status === 500).length;
    expect(hits).toBeGreaterThan(500);
    expect(hits).toBeLessThan(700);
    expect(statuses(plan("* * status=500 probability=0.5"), 50)).toEqual(
      statuses(plan("* * status=500 probability=0.5"), 50),
    );
    expect(statuses(plan("* * status=500 probability=0"), 50)).not.toContain(500);
    expect(statuses(plan("* * status=500 probability=1"), 50)).not.toContain(200);
  });

  it("limit each credential separately, with a time to retry", () => {
    const one = plan("* * rate=2/10s");
    expect([one.applyTo(at), one.applyTo(at)]).toEqual(
      [{ rate: { capacity: 2, perSecond: 0.2 } }, { rate: { capacity: 2, perSecond: 0.2 } }].map(() => ({})),
    );
    expect(one.applyTo(at)).toMatchObject({ status: 429, "retry-after": "5" });
    expect(one.applyTo({ ...at, credential: "d" })).toEqual({});
    expect(one.applyTo({ ...at, now: 5000 })).toEqual({});
    expect(one.applyTo({ ...at, now: 5000 })).toMatchObject({ status: 429 });
    expect(plan("* * rate=1/10s retry-after=date times=1").list()).toHaveLength(1);
  });

  it("give a date instead of seconds on request", () => {
    const one = plan("* * rate=1/10s retry-after=date");
    one.applyTo(at);
    expect(one.applyTo(at)).toMatchObject({ status: 429, "retry-after": "date+10" });
  });

  it("can be cleared and added again", () => {
    const one = plan("* * status=500");
    one.clear();
    expect(one.applyTo(at)).toEqual({});
    one.add("* * status=503");
    expect(one.applyTo(at)).toEqual({ status: 503 });
  });
});
