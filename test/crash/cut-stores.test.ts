// The connection to a store cut at the same byte of a request each time it is tried, or of its response: what is said is true,
// the old client stays as long as a place is missing, and recovery and a claim bring the secret to each of three places once.
import { afterAll, describe, expect, it } from "vitest";
import { type Cut, type CuttingProxy, startCuttingProxy } from "../support/cutting-proxy.ts";
import { recordFigure } from "../support/figures.mjs";
import { waitNoRealTime } from "../support/no-waits.ts";
import { stayInThisProcess } from "../support/program.ts";
import { isFull } from "../support/sample.ts";
import { spread } from "../support/strace.ts";
import { clientScenes, rotateTo } from "./client-scenes.ts";
import { endOf, Findings } from "./harness.ts";
import { type StoreName, storePlaces } from "./store-places.ts";
import { isMissing } from "../support/tools.mjs";

const scene = clientScenes();

stayInThisProcess();
waitNoRealTime();

interface Row {
  readonly store: StoreName;
  /** How the requests begin that are cut. */
  readonly start: string;
  /** Nothing where all of them are: the last, which follows the write. */
  readonly isLast?: true;
  /** The request changes the store: it is cut too, and not only its response. */
  readonly isWrite?: true;
  /** The store's program goes on without its response. */
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
  // What GitHub accepted is delivered; the last read only learns its time of change.
  { store: "github", start: `GET ${secretOf}/CLIENT_SECRET`, isLast: true, isSpare: true },
  { store: "k8s", start: "GET /version?", isSpare: true },
  { store: "k8s", start: "GET /api?" },
  { store: "k8s", start: "GET /apis?" },
  { store: "k8s", start: "GET /api/v1?" },
  { store: "k8s", start: "GET /api/v1/namespaces/apps/secrets/ci" },
  { store: "k8s", start: "PATCH /api/v1/namespaces/apps/secrets/ci?fieldManager", isWrite: true },
  { store: "k8s", start: "GET /api/v1/namespaces/apps/secrets/ci", isLast: true },
];
/** What comes before the write was cut by the tests of each store already. */
const played = isFull ? rows : rows.filter(({ isWrite, isLast }) => isWrite || isLast);
const named = played.map((row) => [`${row.store}, ${row.isLast ? "the last " : ""}${row.start.trim()}`, row] as const);

/**
 * After each byte of the response, closed and reset by turns, and at some of a write's request; the tests of each store by
 * itself cut both ways. A sample has one of a read, and one of each direction of a write.
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

describe.each(named)("%s, cut", (name, row) => {
  const { stores, withFile, withCluster } = storePlaces();
  const place = row.store === "k8s" ? withCluster : withFile;
  const absent = row.store === "k8s" ? isMissing("kubectl", "openssl") : isMissing("libsodium");
  let proxy: CuttingProxy | undefined;
  afterAll(() => proxy?.close());
  stores.leads.set(row.store, async (origin) => (proxy ??= await startCuttingProxy(origin, row.start)).origin);

  it.skipIf(absent)("at a byte, always at the same", { timeout: 14_400_000 }, async () => {
    const findings = new Findings();
    const ways: Record<string, number> = {};
    const run = async (cut?: Cut, skip = 0): Promise<string> => {
      const stage = await scene(rotateTo(place)).stage();
      proxy!.cut(cut, 99, skip);
      const ended = await stage.at.integ(stage.words);
      const met = proxy!.met;
      proxy!.cut(undefined);
      const where = `${name}, ${cut ? `${cut.how} after ${cut.after} of the ${cut.of}` : "not cut"}, ${endOf(ended)}`;
      if (met <= skip) findings.unfinished.push(`${where}: the cut met no request`);
      const disturbed = { findings, where, ended, recoveries: 3 };
      await stage.audit(disturbed);
      const way = `${endOf(ended)}, ${await stage.recover(disturbed)}`;
      stage.remove();
      return cut ? way : `${way}, ${met}`;
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
    // Some did not go through: the cuts hit something.
    expect(Object.keys(ways).some((way) => !way.startsWith("exit 0"))).toBe(!row.isSpare);
  });
});
