// Kills commands, or lets their calls fail, at recorded points. A *scene* is a command with its preparation; a *point* is
// one of its file or network calls in a recorded run; a *fault* is the event at a point; an *audit* compares the program's
// reports with the service, immediately and after recovery. Each fault has its own home.
//
// INTEG_TEST_FULL=1 plays all points, any other run a sample. INTEG_TEST_COUNT=1 only prints the number of points.
import { describe, expect, it } from "vitest";
import type { Ended, Home, RunOptions } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { isFull, partOf } from "../support/sample.ts";
import { countedAgain, failing, killedAt, nameOf, type Point, record, spread, wasKilled } from "../support/strace.ts";
import { recordFigure } from "../support/figures.mjs";
import { isMissing } from "../support/tools.mjs";

export const countsOnly = process.env.INTEG_TEST_COUNT === "1";

/** Violations by kind. A test requires that every list is empty. */
export class Findings {
  readonly duplicates: string[] = [];
  readonly lostKeys: string[] = [];
  readonly withoutOwner: string[] = [];
  readonly revokedAfterDelivery: string[] = [];
  readonly withoutWorkingClient: string[] = [];
  readonly tornSecrets: string[] = [];
  readonly tornFiles: string[] = [];
  readonly strayedSecrets: string[] = [];
  readonly unfinished: string[] = [];
  readonly sentAfterFailedSync: string[] = [];
  readonly falseSuccesses: string[] = [];
  readonly falseFailures: string[] = [];
  readonly bugs: string[] = [];

  get figures(): string {
    return Object.entries(this)
      .map(([name, found]) => `${name} ${(found as string[]).length}`)
      .join(", ");
  }

  get count(): number {
    return this.all.length;
  }

  get all(): string[] {
    return Object.entries(this).flatMap(([name, found]) => (found as string[]).map((text) => `${name}: ${text}`));
  }
}

export interface Fault {
  readonly point: Point;
  readonly errno?: string;
  /** True if all later calls of the same kind fail too. */
  readonly forever?: boolean;
}

export interface Run {
  readonly findings: Findings;
  readonly where: string;
  readonly ended: Ended;
  /** Undefined if the fault was not at a point, such as a cut connection. */
  readonly fault?: Fault;
  /** How often recovery may run. The default is 2. */
  readonly recoveries?: number;
}

export interface Stage {
  readonly at: Home;
  readonly words: readonly string[];
  audit(run: Run): Promise<void>;
  /** Follows the program's next steps until all work is finished, then checks again. @returns a description of the steps */
  recover(run: Run): Promise<string>;
  remove(): void;
}

export interface StageOptions {
  /** Runs before the preparation, in the empty home. */
  readonly before?: (at: Home) => void;
  /** @returns the origin that the command uses instead of the service's */
  readonly through?: (origin: string) => Promise<string>;
}

export interface Scene {
  readonly name: string;
  /** The exit code of an undisturbed run. The default is 0. */
  readonly code?: number;
  /** More valid exit codes if the call at the point belongs to a child process, which is then killed. */
  readonly childKilled?: readonly number[];
  /** True if only the program's own calls are points, not those of its children. */
  readonly ownCallsOnly?: boolean;
  /** Makes the service's lists old enough for recovery. It runs at most once, after all runs and before the first recovery. */
  readonly settle?: (() => Promise<void>) | undefined;
  stage(options?: StageOptions): Promise<Stage>;
}

export function undisturbed(
  at: Home,
  words: readonly string[],
  options: Pick<RunOptions, "env" | "input"> = {},
): Promise<Ended> {
  return isFull ? at.integ(words, options) : integHere(at, words, options);
}

export function endOf({ code, signal }: Ended): string {
  return `exit ${code ?? signal}`;
}

function nameOfFault({ point, errno, forever }: Fault): string {
  return `${errno ?? "killed"} at ${nameOf(point)}${forever ? " and from then on" : ""}`;
}

export async function pointsOf(scene: Scene): Promise<Point[]> {
  const stage = await scene.stage();
  try {
    const { ended, points } = await record((under) => stage.at.integ(stage.words, { under }), scene);
    expect(ended.code, ended.stderr).toBe(scene.code ?? 0);
    return points;
  } finally {
    stage.remove();
  }
}

