import { readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ListServer, pagesOf, startListServer } from "../e2e/list-server.ts";
import { type Ended, Home } from "../support/program.ts";
import { killedAt, type Point, spread, wasKilled } from "../support/strace.ts";
import { type Fault, playEach, pointsOf, type Run, type Scene, type Stage } from "./harness.ts";
import { isMissing } from "../support/tools.mjs";

const file = "rows.out";

let server: ListServer;
beforeAll(async () => {
  const pages = pagesOf([0, 3, 1, 0, 4, 2]);
  server = await startListServer((asked) => {
    const page = pages(asked);
    // The program records its offset once a second. This delay leads to a record in the middle of the list.
    const delayMs = asked.token === "token-3" ? 1100 : 0;
    return (response) =>
      void wait(delayMs).then(() => response.writeHead(200, { "content-type": "application/json" }).end(page));
  });
});
afterAll(() => server.stop());

class WalkStage implements Stage {
  readonly at = new Home(server.env);
  readonly words: readonly string[];
  readonly #whole: string;

  constructor(format: string, whole: string) {
    this.words = ["entities", "list", "--all", "--limit", "5", "-o", format, "--out", file];
    this.#whole = whole;
  }

  audit(): Promise<void> {
    return Promise.resolve();
  }

  async recover({ findings, where, fault }: Run): Promise<string> {
    const resume = [...this.words, "--resume"];
    const again = await this.at.integ(resume, { under: killedAt(fault!.point) });
    if (!wasKilled(again) && !hasEnded(again)) findings.unfinished.push(`${where}: second run: ${again.stderr}`);
    const last = await this.at.integ(resume);
    if (!hasEnded(last)) findings.unfinished.push(`${where}: last run: ${last.code} ${last.stderr}`);
    else if (this.content() !== this.#whole)
      findings.tornFiles.push(`${where}: another file: ${JSON.stringify(this.content())}`);
    return last.code === 0 ? "resumed" : "whole already";
  }

  content(): string {
    return readFileSync(this.at.path(file), "utf8");
  }

  remove(): void {
    this.at.remove();
  }
}

/** Exit 2 with this message means that an earlier run completed the file. */
function hasEnded({ code, stderr }: Ended): boolean {
  return code === 0 || (code === 2 && stderr.includes("there is nothing to resume"));
}

async function undisturbed(format: string): Promise<string> {
  const stage = new WalkStage(format, "");
  const { code, stderr } = await stage.at.integ(stage.words);
  expect([code, stderr.includes("integ:")]).toEqual([0, false]);
  const whole = stage.content();
  expect(whole.match(/ent_\d+/g)).toHaveLength(10);
  stage.remove();
  return whole;
}

describe.skipIf(isMissing("strace"))("--out --resume", () => {
  it.each([
    ["ndjson", 2],
    ["json", 1],
    ["csv", 1],
  ] as const)("killed at any call, %s loses and repeats no row", { timeout: 3_600_000 }, async (format, sample) => {
    const whole = await undisturbed(format);
    const stage = (): Promise<Stage> => Promise.resolve(new WalkStage(format, whole));
    const scene: Scene = { name: `--out --resume, ${format}`, stage };
    const points = await pointsOf(scene);
    const first = points.findIndex(({ text }) => text.includes(file));
    expect(first).toBeGreaterThan(0);
    const killed = (point: Point): Fault => ({ point });
    const chosen = [points[first - 1]!, ...spread(points.slice(first), sample)];
    await playEach(scene, { all: points.map(killed), sample: chosen.map(killed), figure: "kill" });
  });
});
