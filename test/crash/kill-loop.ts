// The crash loop: a command killed at every file and network call, then recovered, then compared with what the service
// holds. Each point has a home and an empty account of its own.
import { afterAll, describe, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { Home } from "../support/program.ts";
import { startService, type Service } from "../support/service.ts";
import {
  countedAgain,
  killedAt,
  nameOf,
  type Point,
  record,
  sayWhetherTraced,
  spread,
  wasKilled,
} from "../support/strace.ts";
import { auditCrash, auditRecovered, Findings, journalOf } from "./oauth-client-audit.ts";

import { rawFile, type Place } from "./secret-places.ts";

/** What is killed, and what stands before it. */
export interface Scene {
  readonly name: string;
  /** Makes what the command needs, in an empty account. */
  arrange(at: Home, account: Account): Promise<Arranged>;
  /** How the command ends where nothing kills it; 0 where nothing else is said. */
  readonly code?: number;
  /** How it ends where the kill hits a process of its own instead: the call is that one's. */
  readonly childKilled?: number;
  /** Where the secret is asked to go; a file where nothing else is said. */
  readonly place?: Place;
}

export interface Arranged {
  readonly words: readonly string[];
  /** The client that a rotation is to replace. */
  readonly old?: { readonly id: string };
  /** What was delivered before the command begins. */
  readonly delivered?: string;
  /** Standard output so far. */
  readonly printed?: string;
}

export const isFull = process.env.INTEG_TEST_FULL === "1";

/** A service that is begun anew now and then, so that what it remembers stays small. */
export class Desk {
  #service: Service | undefined;
  #used = 0;

  async account(): Promise<Account> {
    if (this.#service && this.#used >= 100) await this.close();
    this.#service ??= await startService();
    this.#used += 1;
    const account = new Account(this.#service);
    await account.clear();
    return account;
  }

  async close(): Promise<void> {
    await this.#service?.stop();
    this.#service = undefined;
    this.#used = 0;
  }
}

/** A home whose environment names the service, its token endpoint too. */
export function homeOf({ service }: Account): Home {
  return new Home({ ...service.env, INTEG_TOKEN_ENDPOINT: service.us.token_endpoint });
}

export async function inScene<T>(
  desk: Desk,
  scene: Scene,
  work: (at: Home, account: Account, arranged: Arranged) => Promise<T>,
): Promise<T> {
  const account = await desk.account();
  const at = homeOf(account);
  try {
    return await work(at, account, await scene.arrange(at, account));
  } finally {
    at.remove();
  }
}

/** All points of the scene's command, as a recorded run makes them. */
export function pointsOf(desk: Desk, scene: Scene): Promise<Point[]> {
  return inScene(desk, scene, async (at, _account, { words }) => {
    const { ended, points } = await record((under) => at.integ(words, { under }));
    expect(ended.code, ended.stderr).toBe(scene.code ?? 0);
    return points;
  });
}

/** The points from the first touch of the state folder on: before it a kill leaves nothing at all. */
export function pointsOfEffect(points: readonly Point[]): Point[] {
  const first = points.findIndex(({ text }) => text.includes("/state"));
  return points.slice(Math.max(0, first));
}

/** The calls that write, sync, name or send something, or take an answer. */
export function changingPoints(points: readonly Point[]): Point[] {
  return pointsOfEffect(points).filter(({ call, text }) => changes(call, text));
}

/** A sample: mostly calls that may change or send something, some of the others, a few from the start-up. */
export function sampleOf(points: readonly Point[], count: number): Point[] {
  const effect = pointsOfEffect(points);
  const changing = changingPoints(points);
  const others = effect.filter((point) => !changing.includes(point));
  const startUp = points.slice(0, points.length - effect.length);
  const [few, some] = [Math.ceil(count / 12), Math.ceil(count / 4)];
  return [...spread(startUp, few), ...spread(others, some), ...spread(changing, count - few - some)];
}

const changing =
  /^(write|writev|pwrite64|fsync|fdatasync|ftruncate|link|linkat|unlink|unlinkat|rename|renameat2?|mkdir|fchmod|connect|sendto|sendmsg|shutdown)$/;

function changes(call: string, text: string): boolean {
  return (
    changing.test(call) ||
    (call === "openat" && text.includes("O_CREAT")) ||
    (call === "read" && text.includes("HTTP/1.1"))
  );
}

/**
 * Recovers until nothing is left to do, as a person would: what was lost is replaced when the program asks for it.
 * @returns what was printed
 */
export async function recoverAll(
  at: Home,
  where: string,
  { findings, place }: { findings: Findings; place: Place },
): Promise<string> {
  if (journalOf(at).length === 0) return "";
  const words = ["journal", "recover", "--json", ...(place.again ?? [])];
  const first = await at.integ(words);
  if (first.code === 0) return first.stdout;
  if (first.code === 12) return first.stdout + (await claimAll(at, where, { findings, place }));
  const second = await at.integ([...words, "--replace-lost-secret"]);
  if (first.code !== 9 || second.code !== 0)
    findings.unfinished.push(`${where}: recovery ended with ${first.code}, then ${second.code}: ${second.stderr}`);
  return first.stdout + second.stdout;
}

/** What is kept is claimed to where the scene wanted it, as `next_step` says. */
async function claimAll(
  at: Home,
  where: string,
  { findings, place }: { findings: Findings; place: Place },
): Promise<string> {
  let printed = "";
  for (const { id } of journalOf(at).filter(({ state }) => state === "undelivered")) {
    const claimed = await at.integ(["journal", "claim", id, ...place.words]);
    if (claimed.code !== 0) findings.unfinished.push(`${where}: claim ended with ${claimed.code}: ${claimed.stderr}`);
    printed += claimed.stdout;
  }
  const last = await at.integ(["journal", "recover"]);
  if (last.code !== 0) findings.unfinished.push(`${where}: after the claim recovery ended with ${last.code}`);
  return printed + last.stdout;
}

/** How often a point that a run did not reach is tried again: some calls depend on how the network cut its bytes. */
const tries = 12;

/**
 * Kills the scene's command at each point and recovers.
 * @returns how many points were hit
 */
export async function killAtEach(
  desk: Desk,
  scene: Scene,
  { points, findings }: { points: readonly Point[]; findings: Findings },
): Promise<{ hit: number; missed: string[] }> {
  const missed: string[] = [];
  for (const point of points) {
    let killed = false;
    for (let round = 0; round < tries && !killed; round += 1)
      killed = await killOnce(desk, scene, { point: countedAgain(point, round), findings });
    if (!killed) missed.push(nameOf(point));
  }
  return { hit: points.length - missed.length, missed };
}

function killOnce(desk: Desk, scene: Scene, given: { point: Point; findings: Findings }): Promise<boolean> {
  const { point, findings } = given;
  return inScene(desk, scene, async (at, account, { words, old, delivered, printed = "" }) => {
    const ended = await at.integ(words, { under: killedAt(point) });
    const where = `${scene.name} at ${nameOf(point)}`;
    const place = scene.place ?? rawFile;
    const watched = { at, account, findings, where, old, place, printed: printed + ended.stdout };
    const secret = await auditCrash(watched);
    if (delivered !== undefined && secret !== delivered) findings.revokedAfterDelivery.push(`${where}: at once`);
    watched.printed += await recoverAll(at, where, { findings, place });
    await auditRecovered(watched, secret);
    return wasKilled(ended) || ended.code === scene.childKilled;
  });
}

/** A test that kills the scene's command everywhere, or at `sample` points where not all of them are asked for. */
export function killTest(scene: Scene, { sample }: { sample: number }): void {
  const isTraced = sayWhetherTraced(`SIGKILL at every call of ${scene.name}`);
  describe.runIf(isTraced)(`${scene.name}, killed`, () => {
    const desk = new Desk();
    afterAll(() => desk.close());

    it("at every file and network call, and recovered", { timeout: 7_200_000 }, async () => {
      const all = await pointsOf(desk, scene);
      const points = isFull ? all : sampleOf(all, sample);
      const findings = new Findings();
      const { hit, missed } = await killAtEach(desk, scene, { points, findings });
      console.log(
        `${scene.name}: ${hit} of ${points.length} points hit (a full run has ${all.length}); ${findings.figures}`,
      );
      expect(findings.all).toEqual([]);
      expect(missed).toEqual([]);
    });
  });
}
