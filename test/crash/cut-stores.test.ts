// The connection to a store cut at the same byte of its write each time it is tried, or of the response: what is said is true,
// the old client stays as long as a place is missing, and recovery and a claim bring the secret to each of them once.
import { afterAll, describe, expect, it } from "vitest";
import { type CuttingProxy, cutsOf, startCuttingProxy } from "../support/cutting-proxy.ts";
import { isFull } from "../support/sample.ts";
import { sodiumAbsent } from "../support/sodium.ts";
import { clientScenes, rotateTo } from "./client-scenes.ts";
import { endOf, Findings } from "./harness.ts";
import { storePlaces } from "./store-places.ts";
import { recordFigure } from "../support/figures.mjs";

if (sodiumAbsent) console.warn(`skipped: deliveries to stores, cut: ${sodiumAbsent}`);
const scene = clientScenes();

describe.skipIf(sodiumAbsent !== undefined).each([
  ["vault", "POST /v1/secret/data/"],
  ["github", "PUT /repos/"],
] as const)("a write to %s, cut", (name, start) => {
  const { stores, withFile } = storePlaces();
  let proxy: CuttingProxy | undefined;
  afterAll(() => proxy?.close());
  stores.leads.set(name, async (origin) => (proxy ??= await startCuttingProxy(origin, start)).origin);

  it("at a byte of the request or of the response, always at the same", { timeout: 14_400_000 }, async () => {
    const findings = new Findings();
    const ways: Record<string, number> = {};
    const run = async (cut?: Parameters<CuttingProxy["cut"]>[0]): Promise<string> => {
      const stage = await scene(rotateTo(withFile)).stage();
      proxy!.cut(cut, 99);
      const ended = await stage.at.integ(stage.words);
      proxy!.cut(undefined);
      const where = `${name}, ${cut ? `${cut.how} after ${cut.after} of the ${cut.of}` : "not cut"}, ${endOf(ended)}`;
      const disturbed = { findings, where, ended, recoveries: 3 };
      await stage.audit(disturbed);
      const way = `${endOf(ended)}, ${await stage.recover(disturbed)}`;
      stage.remove();
      return way;
    };
    expect(await run()).toBe("exit 0, recovery 0");
    const whole = { ...proxy!.passed };
    expect(Math.min(whole.request, whole.response)).toBeGreaterThan(80);
    for (const of of ["request", "response"] as const) {
      const cuts = cutsOf(of, { whole: whole[of], sample: isFull ? undefined : 2 }).filter(({ isShort }) => isShort);
      for (const cut of isFull ? cuts : [cuts[0]!, cuts.at(-1)!]) {
        const way = await run(cut);
        ways[way] = (ways[way] ?? 0) + 1;
      }
    }
    console.log(`${start} cut: ${JSON.stringify(ways)}; ${findings.figures}`);
    const cuts = Object.values(ways).reduce((sum, count) => sum + count, 0);
    recordFigure("cut connection", { cuts, violations: findings.count }, `${name}, ${start.trim()}`);
    expect(findings.all).toEqual([]);
    // Some were not delivered at first: the cuts hit something.
    expect(Object.keys(ways).some((way) => way.startsWith("exit 12"))).toBe(true);
  });
});
