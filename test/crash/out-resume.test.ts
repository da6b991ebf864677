// `--out --resume` killed at every file and network call, and killed again while it goes on: the file that comes of it
// must be, byte for byte, the one of a walk that nobody disturbed.
import { readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ListServer, pagesOf, startListServer } from "../e2e/list-server.ts";
import { type Ended, Home } from "../support/program.ts";
import { killedAt, nameOf, type Point, record, sayWhetherTraced, spread, wasKilled } from "../support/strace.ts";

const isFull = process.env.INTEG_TEST_FULL === "1";
const formats = ["ndjson", "json", "csv"] as const;
const file = "rows.out";

let server: ListServer;
beforeAll(async () => {
  const pages = pagesOf([0, 3, 1, 0, 4, 2]);
  server = await startListServer((asked) => {
    const page = pages(asked);
    // The place is noted once a second: here a second passes, so that it is noted again in the middle.
    const delayMs = asked.token === "token-3" ? 1100 : 0;
    return (response) =>
      void wait(delayMs).then(() => response.writeHead(200, { "content-type": "application/json" }).end(page));
  });
});
afterAll(() => server.stop());

const contentOf = (at: Home): string => readFileSync(at.path(file), "utf8");

function walk(at: Home, format: string, { resume = false, under = [] as readonly string[] } = {}): Promise<Ended> {
  const words = ["entities", "list", "--all", "--limit", "5", "-o", format, "--out", file];
  return at.integ(resume ? [...words, "--resume"] : words, { under });
}

async function inHome<T>(work: (at: Home) => Promise<T>): Promise<T> {
  const at = new Home(server.env);
  try {
    return await work(at);
  } finally {
    at.remove();
  }
}

/** What is wrong after a kill at this point, and after another one while it goes on; empty where nothing is. */
async function faultsAt(point: Point, { format, whole }: { format: string; whole: string }): Promise<string[]> {
  return inHome(async (at) => {
    const faults: string[] = [];
    const killed = await walk(at, format, { under: killedAt(point) });
    if (!wasKilled(killed))
      return killed.code === 0 && contentOf(at) === whole ? [] : [`not killed, and ${killed.code}`];
    const again = await walk(at, format, { resume: true, under: killedAt(point) });
    if (!wasKilled(again) && again.code !== 0 && !isWholeAlready(again)) faults.push(`second run: ${again.stderr}`);
    const last = await walk(at, format, { resume: true });
    if (last.code !== 0 && !isWholeAlready(last)) faults.push(`last run: ${last.code} ${last.stderr}`);
    else if (contentOf(at) !== whole) faults.push(`another file: ${JSON.stringify(contentOf(at))}`);
    return faults;
  });
}

/** A walk that was done before its process was killed has nothing to go on from; it is refused, and the file stays. */
function isWholeAlready({ code, stderr }: Ended): boolean {
  return code === 2 && stderr.includes("nothing says where its walk stopped");
}

describe.runIf(sayWhetherTraced("lists that are resumed after a kill"))("--out --resume", () => {
  it.each(formats)("killed at every call, %s loses and repeats no row", { timeout: 3_600_000 }, async (format) => {
    const { whole, points } = await inHome(async (at) => {
      const { points, ended } = await record((under) => walk(at, format, { under }));
      expect([ended.code, ended.stderr.includes("integ:")]).toEqual([0, false]);
      return { whole: contentOf(at), points };
    });
    expect(whole.match(/ent_\d+/g)).toHaveLength(10);
    const first = points.findIndex(({ text }) => text.includes(file));
    expect(first).toBeGreaterThan(0);
    const chosen = isFull ? points : [...spread(points.slice(0, first), 2), ...spread(points.slice(first), 10)];
    const found: Record<string, string[]> = {};
    for (const point of chosen) {
      const faults = await faultsAt(point, { format, whole });
      if (faults.length > 0) found[nameOf(point)] = faults;
    }
    console.log(
      `--out --resume, ${format}: ${chosen.length} of ${points.length} points, rows lost or repeated at ${Object.keys(found).length}`,
    );
    expect(found).toEqual({});
  });
});
