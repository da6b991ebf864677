// The connection cut after every byte of a request that creates, proves or revokes, and of its answer: what is told is true,
// the key stays the same, and recovery brings the work to its end with one client.
import { afterAll, describe, expect, it } from "vitest";
import { endOf, judge, Lies } from "../crash/errno-loop.ts";
import { Desk, homeOf, isFull, type Scene } from "../crash/kill-loop.ts";
import { create, rotate } from "../crash/oauth-client-scenes.ts";
import {
  type CutExchange,
  cutsOf,
  type CuttingProxy,
  type PlannedCut,
  startCuttingProxy,
} from "../support/cutting-proxy.ts";

const exchanges: readonly CutExchange<Scene>[] = [
  { name: "a creation", scene: create, start: "POST /v1/oauth_clients ", sample: 14 },
  { name: "a rotation's creation", scene: rotate, start: "POST /v1/oauth_clients ", sample: 3 },
  { name: "a rotation's proof", scene: rotate, start: "POST /oauth/token ", sample: 3 },
  { name: "a rotation's revocation", scene: rotate, start: "DELETE /v1/oauth_clients/", sample: 4 },
];

describe.each(exchanges)("$name, cut", ({ scene, start, sample }) => {
  const desk = new Desk();
  let proxy: CuttingProxy | undefined;
  let target = "";
  afterAll(async () => {
    await proxy?.close();
    await desk.close();
  });

  /** A proxy for the service that stands now. */
  async function through(origin: string): Promise<CuttingProxy> {
    if (proxy && target === origin) return proxy;
    await proxy?.close();
    target = origin;
    proxy = await startCuttingProxy(origin, start);
    return proxy;
  }

  /** One run under a cut, judged. @returns its exit code */
  async function under(cut: PlannedCut | undefined, lies: Lies): Promise<number | null> {
    const account = await desk.account();
    const { base_url, token_endpoint } = account.service.us;
    const here = await through(new URL(base_url).origin);
    const at = homeOf(account);
    at.env.INTEG_BASE_URL = here.origin;
    at.env.INTEG_TOKEN_ENDPOINT = token_endpoint.replace(new URL(token_endpoint).origin, here.origin);
    try {
      const arranged = await scene.arrange(at, account);
      here.cut(cut);
      const ended = await at.integ([...arranged.words, "--retry-for", "0"]);
      const where = cut ? `${cut.how} after ${cut.after} bytes of the ${cut.of}, ${endOf(ended)}` : "no cut";
      // What makes the client has to be understood whole; a proof or a revocation may be asked for again.
      if (cut?.isShort && start.startsWith("POST /v1") && ended.code === 0) lies.falseSuccesses.push(where);
      here.cut(undefined);
      await judge({ at, account, lies, scene, arranged, where, ended });
      return ended.code;
    } finally {
      at.remove();
    }
  }

  it.each(["request", "response"] as const)("at every byte of the %s", { timeout: 7_200_000 }, async (of) => {
    const lies = new Lies();
    expect(await under(undefined, lies)).toBe(0);
    const whole = proxy!.passed[of];
    expect(whole).toBeGreaterThan(200);
    const cuts = cutsOf(of, { whole, sample: isFull ? undefined : sample });
    const codes = new Map<number | null, number>();
    for (const cut of cuts) {
      const code = await under(cut, lies);
      codes.set(code, (codes.get(code) ?? 0) + 1);
    }
    const exits = [...codes].map(([code, count]) => `${count} × exit ${code}`).join(", ");
    console.log(`${start}cut at ${cuts.length} of ${2 * (whole + 1)} places of the ${of}: ${exits}; ${lies.figures}`);
    expect(lies.all).toEqual([]);
  });
});
