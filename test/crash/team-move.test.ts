// Kills `journal move` before a message to or from PostgreSQL, or cuts its connection there, and repeats the move.
import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { Crossing } from "../support/crossing.ts";
import { recordFigure } from "../support/figures.mjs";
import { addressAt, PostgresServer, teamAccess } from "../support/postgres.ts";
import { ended, Home, stayInThisProcess } from "../support/program.ts";
import { isFull } from "../support/sample.ts";
import { type Service, startService } from "../support/service.ts";
import { spread } from "../support/strace.ts";
import { isMissing } from "../support/tools.mjs";

/** Omits the first line of an export, which has the time of the export. */
const recordsOf = (text: string): string => text.slice(text.indexOf("\n"));

type End = (typeof ends)[number];
const ends = ["killed", "cut"] as const;

type Direction = "out of a file" | "back into its file" | "to other tables";

describe.skipIf(isMissing("PostgreSQL"))("a killed move loses nothing", () => {
  let server: PostgresServer;
  let service: Service;
  let exported = "";
  let schemas = 0;
  const crossing = new Crossing();

  beforeAll(async () => {
    stayInThisProcess();
    [server, service] = await Promise.all([PostgresServer.start(), startService()]);
    const at = home();
    await at.integ(create("one"));
    await at.integ(["journal", "recover"]);
    await service.fault("POST /v1/oauth_clients drop=before times=1");
    await at.integ([...create("two"), "--retry-for", "0"]);
    exported = (await at.integ(["journal", "export"])).stdout;
    expect(exported.trim().split("\n").length).toBeGreaterThan(2);
    at.remove();
  });
  afterAll(async () => {
    await crossing.close();
    await service?.stop();
    await server?.remove();
  });

  const home = (): Home => new Home({ ...service.env, ...teamAccess });

  const create = (file: string): string[] => {
    const words = ["oauth-clients", "create", "--service-account", service.us.service_account_id];
    return [...words, "--scope", "entity:read", "--new", "--secret-file", file];
  };

  async function mayChange(at: Home, where: { env: Record<string, string> }): Promise<boolean> {
    const { code } = await at.integ(["journal", "prune", "--older-than", "0", "--dry-run"], where);
    const { stdout } = await at.integ(["journal", "list", "--all", "--json"], where);
    return code === 0 && (JSON.parse(stdout) as { data: unknown[] }).data.length > 0;
  }

  /** Moves a journal under a fault, and repeats the move. @returns the number of messages of the first move, and violations */
  async function move(
    direction: Direction,
    { point, end = "killed" }: { readonly point?: number; readonly end?: End } = {},
  ): Promise<{ messages: number; wrong: string[] }> {
    const at = home();
    await new Account(service).clear();
    try {
      const port = await crossing.portTo("journal", server.port);
      const tables = async (): Promise<string> => {
        const address = addressAt(`127.0.0.1:${port}`, `moved_${(schemas += 1)}`);
        await at.integ(["journal", "init"], { env: { INTEG_JOURNAL: address } });
        return address;
      };
      const from = direction === "out of a file" ? at.path("from.ndjson") : await tables();
      const to = direction === "back into its file" ? at.path("to.ndjson") : await tables();
      writeFileSync(at.path("export"), exported);
      const [old, other] = [{ env: { INTEG_JOURNAL: from } }, { env: { INTEG_JOURNAL: to } }];
      const isBack = direction === "back into its file";
      await at.integ(["journal", "import", at.path("export")], isBack ? other : old);
      if (isBack) await at.integ(["journal", "move", "--to", from], other);
      const words = ["journal", "move", "--to", to];
      const child = at.start(words, old);
      const act = (): "cut" => {
        if (end === "killed") child.kill("SIGKILL");
        return "cut";
      };
      crossing.watch({ plan: point === undefined ? undefined : { at: point, act } });
      await ended(child);
      const messages = crossing.passed().length;
      const wrong: string[] = [];
      if (point !== undefined && (await mayChange(at, old)) && (await mayChange(at, other)))
        wrong.push("an entry may be changed in both");
      const again = await at.integ(words, old);
      if (again.code !== 0) wrong.push(`typed again: ${again.code} ${again.stderr}`);
      const there = (await at.integ(["journal", "export"], other)).stdout;
      if (recordsOf(there) !== recordsOf(exported)) wrong.push("the copy differs");
      for (const where of [old, other]) {
        const { code, stdout } = await at.integ(["journal", "verify"], where);
        if (code !== 0) wrong.push(`verify: ${stdout}`);
      }
      const late = await at.integ(create("late"), old);
      if (late.code !== 2 || !late.stderr.includes("were moved to"))
        wrong.push(`through the old one: ${late.code} ${late.stderr}`);
      const here = await at.integ(create("here"), other);
      if (here.code !== 0) wrong.push(`through the new one: ${here.code} ${here.stderr}`);
      return { messages, wrong: wrong.map((text) => `message ${point}: ${text}`) };
    } finally {
      at.remove();
    }
  }

  const directions: readonly Direction[] = ["out of a file", "back into its file", "to other tables"];

  it.each(isFull ? directions : directions.slice(0, 2))("%s", { timeout: 3_600_000 }, async (direction) => {
    const { messages, wrong } = await move(direction);
    const all = Array.from({ length: messages }, (_, number) => number);
    for (const [place, end] of ends.entries()) {
      // A sample kills the program at one message, and cuts the connection at another.
      const points = isFull ? all : spread(all, 4).slice(place + 1, place + 2);
      const ofEnd: string[] = [];
      for (const point of points) ofEnd.push(...(await move(direction, { point, end })).wrong);
      const figures = { messages, hit: points.length, violations: ofEnd.length };
      recordFigure("team", figures, `journal move ${direction}, ${end}`);
      wrong.push(...ofEnd.map((text) => `${end}: ${text}`));
    }
    expect(wrong).toEqual([]);
  });
});
