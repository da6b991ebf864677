// Two machines that want the same: one of them waits before any of its messages to PostgreSQL while the other does all of its
// work. Each success is a credential of its own that its secret opens.
import { existsSync, readFileSync, renameSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { beforeAll, describe, expect, it } from "vitest";
import type { Verdict } from "../support/crossing.ts";
import { recordFigure } from "../support/figures.mjs";
import { journalOf, unsettledIn } from "../support/journal-file.ts";
import { type Ended, ended, Home, stayInThisProcess } from "../support/program.ts";
import { isFull } from "../support/sample.ts";
import { TeamMachines } from "./team-machines.ts";
import { isMissing } from "../support/tools.mjs";

interface Meeting {
  readonly name: string;
  readonly words: (old: string) => readonly string[];
  /** A request of it was lost before. */
  readonly isBegun: boolean;
  /** How many clients there are if both end with success. */
  readonly made: number;
}

/** What the slower one of two may end with. */
const gaveWay =
  /is in use by|was taken over|no response within|Another process|it was rotated, and|The secret of the unfinished entry/;

const toFile = ["--secret-file", "s", "--force"];

describe.skipIf(isMissing("PostgreSQL"))("two machines that meet", () => {
  const machines = new TeamMachines();
  beforeAll(() => stayInThisProcess());

  const create = (): string[] => {
    const words = ["oauth-clients", "create", "--service-account", machines.service.us.service_account_id];
    return [...words, "--scope", "entity:read", ...toFile];
  };

  const meetings: readonly Meeting[] = [
    { name: "create what is unfinished", words: create, isBegun: true, made: 2 },
    { name: "create", words: create, isBegun: false, made: 2 },
    { name: "recover", words: () => ["journal", "recover", ...toFile], isBegun: true, made: 1 },
    // The later one rotates what the earlier one made.
    { name: "rotate", words: (old) => ["oauth-clients", "rotate", old, ...toFile], isBegun: false, made: 1 },
  ];

  /** @returns the messages of the one that waits, and what is wrong */
  async function meet(
    { words, isBegun, made }: Meeting,
    point?: number,
  ): Promise<{ messages: number; wrong: string[] }> {
    await machines.account.clear();
    // A rotation proves its new client there.
    const proving = { ...machines.service.env, INTEG_TOKEN_ENDPOINT: machines.service.us.token_endpoint };
    const [one, other] = [new Home(proving), new Home(proving)];
    other.env.INTEG_JOURNAL = one.env.INTEG_JOURNAL!;
    const wrong: string[] = [];
    try {
      await one.integ(["journal", "init"]);
      const { id: old } = await machines.account.make(["entity:read"]);
      if (isBegun) {
        await machines.service.fault("POST /v1/oauth_clients drop=before times=1");
        expect((await other.integ([...create(), "--retry-for", "0"])).code).toBe(7);
      }
      const env = { INTEG_JOURNAL: await machines.journalOf(one) };
      const ends: Ended[] = [];
      // The last messages pass when the first one has ended: the other one is waited for here too.
      let met: Promise<void> | undefined;
      const act = async (): Promise<Verdict> => {
        met = other.integ(words(old)).then((end) => void ends.push(end));
        // One that waits for the first one's lease goes on once that goes on, which waits no longer than 10 s for a statement.
        await Promise.race([met, wait(4000, undefined, { ref: false })]);
        return "pass";
      };
      machines.crossing.watch({ plan: point === undefined ? undefined : { at: point, act } });
      const child = one.start(words(old), { env });
      ends.push(await ended(child));
      const messages = machines.crossing.passed().length;
      await met;
      const isMet = ends.length === 2;
      for (const { code, stderr } of ends) if (code !== 0 && !gaveWay.test(stderr)) wrong.push(`${code}: ${stderr}`);
      for (const { id, state } of unsettledIn(journalOf(one))) {
        const { code, stderr } = await one.integ(["journal", "recover", id, ...toFile]);
        if (code !== 0) wrong.push(`${state}, recovered with ${code}: ${stderr}`);
      }
      const live = (await machines.account.live()).filter(({ id }) => id !== old);
      const secrets = [one, other].map((home) => home.path("s")).filter((path) => existsSync(path));
      const opened = new Set<string>();
      for (const path of secrets)
        for (const { client_id } of live)
          if (client_id && (await machines.account.opens(client_id, readFileSync(path, "utf8").trimEnd())))
            opened.add(client_id);
      const wanted = isMet && ends.every(({ code }) => code === 0) ? made : undefined;
      if (opened.size !== live.length || (wanted !== undefined && live.length !== wanted))
        wrong.push(`${live.length} live, ${opened.size} of them open: ${JSON.stringify(ends)}`);
      return { messages, wrong: wrong.map((text) => `message ${point}: ${text}`) };
    } finally {
      one.remove();
      other.remove();
    }
  }

  const names = ["create what is unfinished", "create", "recover", "rotate"];

  it.each(isFull ? names : names.slice(0, 1))("%s", { timeout: 3_600_000 }, async (name) => {
    const meeting = meetings.find((one) => one.name === name)!;
    const { messages, wrong } = await meet(meeting);
    const all = Array.from({ length: messages }, (_, number) => number);
    // In the middle the entry is read and taken.
    const middle = Math.floor(messages / 2);
    const points = isFull ? all : all.slice(middle, middle + 3);
    for (const point of points) wrong.push(...(await meet(meeting, point)).wrong);
    recordFigure("team", { messages, hit: points.length, violations: wrong.length }, `${name}, met by another machine`);
    expect(wrong).toEqual([]);
  });

  /**
   * One that is killed before a message, and what the other one recovers then, to a file of its own: the entry forgets the
   * file of the first one.
   * @returns the messages of the one that is killed, what is wrong, and whether the other one called a delivered secret lost
   */
  async function deliverTwice(point?: number): Promise<{ messages: number; wrong: string[]; isClaimed: boolean }> {
    await machines.account.clear();
    const [one, other] = [new Home(machines.service.env), new Home(machines.service.env)];
    other.env.INTEG_JOURNAL = one.env.INTEG_JOURNAL!;
    try {
      await one.integ(["journal", "init"]);
      const child = one.start(create(), { env: { INTEG_JOURNAL: await machines.journalOf(one) } });
      const act = (): Verdict => {
        child.kill("SIGKILL");
        return "cut";
      };
      machines.crossing.watch({ plan: point === undefined ? undefined : { at: point, act } });
      await ended(child);
      const messages = machines.crossing.passed().length;
      const [unsettled] = unsettledIn(journalOf(one));
      const file = one.path("s");
      const isDelivered = existsSync(file) && readFileSync(file, "utf8") !== "";
      if (!unsettled || !isDelivered) return { messages, wrong: [], isClaimed: false };
      // Another machine does not see the file, which is of this one.
      renameSync(file, one.path("out of sight"));
      const found = await other.integ(["journal", "recover", unsettled.id, ...toFile]);
      if (found.code === 0) return { messages, wrong: [], isClaimed: false };
      const claimed = await one.integ(["journal", "claim", unsettled.id, "--secret-file", "claimed"]);
      const wrong = claimed.code === 0 ? [] : [`message ${point}: ${found.stderr} then ${claimed.stderr}`];
      const [client] = await machines.account.live();
      const secret = claimed.code === 0 ? readFileSync(one.path("claimed"), "utf8").trimEnd() : "";
      if (!(await machines.account.opens(client?.client_id ?? "", secret)))
        wrong.push(`message ${point}: the claimed secret opens nothing`);
      return { messages, wrong, isClaimed: true };
    } finally {
      one.remove();
      other.remove();
    }
  }

  it("calls no secret lost that the one that was killed had delivered", { timeout: 3_600_000 }, async () => {
    const { messages } = await deliverTwice();
    const all = Array.from({ length: messages }, (_, number) => number);
    const wrong: string[] = [];
    let claimed = 0;
    for (const point of isFull ? all : all.slice(-7, -6)) {
      const met = await deliverTwice(point);
      wrong.push(...met.wrong);
      claimed += Number(met.isClaimed);
    }
    expect(wrong).toEqual([]);
    expect(claimed).toBeGreaterThan(0);
  });
});
