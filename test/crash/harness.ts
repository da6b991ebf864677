// One harness for every command that is killed, or whose calls fail. A *scene* is a command and what stands before it; a *point* is one of its
// file or network calls, as a recorded run made it; a *fault* is what happens there; an *audit* compares what was said with
// what the service holds, at once and again when everything was recovered. Each fault has a home of its own.
//
// INTEG_TEST_FULL=1 hits all points (INTEG_TEST_PART=2/6 the second sixth of them), otherwise a sample. INTEG_TEST_COUNT=1 hits none: it prints how many there are.
import { describe, expect, it } from "vitest";
import type { Ended, Home, RunOptions } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { isFull, partOf } from "../support/sample.ts";
import { countedAgain, failing, killedAt, nameOf, type Point, record, spread, wasKilled } from "../support/strace.ts";
import { recordFigure } from "../support/figures.mjs";
import { isMissing } from "../support/tools.mjs";

export const countsOnly = process.env.INTEG_TEST_COUNT === "1";

/** Whatever is not as it must be, by kind; all of it must stay empty. */
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

/** What happens at a point: the process is killed or, where there is an errno, the call fails. */
export interface Fault {
  readonly point: Point;
  readonly errno?: string;
  /** That call fails from then on, not once. */
  readonly forever?: boolean;
}

/** A run of a scene's command that ended under a fault. */
export interface Run {
  readonly findings: Findings;
  /** Where it happened, for messages. */
  readonly where: string;
  readonly ended: Ended;
  /** What disturbed it, where that was a point. */
  readonly fault?: Fault;
  /** How often recovery may be asked before all is done; twice where nothing else is said. */
  readonly recoveries?: number;
}

/** A scene that is set: its home and its command. */
export interface Stage {
  readonly at: Home;
  readonly words: readonly string[];
  /** Right after the run, before anybody repairs anything. */
  audit(run: Run): Promise<void>;
  /** Does what the program says until nothing is left, then looks again. @returns the way it went */
  recover(run: Run): Promise<string>;
  remove(): void;
}

export interface StageOptions {
  /** Done to the empty home first. */
  readonly before?: (at: Home) => void;
  /** The origin that the command is to use instead of the service's. */
  readonly through?: (origin: string) => Promise<string>;
}

export interface Scene {
  readonly name: string;
  /** How the command ends where nothing disturbs it; 0 where nothing else is said. */
  readonly code?: number;
  /** How it may end where the kill hits a process of its own instead: the call is that one's. */
  readonly childKilled?: readonly number[];
  /** Only its own calls are points, and not those of the programs that it starts. */
  readonly isOwn?: boolean;
  /** What recovery asks the service may be old: called once, after all runs, before the first recovery. */
  readonly settle?: (() => Promise<void>) | undefined;
  stage(options?: StageOptions): Promise<Stage>;
}

/**
 * A command that nothing disturbs: what comes before the disturbed one, or brings its work to an end. A sample runs it in
 * this process.
 */
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

export function nameOfFault({ point, errno, forever }: Fault): string {
  return `${errno ?? "killed"} at ${nameOf(point)}${forever ? " and from then on" : ""}`;
}

/** All points of the scene's command, as a recorded run makes them. */
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

/** The points from the first touch of the state folder on: before it a kill leaves nothing at all. */
export function pointsOfEffect(points: readonly Point[]): Point[] {
  const first = points.findIndex(({ text }) => text.includes("/state"));
  return points.slice(Math.max(0, first));
}

const changing =
  /^(write|writev|pwrite64|fsync|fdatasync|ftruncate|link|linkat|unlink|unlinkat|rename|renameat2?|mkdir|fchmod|connect|sendto|sendmsg|shutdown)$/;

/** The calls that write, sync, name or send something, or take an answer. */
export function changingPoints(points: readonly Point[]): Point[] {
  return pointsOfEffect(points).filter(
    ({ call, text }) =>
      changing.test(call) ||
      (call === "openat" && text.includes("O_CREAT")) ||
      (call === "read" && text.includes("HTTP/1.1")),
  );
}

