// Plays the scenes of harness.ts with the journal in PostgreSQL, and with a fault before one of the messages.
import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, expect } from "vitest";
import { recordFigure } from "../support/figures.mjs";
import { Crossing, type Passage, type Verdict } from "../support/crossing.ts";
import { journalOf, unsettledIn } from "../support/journal-file.ts";
import { PostgresServer, role } from "../support/postgres.ts";
import { type Ended, ended, type Home, stayInThisProcess } from "../support/program.ts";
import { isFull } from "../support/sample.ts";
import { spread } from "../support/strace.ts";
import { keepJournalsIn } from "../support/team-journal.ts";
import { endOf, Findings, type Scene, type Stage } from "./harness.ts";

/** A key's recovery waits for the lease and the request of the killed process, so both limits are short. */
const shortLease = { INTEG_TIMEOUT: "2s", INTEG_LEASE: "3s" };
const leaseMs = 3500;

/** Lets the lease end before the recovery, and lets a list prove that a key is missing. */
export function afterLease(scene: Scene): Scene {
  const settle = async (): Promise<void> => {
    await wait(leaseMs);
    await scene.settle?.();
  };
  return { ...scene, settle };
}

export interface Disturbance {
  readonly name: string;
  /** The links on which messages are disturbed. The default is both links. */
  readonly links?: readonly Passage["link"][];
  /** True if the program survives the fault, so that it may run in the test's process. */
  readonly isSurvived?: boolean;
  /** True to count each message of PostgreSQL's protocol, instead of each change of direction. */
  readonly byMessage?: boolean;
  act(process: { kill(signal: NodeJS.Signals): unknown } | undefined): Verdict | Promise<Verdict>;
  after?(): Promise<void>;
}

export interface TeamDeskOptions {
  readonly settings?: readonly string[];
  /** True to add a synchronous standby, which replaces the server in `failOver`. */
  readonly hasStandby?: boolean;
}

export class TeamDesk {
  readonly #crossing = new Crossing();
  readonly #settings: readonly string[];
  #server: PostgresServer | undefined;
  #standby: PostgresServer | undefined;
  #former: PostgresServer | undefined;

  constructor({ settings = [], hasStandby = false }: TeamDeskOptions = {}) {
    this.#settings = settings;
    stayInThisProcess();
    beforeAll(async () => {
      this.#use(await PostgresServer.start({ settings }));
      if (hasStandby) await this.#addStandby();
    });
    afterAll(async () => {
      keepJournalsIn(undefined);
      await this.#crossing.close();
      for (const server of [this.#former, this.#standby, this.#server]) await server?.remove();
    });
  }

  #use(server: PostgresServer): void {
    this.#server = server;
    keepJournalsIn({ address: server.address(), password: role.password });
  }

  async #addStandby(): Promise<void> {
    await this.#former?.remove();
    this.#former = undefined;
    this.#standby = await PostgresServer.start({ settings: this.#settings, standbyOf: this.server });
    await this.#setStandbys("'*'");
    const state = "SELECT FROM pg_stat_replication WHERE sync_state = 'sync'";
    for (let look = 0; (await this.server.sql(state)).length === 0; look += 1) {
      if (look > 400) throw new Error("the standby is not synchronous");
      await wait(25);
    }
  }