/** Omits the points before the first access to the state folder: a kill there leaves no state. */
export function pointsOfEffect(points: readonly Point[]): Point[] {
  const first = points.findIndex(({ text }) => text.includes("/state"));
  return points.slice(Math.max(0, first));
}

const changing =
  /^(write|writev|pwrite64|fsync|fdatasync|ftruncate|link|linkat|unlink|unlinkat|rename|renameat2?|mkdir|fchmod|connect|sendto|sendmsg|shutdown)$/;

export function changingPoints(points: readonly Point[]): Point[] {
  return pointsOfEffect(points).filter(
    ({ call, text }) =>
      changing.test(call) ||
      (call === "openat" && text.includes("O_CREAT")) ||
      (call === "read" && text.includes("HTTP/1.1")),
  );
}

function endsOfEachKind(points: readonly Point[]): Point[] {
  return points.filter(
    (point, index) =>
      points.findIndex(({ call }) => call === point.call) === index ||
      points.findLastIndex(({ call }) => call === point.call) === index,
  );
}

/** Chooses the same points each time, mostly changing calls. A small sample has only changing calls. */
function sampleOf(points: readonly Point[], count: number): Point[] {
  const effect = pointsOfEffect(points);
  const changes = changingPoints(points);
  const others = effect.filter((point) => !changes.includes(point));
  const startUp = points.slice(0, points.length - effect.length);
  const chosen = new Set([...spread(startUp, Math.floor(count / 12)), ...spread(others, Math.floor(count / 6))]);
  for (const point of spread(endsOfEachKind(changes), Math.floor((count - chosen.size) / 2))) chosen.add(point);
  const rest = changes.filter((point) => !chosen.has(point));
  // Omits the first and the last call of the spread, which are next to calls that are already chosen.
  for (const point of spread(rest, count - chosen.size + 2).slice(1, -1)) chosen.add(point);
  return [...chosen];
}

const errnosOf: Readonly<Record<string, readonly string[]>> = {
  write: ["EIO", "ENOSPC"],
  writev: ["EIO"],
  pwrite64: ["EIO", "ENOSPC"],
  fsync: ["EIO", "ENOSPC"],
  ftruncate: ["EIO"],
  fchmod: ["EROFS", "EIO"],
  openat: ["EACCES", "EROFS", "EMFILE", "ENOSPC", "EIO"],
  link: ["EACCES", "EROFS", "ENOSPC", "EIO"],
  rename: ["EACCES", "EROFS", "ENOSPC", "EIO"],
  unlink: ["EACCES", "EROFS", "EIO"],
  mkdir: ["EACCES", "EROFS", "ENOSPC", "EIO"],
  socket: ["EMFILE"],
  connect: ["ENETUNREACH", "ECONNREFUSED"],
  read: ["EIO"],
  pread64: ["EIO"],
};

export function failuresAt(points: readonly Point[]): Fault[] {
  return points.flatMap((point) =>
    (errnosOf[point.call] ?? []).flatMap((errno) => [
      { point, errno, forever: false },
      { point, errno, forever: true },
    ]),
  );
}

/** Requests that change the account. An exchange for a token is also a POST, but changes nothing. */
const changesService = /^(?:POST|PUT|PATCH|DELETE) (?:\/v1\/oauth_clients|\/api\/v1\/access-keys)/;

async function runUnder(
  scene: Scene,
  stage: Stage,
  { point, errno, forever }: Fault,
): Promise<{ ended: Ended; hits: number; sentAfter: readonly string[] }> {
  if (errno === undefined) {
    const ended = await stage.at.integ(stage.words, { under: killedAt(point, scene) });
    return { ended, hits: wasKilled(ended) ? 1 : 0, sentAfter: [] };
  }
  const fault = { call: point.call, errno, when: `${point.nth}${forever ? "+" : ""}` };
  const { ended, injected, requestsAfter } = await failing(fault, (under) => stage.at.integ(stage.words, { under }));
  return { ended, hits: injected, sentAfter: requestsAfter.filter((line) => changesService.test(line)) };
}

