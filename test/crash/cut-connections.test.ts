import { afterAll, describe, expect, it } from "vitest";
import { type Cut, cutsOf, type CuttingProxy, type PlannedCut, startCuttingProxy } from "../support/cutting-proxy.ts";
import * as clients from "./client-scenes.ts";
import { countsOnly, endOf, Findings, type Run, type Scene, type Stage } from "./harness.ts";
import { isFull, partOf } from "../support/sample.ts";
import * as keys from "./key-scenes.ts";
import { recordFigure } from "../support/figures.mjs";

const client = clients.clientScenes();
const key = keys.keyScenes();

interface Exchange {
  readonly scene: Scene;
  /** The first bytes of the request whose connection is cut. */
  readonly start: string;
  /** The number of cuts of each direction in a sample, besides the last two places. */
  readonly sample: number;
}

const exchanges: Readonly<Record<string, Exchange>> = {
  "a creation": { scene: client(clients.create), start: "POST /v1/oauth_clients ", sample: 1 },
  "a rotation's creation": { scene: client(clients.rotate), start: "POST /v1/oauth_clients ", sample: 1 },
  "a rotation's proof": { scene: client(clients.rotate), start: "POST /oauth/token ", sample: 1 },
  "a rotation's revocation": { scene: client(clients.rotate), start: "DELETE /v1/oauth_clients/", sample: 1 },
  "a key's creation": { scene: key(keys.create), start: "POST /api/v1/access-keys ", sample: 1 },
  "a key's rotation in place": { scene: key(keys.rotate), start: "POST /api/v1/access-keys/", sample: 1 },
  "a key's replacement": { scene: key(keys.replace), start: "POST /api/v1/access-keys ", sample: 1 },
  "a replaced key's revocation": { scene: key(keys.replace), start: "DELETE /api/v1/access-keys/", sample: 1 },
};

/** Requests that must not succeed with a truncated response. integ may repeat the others: proofs and revocations. */
const makes = /^POST \/(?:v1|api)\//;

describe.each(Object.entries(exchanges))("%s over a cut connection", (name, { scene, start, sample }) => {
  const findings = new Findings();
  let proxy: CuttingProxy | undefined;
  let target = "";
  afterAll(() => proxy?.close());

  async function through(origin: string): Promise<string> {
    if (!proxy || target !== origin) {
      await proxy?.close();
      target = origin;
      proxy = await startCuttingProxy(origin, start);
    }
    return proxy.origin;
  }

  async function under(cut: PlannedCut | undefined): Promise<{ stage: Stage; run: Run }> {
    const stage = await scene.stage({ through });
    proxy!.cut(cut);
    const ended = await stage.at.integ([...stage.words, "--retry-for", "0"]);
    proxy!.cut(undefined);
    const where = cut ? `${cut.how} after ${cut.after} bytes of the ${cut.of}, ${endOf(ended)}` : "no cut";
    if (cut?.isShort && makes.test(start) && ended.code === 0) findings.falseSuccesses.push(`${where}: a success`);
    const run = { findings, where, ended, recoveries: 3 };
    await stage.audit(run);
    return { stage, run };
  }

  async function cutAt(cuts: readonly PlannedCut[]): Promise<Record<string, number>> {
    const ways: Record<string, number> = {};
    const left: { stage: Stage; run: Run }[] = [];
    const finish = async (): Promise<void> => {
      for (const { stage, run } of left.splice(0)) {
        const way = `${endOf(run.ended)}, ${await stage.recover(run)}`;
        ways[way] = (ways[way] ?? 0) + 1;
        stage.remove();
      }
    };
    for (const cut of cuts) {
      left.push(await under(cut));
      if (!scene.settle || !start.startsWith("POST")) await finish();
    }
    if (left.length > 0) await scene.settle?.();
    await finish();
    return ways;
  }

  it("ends correctly for each byte of request and response", { timeout: 14_400_000 }, async () => {
    const { stage, run } = await under(undefined);
    expect(run.ended.code, run.ended.stderr).toBe(0);
    await stage.recover(run);
    stage.remove();
    const whole = { ...proxy!.passed };
    expect(Math.min(whole.request, whole.response)).toBeGreaterThan(150);
    const places = 2 * (whole.request + whole.response + 2);
    if (countsOnly) return console.log(`count: ${start}: ${places}`);
    const of = (side: Cut["of"]): PlannedCut[] =>
      cutsOf(side, { whole: whole[side], sample: isFull ? undefined : sample });
    const cuts = partOf([...of("request"), ...of("response")]);
    const ways = await cutAt(cuts);
    console.log(`${start}cut: ${JSON.stringify(ways)}; ${findings.figures}`);
    recordFigure("cut connection", { places, cuts: cuts.length, violations: findings.count }, name);
    expect(findings.all).toEqual([]);
  });
});