/** The first and the last call of each kind, in the order of time. */
export function endsOfEachKind(points: readonly Point[]): Point[] {
  return points.filter(
    (point, index) =>
      points.findIndex(({ call }) => call === point.call) === index ||
      points.findLastIndex(({ call }) => call === point.call) === index,
  );
}

/**
 * A sample, always the same: mostly calls that change or send something, the first and last of a kind above all. A small
 * one has nothing else.
 */
export function sampleOf(points: readonly Point[], count: number): Point[] {
  const effect = pointsOfEffect(points);
  const changes = changingPoints(points);
  const others = effect.filter((point) => !changes.includes(point));
  const startUp = points.slice(0, points.length - effect.length);
  const chosen = new Set([...spread(startUp, Math.floor(count / 12)), ...spread(others, Math.floor(count / 6))]);
  for (const point of spread(endsOfEachKind(changes), Math.floor((count - chosen.size) / 2))) chosen.add(point);
  const rest = changes.filter((point) => !chosen.has(point));
  // Without its own two ends, which stand beside ends that are chosen already.
  for (const point of spread(rest, count - chosen.size + 2).slice(1, -1)) chosen.add(point);
  return [...chosen];
}

/** What a call of that kind may meet on a real machine. */
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

/** Every failure that the points allow: each errno once, and from then on. */
export function failuresAt(points: readonly Point[]): Fault[] {
  return points.flatMap((point) =>
    (errnosOf[point.call] ?? []).flatMap((errno) => [
      { point, errno, forever: false },
      { point, errno, forever: true },
    ]),
  );
}

/** Requests that change something; an exchange for a token and a list change nothing. */
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

/**
 * Runs the scene's command under a fault and audits what it left.
 * @returns what brings it to its end, or nothing where the run did not come to the point
 */
async function play(scene: Scene, fault: Fault, findings: Findings): Promise<(() => Promise<string>) | undefined> {
  const stage = await scene.stage();
  try {
    // A connection that fails from then on is tried again for two minutes otherwise; nothing else changes.
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

/** How often a point that a run did not reach is tried again: some calls depend on how the network cut its bytes. */
const tries = 12;

/**
 * Plays the scene once for each fault; all must be met, and nothing may be found.
 * @param figure the name of the test's figure; none for one of many runs that have one together
 * @param calls how many calls all those faults stand for, if that is more
 * @returns how many faults were met
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

/** From the response that brings a secret to the request that revokes the credential before it. */
export function deliveryPoints(points: readonly Point[]): Point[] {
  const first = points.findIndex(({ call, text }) => call === "read" && text.includes("HTTP/1.1 201"));
  const last = points.findLastIndex(({ text }) => text.includes("DELETE /v1/oauth_clients"));
  if (first < 0 || last < first) throw new Error("the recorded run has no delivery");
  return points.slice(first, last + 1);
}

export interface KillTestOptions {
  /** How many points a plain run hits; 0 leaves the scene to a full run. */
  readonly sample: number;
  /** The points that matter; all where nothing else is said. */
  readonly of?: (points: readonly Point[]) => Point[];
  /** A full run passes over the points which leave what the point before them leaves. */
  readonly isDistinct?: boolean;
}

/** A test that kills the scene's command everywhere, or at `sample` points where not all of them are asked for. */
export function killTest(
  scene: Scene,
  { sample, of = (points) => [...points], isDistinct = false }: KillTestOptions,
): void {
  const isPlayed = (isFull || sample > 0) && !isMissing("strace");
  describe.runIf(isPlayed)(`${scene.name}, killed`, () => {
    it("at every file and network call, and recovered", { timeout: 7_200_000 }, async () => {
      const points = of(await pointsOf(scene));
      const killed = (point: Point): Fault => ({ point });
      const few = sampleOf(points, sample).map(killed);
      const distinct = points.filter(({ isAfterChange }, index) => isAfterChange !== false || index === 0).map(killed);
      const all = isDistinct ? { all: distinct, calls: points.length } : { all: points.map(killed) };
      await playEach(scene, { ...all, sample: few, figure: "kill" });
    });
  });
}
