// The connection cut after every byte of a request that creates, rotates or revokes, and of its answer: what is told is true,
// the key stays the same, and recovery brings the work to its end with one client.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { endOf, judge, Lies } from "../crash/errno-loop.ts";
import { Desk, homeOf, isFull, type Scene } from "../crash/kill-loop.ts";
import { createWords } from "../crash/oauth-client-scenes.ts";
import { type Cut, type CuttingProxy, startCuttingProxy } from "../support/cutting-proxy.ts";
import { spread } from "../support/strace.ts";

const sample = 14;
const scene: Scene = {
  name: "oauth-clients create",
  arrange: async (_at, account) => ({ words: [...createWords(account), "--retry-for", "0"] }),
};

describe("a connection that is cut", () => {
  const desk = new Desk();
  let proxy: CuttingProxy | undefined;
  let target = "";

  /** A proxy for the service that stands now. */
  async function through(origin: string): Promise<CuttingProxy> {
    if (proxy && target === origin) return proxy;
    await proxy?.close();
    target = origin;
    proxy = await startCuttingProxy(origin, "POST /v1/oauth_clients ");
    return proxy;
  }

  let whole = { request: 0, response: 0 };

  /** One creation under a cut, judged. @returns its exit code */
  async function under(cut: Cut | undefined, lies: Lies): Promise<number | null> {
    const account = await desk.account();
    const here = await through(account.service.us.base_url);
    const at = homeOf(account);
    at.env.INTEG_BASE_URL = here.origin;
    here.cut(cut);
    try {
      const arranged = await scene.arrange(at, account);
      const ended = await at.integ(arranged.words);
      const where = cut ? `${cut.how} after ${cut.after} bytes of the ${cut.of}, ${endOf(ended)}` : "no cut";
      if (cut && isCutShort(cut) && ended.code === 0) lies.falseSuccesses.push(where);
      here.cut(undefined);
      await judge({ at, account, lies, scene, arranged, where, ended });
      return ended.code;
    } finally {
      at.remove();
    }
  }

  /** True where the answer cannot have been understood whole. */
  function isCutShort({ of, after }: Cut): boolean {
    return after < whole[of];
  }

  beforeAll(async () => {
    expect(await under(undefined, new Lies())).toBe(0);
    whole = { ...proxy!.passed };
  });
  afterAll(async () => {
    await proxy?.close();
    await desk.close();
  });

  it.each(["request", "response"] as const)("at every byte of the %s", { timeout: 7_200_000 }, async (of) => {
    const lies = new Lies();
    const places = Array.from({ length: whole[of] + 1 }, (_, after) => after);
    // The last bytes always: an answer that lacks only its end shows all that it says.
    const chosen = isFull ? places : [...new Set([...spread(places, sample), ...places.slice(-4)])];
    const cuts = chosen.flatMap((after): Cut[] =>
      isFull
        ? [
            { of, after, how: "close" },
            { of, after, how: "reset" },
          ]
        : [{ of, after, how: after % 2 ? "close" : "reset" }],
    );
    const codes = new Map<number | null, number>();
    for (const cut of cuts) {
      const code = await under(cut, lies);
      codes.set(code, (codes.get(code) ?? 0) + 1);
    }
    const exits = [...codes].map(([code, count]) => `${count} × exit ${code}`).join(", ");
    console.log(`cut at ${cuts.length} of ${2 * places.length} places of the ${of}: ${exits}; ${lies.figures}`);
    expect(whole[of]).toBeGreaterThan(200);
    expect(lies.all).toEqual([]);
  });
});
