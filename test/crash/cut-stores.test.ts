import { afterAll, describe, expect, it } from "vitest";
import { type Cut, type CuttingProxy, startCuttingProxy } from "../support/cutting-proxy.ts";
import { recordFigure } from "../support/figures.mjs";
import { shortenWaits } from "../support/no-waits.ts";
import { stayInThisProcess } from "../support/program.ts";
import { isFull } from "../support/sample.ts";
import { spread } from "../support/strace.ts";
import { clientScenes, rotateTo } from "./client-scenes.ts";
import { endOf, Findings } from "./harness.ts";
import { type StoreName, storePlaces } from "./store-places.ts";
import { isMissing } from "../support/tools.mjs";

const scene = clientScenes();

stayInThisProcess();
shortenWaits();

interface Row {
  readonly store: StoreName;
  readonly start: string;
  /** True to cut only the last matching request, which reads the secret after the write. */
  readonly isLast?: true;
  readonly isWrite?: true;
  /** True if the delivery succeeds without this response. */
  readonly isSpare?: true;
}

const secretOf = "/repos/my-org/my-repo/actions/secrets";
const rows: readonly Row[] = [
  { store: "vault", start: "GET /v1/sys/internal/ui/mounts/" },
  { store: "vault", start: "POST /v1/sys/capabilities-self" },
  { store: "vault", start: "GET /v1/secret/data/" },
  { store: "vault", start: "POST /v1/secret/data/", isWrite: true },
  { store: "vault", start: "GET /v1/secret/data/", isLast: true },
  { store: "github", start: "GET /repos/my-org/my-repo " },
  { store: "github", start: `GET ${secretOf}/public-key` },
  { store: "github", start: `GET ${secretOf}/CLIENT_SECRET` },
  { store: "github", start: `PUT ${secretOf}/`, isWrite: true },
  // Before the old client is revoked, the last request reads the secret again.
  { store: "github", start: `GET ${secretOf}/CLIENT_SECRET`, isLast: true },
  { store: "k8s", start: "GET /version?", isSpare: true },
  { store: "k8s", start: "GET /api?" },
  { store: "k8s", start: "GET /apis?" },
  { store: "k8s", start: "GET /api/v1?" },
  { store: "k8s", start: "GET /api/v1/namespaces/apps/secrets/ci" },
  { store: "k8s", start: "PATCH /api/v1/namespaces/apps/secrets/ci?fieldManager", isWrite: true },
  { store: "k8s", start: "GET /api/v1/namespaces/apps/secrets/ci", isLast: true },
];
const cutRows = isFull ? rows : rows.filter(({ isWrite, isLast }) => isWrite || isLast);
const named = cutRows.map((row) => [`${row.store}, ${row.isLast ? "the last " : ""}${row.start.trim()}`, row] as const);

/**
 * Cuts before each byte of the response, and before some bytes of a write's request, by close and reset in turn. A sampled
 * run cuts one response, and for a write one request.
 */
function cutsIn({ isWrite }: Row, whole: CuttingProxy["passed"]): readonly Cut[] {
  const cut = (of: Cut["of"], after: number): Cut => ({ of, after, how: after % 2 ? "close" : "reset" });
  const bytes = Array.from({ length: whole.response }, (_, after) => after);
  const responses = isFull ? bytes : [isWrite ? bytes.at(-1)! : bytes[bytes.length >> 1]!];
  const requests = Array.from({ length: isWrite ? whole.request : 0 }, (_, after) => after);
  return [
    ...spread(requests, isFull ? 24 : 1).map((after) => cut("request", after)),
    ...responses.map((after) => cut("response", after)),
  ];
}

describe.each(named)("%s over a cut connection", (name, row) => {
  const { stores, withFile, withCluster } = storePlaces();
  const place = row.store === "k8s" ? withCluster : withFile;
  const absent = row.store === "k8s" ? isMissing("kubectl", "openssl") : isMissing("libsodium");
  let proxy: CuttingProxy | undefined;
  afterAll(() => proxy?.close());
  stores.proxies.set(row.store, async (origin) => (proxy ??= await startCuttingProxy(origin, row.start)).origin);

  it.skipIf(absent)("ends correctly if each attempt is cut at the same byte", { timeout: 14_400_000 }, async () => {
    const findings = new Findings();
    const ways: Record<string, number> = {};
    const run = async (cut?: Cut, skip = 0): Promise<string> => {
      const stage = await scene(rotateTo(place)).stage();
      proxy!.cut(cut, 99, skip);
      const ended = await stage.at.integ(stage.words);
      const matched = proxy!.matched;
      proxy!.cut(undefined);
      const where = `${name}, ${cut ? `${cut.how} after ${cut.after} of the ${cut.of}` : "not cut"}, ${endOf(ended)}`;
      if (matched <= skip) findings.unfinished.push(`${where}: the cut matched no request`);
      const disturbed = { findings, where, ended, recoveries: 3 };
      await stage.audit(disturbed);
      const way = `${endOf(ended)}, ${await stage.recover(disturbed)}`;
      stage.remove();
      return cut ? way : `${way}, ${matched}`;
    };
    const plain = /^exit 0, recovery 0, (\d+)$/.exec(await run());
    const whole = { ...proxy!.passed };
    expect([plain, Math.min(whole.request, whole.response) > 80]).toEqual([expect.anything(), true]);
    const cuts = cutsIn(row, whole);
    for (const cut of cuts) {
      const way = await run(cut, row.isLast ? Number(plain![1]) - 1 : 0);
      ways[way] = (ways[way] ?? 0) + 1;
    }
    console.log(`${name}, cut: ${JSON.stringify(ways)}; ${findings.figures}`);
    recordFigure("cut delivery", { cuts: cuts.length, violations: findings.count }, name);
    expect(findings.all).toEqual([]);
    expect(Object.keys(ways).some((way) => !way.startsWith("exit 0"))).toBe(!row.isSpare);
  });
});
