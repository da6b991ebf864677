import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, it } from "vitest";
import { Home, root } from "../support/program.ts";
import { isFull } from "../support/sample.ts";
import { isMissing } from "../support/tools.mjs";

it.skipIf(isMissing("curl", "jq"))(
  "the benchmark runs and prints a figure for each measurement",
  { timeout: 180_000 },
  () => {
    const home = new Home();
    const words = ["--quick", "--no-build", "--only", isFull ? "starts,list,memory" : "starts"];
    const command = [join(root, "bench", "run.mjs"), ...words];
    const { status, stdout, stderr } = spawnSync(process.execPath, command, { env: home.env, encoding: "utf8" });
    home.remove();
    expect([status, stderr]).toEqual([0, expect.any(String)]);
    const [head, , ...rows] = stdout.split("\n").flatMap((line) => (line.startsWith("|") ? [line.split("|")] : []));
    expect(head!.map((cell) => cell.trim())).toEqual([
      "",
      "",
      "against",
      expect.stringMatching(/^Node \d/),
      "goal",
      "",
    ]);
    const figures = rows.map(([, what = "", ...cells]) => `${what.trim()}: ${cells.at(-3)!.trim()}`);
    expect(figures.length).toBeGreaterThan(isFull ? 12 : 4);
    for (const line of figures) expect(line).toMatch(/: ([\d.]+ ×.*)?[\d.]+ (s|ms|MB)$/);
  },
);