/** @returns a function that recovers the scene, or undefined if the run did not reach the point */
async function play(scene: Scene, fault: Fault, findings: Findings): Promise<(() => Promise<string>) | undefined> {
  const stage = await scene.stage();
  try {
    // By default, integ retries a permanently failing connection for two minutes.
    if (fault.errno !== undefined) stage.at.env.INTEG_RETRY_FOR = "3s";
    const { ended, hits, sentAfter } = await runUnder(scene, stage, fault);
    if (hits === 0 && !scene.childKilled?.includes(ended.code ?? 0)) {
      stage.remove();
      return undefined;
    }
    const where = `${scene.name}, ${nameOfFault(fault)}, ${endOf(ended)}`;
    if (fault.point.call === "fsync" && sentAfter.length > 0)
      findings.sentAfterFailedSync.push(`${where}: ${sentAfter.join(", ")}`);
    const run: Run = { findings, where, ended, fault, recoveries: fault.errno === undefined ? 2 : 3 };
    await stage.audit(run);
    return () => stage.recover(run).finally(() => stage.remove());
  } catch (error) {
    stage.remove();
    throw error;
  }
}

/** How many runs a point gets: a run can miss it, because the number of some calls depends on how the network splits data. */
const tries = 12;

/**
 * Plays the scene once for each fault. Fails the test if a fault is not reached or a condition is violated.
 * @param figure the name of the test's figure, missing for one of several runs with a common figure
 * @param calls how many calls the faults of `all` represent, if several calls leave the same state
 * @returns how many faults were reached
 */
export async function playEach(
  scene: Scene,
  { all, sample, figure, calls }: { all: readonly Fault[]; sample: readonly Fault[]; figure?: string; calls?: number },
): Promise<number> {
  const faults = isFull ? partOf(all) : sample;
  if (countsOnly) console.log(`count: ${scene.name}: ${all.length}`);
  if (countsOnly) return 0;
  const findings = new Findings();
  const missed: string[] = [];
  const ways: Record<string, number> = {};
  const left: (() => Promise<string>)[] = [];
  const finish = async (): Promise<void> => {
    for (const recover of left.splice(0)) {
      const way = await recover();
      ways[way] = (ways[way] ?? 0) + 1;
    }
  };
  for (const fault of faults) {
    let recover: (() => Promise<string>) | undefined;
    for (let round = 0; round < tries && !recover; round += 1)
      recover = await play(scene, { ...fault, point: countedAgain(fault.point, round) }, findings);
    if (recover) left.push(recover);
    else missed.push(nameOfFault(fault));
    if (scene.settle === undefined) await finish();
  }
  await scene.settle?.();
  await finish();
  console.log(
    `${scene.name}: ${faults.length - missed.length} of ${faults.length} points hit (a full run has ${all.length}); ${JSON.stringify(ways)}; ${findings.figures}`,
  );
  const hit = faults.length - missed.length;
  const points: Record<string, number> =
    calls === undefined ? { points: all.length } : { points: calls, states: all.length };
  if (figure !== undefined) recordFigure(figure, { ...points, hit, violations: findings.count }, scene.name);
  expect(findings.all).toEqual([]);
  expect(missed).toEqual([]);
  return hit;
}

export function deliveryPoints(points: readonly Point[]): Point[] {
  const first = points.findIndex(({ call, text }) => call === "read" && text.includes("HTTP/1.1 201"));
  const last = points.findLastIndex(({ text }) => text.includes("DELETE /v1/oauth_clients"));
  if (first < 0 || last < first) throw new Error("the recorded run has no delivery");
  return points.slice(first, last + 1);
}

export interface KillTestOptions {
  /** The number of points in a sample. With 0, only a full run plays the scene. */
  readonly sample: number;
  readonly of?: (points: readonly Point[]) => Point[];
  /** True to skip points in a full run that leave the same state as the previous point. */
  readonly isDistinct?: boolean;
}

export function killTest(
  scene: Scene,
  { sample, of = (points) => [...points], isDistinct = false }: KillTestOptions,
): void {
  const isPlayed = (isFull || sample > 0) && !isMissing("strace");
  describe.runIf(isPlayed)(`${scene.name}, killed`, () => {
    it("at any file or network call, is recovered", { timeout: 7_200_000 }, async () => {
      const points = of(await pointsOf(scene));
      const killed = (point: Point): Fault => ({ point });
      const few = sampleOf(points, sample).map(killed);
      const distinct = points.filter(({ isAfterChange }, index) => isAfterChange !== false || index === 0).map(killed);
      const all = isDistinct ? { all: distinct, calls: points.length } : { all: points.map(killed) };
      await playEach(scene, { ...all, sample: few, figure: "kill" });
    });
  });
}