  async #setStandbys(names: string): Promise<void> {
    await this.server.sql(`ALTER SYSTEM SET synchronous_standby_names = ${names}`);
    await this.server.sql("SELECT pg_reload_conf()");
  }

  async failOver(): Promise<void> {
    const standby = this.#standby;
    if (standby === undefined) throw new Error("there is no standby");
    await this.server.kill();
    this.#former = this.#server;
    await standby.promote();
    this.#standby = undefined;
    this.#use(standby);
    await this.#setStandbys("''");
  }

  get server(): PostgresServer {
    if (this.#server === undefined) throw new Error("the server is started before the first test");
    return this.#server;
  }

  stage(scene: Scene): Promise<Stage> {
    return scene.stage({ through: this.#crossing.through });
  }

  async run({ at, words }: Stage, what: Disturbance, number?: number): Promise<{ ended: Ended; passed: Passage[] }> {
    // Creates the tables first, so that all later messages belong to the command.
    await at.integ(["journal", "init"]);
    // The preparation released its lease without waiting for the disk: a checkpoint makes the release durable.
    if (this.#settings.length > 0) await this.server.sql("CHECKPOINT");
    if (this.#former !== undefined) await this.#addStandby();
    const port = await this.#crossing.portTo("journal", this.server.port);
    const hosts = [port, ...(this.#standby ? [this.#standby.port] : [])].map((one) => `127.0.0.1:${one}`);
    const journal = atHosts(at, hosts.join(","));
    const env = { ...shortLease, INTEG_JOURNAL: journal };
    const child = what.isSurvived ? undefined : at.start(words, { env });
    let acting = Promise.resolve<Verdict>("pass");
    const act = (): Promise<Verdict> => (acting = Promise.resolve(what.act(child)));
    const plan = number === undefined ? undefined : { at: number, act };
    this.#crossing.watch({ plan, byMessage: what.byMessage });
    const end = await (child ? ended(child, { timeoutMs: 120_000 }) : at.integ(words, { env }));
    const isDone = this.#crossing.isDone;
    const passed = this.#crossing.passed();
    await acting;
    await what.after?.();
    at.env.INTEG_JOURNAL = atHosts(at, `127.0.0.1:${this.server.port}`);
    return { ended: end, passed: isDone ? passed : [] };
  }

  async passages(scene: Scene, what: Disturbance): Promise<Passage[]> {
    const stage = await this.stage(scene);
    try {
      const { ended: end, passed } = await this.run(stage, what);
      expect(end.code, end.stderr).toBe(scene.code ?? 0);
      return passed;
    } finally {
      stage.remove();
    }
  }

  async playEach(scene: Scene, what: Disturbance, sample: number): Promise<void> {
    const passages = await this.passages(scene, what);
    const all = passages.flatMap(({ link }, number) => (what.links?.includes(link) === false ? [] : [number]));
    const numbers = isFull ? all : spread(aroundService(passages, all), sample + 2).slice(1, -1);
    const findings = new Findings();
    const missed: string[] = [];
    const ways: Record<string, number> = {};
    const left: (() => Promise<string>)[] = [];
    let isAnyOpen = false;
    const finish = async (): Promise<void> => {
      for (const recover of left.splice(0)) {
        const way = await recover();
        ways[way] = (ways[way] ?? 0) + 1;
      }
    };
    for (const number of numbers) {
      const { link, side } = passages[number]!;
      const where = `${scene.name}, ${what.name} at message ${number} (${side} of the ${link})`;
      const recover = await this.#play(scene, { what, number, where, findings });
      if (recover) left.push(recover.go);
      else missed.push(where);
      isAnyOpen ||= recover?.isOpen === true;
      if (scene.settle === undefined) await finish();
    }
    if (isAnyOpen) await scene.settle?.();
    await finish();
    console.log(`${scene.name}, ${what.name}: ${JSON.stringify(ways)}`);
    const hit = numbers.length - missed.length;
    recordFigure("team", { messages: all.length, hit, violations: findings.count }, `${scene.name}, ${what.name}`);
    expect(findings.all).toEqual([]);
    // A run may have one or two messages fewer than the recorded run.
    expect(missed.length, missed.join(", ")).toBeLessThanOrEqual(2);
  }

  async #play(
    scene: Scene,
    { what, number, where, findings }: { what: Disturbance; number: number; where: string; findings: Findings },
  ): Promise<{ readonly isOpen: boolean; readonly go: () => Promise<string> } | undefined> {
    const stage = await this.stage(scene);
    try {
      const { ended: end, passed } = await this.run(stage, what, number);
      if (passed.length === 0) {
        stage.remove();
        return undefined;
      }
      const run = { findings, where: `${where}, ${endOf(end)}`, ended: end, recoveries: 3 };
      await stage.audit(run);
      const open = unsettledIn(journalOf(stage.at)).filter(({ state }) => state !== "waiting");
      if (end.code === 0 && open.length > 0 && !/warning/.test(end.stderr))
        findings.falseSuccesses.push(`${run.where}: done, and the journal has it as ${open[0]!.state}`);
      const go = (): Promise<string> => {
        // A standby may have replaced the server since this run.
        stage.at.env.INTEG_JOURNAL = atHosts(stage.at, `127.0.0.1:${this.server.port}`);
        return stage.recover(run).finally(() => stage.remove());
      };
      return { isOpen: open.length > 0, go };
    } catch (error) {
      stage.remove();
      throw error;
    }
  }
}

function atHosts({ env }: Pick<Home, "env">, hosts: string): string {
  return env.INTEG_JOURNAL!.replace(/@[^/]*\//, `@${hosts}/`);
}

/** A sample omits messages far from the requests to the service, such as those that open the journal's connection. */
function aroundService(passages: readonly Passage[], all: readonly number[]): number[] {
  const [first, last] = [
    passages.findIndex(({ link }) => link === "service"),
    passages.findLastIndex(({ link }) => link === "service"),
  ];
  const near = first < 0 ? [] : all.filter((number) => number >= first - 4 && number <= last + 8);
  return near.length > 0 ? near : [...all];
}
