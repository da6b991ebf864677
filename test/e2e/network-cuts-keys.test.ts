// The connection cut after every byte of a request that makes, rotates or revokes an access key, and of its answer. The
// contract has no idempotency key: one POST, what is told is true, and what a person then types leaves no orphan.
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { auditAtOnce, auditRecovered, type Broken, settleMs } from "../crash/keys-audit.ts";
import { create, replace, rotate, type Scene } from "../crash/keys-scenes.ts";
import { isFull } from "../crash/kill-loop.ts";
import {
  type CutExchange,
  cutsOf,
  type CuttingProxy,
  type PlannedCut,
  startCuttingProxy,
} from "../support/cutting-proxy.ts";
import { type Service, startService } from "../support/service.ts";
import { KeysDesk } from "./keys-desk.ts";

const exchanges: readonly CutExchange<Scene>[] = [
  { name: "a creation", scene: create, start: "POST /api/v1/access-keys ", sample: 5 },
  { name: "a rotation in place", scene: rotate, start: "POST /api/v1/access-keys/", sample: 4 },
  { name: "a replacement's creation", scene: replace, start: "POST /api/v1/access-keys ", sample: 3 },
  { name: "a replacement's revocation", scene: replace, start: "DELETE /api/v1/access-keys/", sample: 3 },
];

let service: Service;
let number = 0;

beforeAll(async () => {
  service = await startService();
});

afterAll(async () => {
  await service.stop();
});

describe.each(exchanges)("$name, cut", ({ scene, start, sample }) => {
  let desk: KeysDesk;
  let proxy: CuttingProxy;

  beforeAll(async () => {
    proxy = await startCuttingProxy(new URL(service.us.base_url).origin, start);
    desk = new KeysDesk(service, { ...service.us, base_url: proxy.origin });
  });
  afterEach(async () => {
    await service.calm();
    desk.clear();
  });
  afterAll(() => proxy.close());

  async function under(cut: PlannedCut | undefined, wrong: string[]): Promise<Broken & { code: number | null }> {
    await desk.renew();
    const stage = await scene.arrange(desk, `cut-${(number += 1)}-`);
    await service.calm();
    proxy.cut(cut);
    const { code } = await stage.at.integ([...stage.words, "--retry-for", "0"]);
    proxy.cut(undefined);
    const where = cut ? `${cut.how} after ${cut.after} bytes of the ${cut.of}, exit ${code}` : "no cut";
    if (cut?.isShort && start.startsWith("POST") && code === 0) wrong.push(`${where}: a success`);
    return { ...(await auditAtOnce(desk, scene, { stage, where, wrong })), code };
  }

  it(
    "at every byte of the request and of the answer",
    async () => {
      const wrong: string[] = [];
      expect((await under(undefined, wrong)).code).toBe(0);
      const whole = { ...proxy.passed };
      expect(Math.min(whole.request, whole.response)).toBeGreaterThan(150);
      const cuts = (["request", "response"] as const).flatMap((of) =>
        cutsOf(of, { whole: whole[of], sample: isFull ? undefined : sample }),
      );
      const broken: (Broken & { code: number | null })[] = [];
      for (const cut of cuts) broken.push(await under(cut, wrong));
      // Only a key that may not have been made is looked for in the list.
      if (scene !== rotate && start.startsWith("POST")) await new Promise((resolve) => setTimeout(resolve, settleMs));
      const ways: Record<string, number> = {};
      for (const one of broken) {
        const way = `exit ${one.code}, ${await auditRecovered(desk, scene, { ...one, wrong })}`;
        ways[way] = (ways[way] ?? 0) + 1;
      }
      const most = Math.max(...broken.map(({ posts }) => posts));
      console.log(
        `${start}cut at ${cuts.length} of ${2 * (whole.request + whole.response + 2)} places: most POSTs ${most}; ${JSON.stringify(ways)}; wrong ${wrong.length}`,
      );
      expect(wrong).toEqual([]);
      expect(most).toBe(1);
    },
    isFull ? 7_200_000 : 300_000,
  );
});
