// Plays histories of one-seed.ts and nights.ts in one process for each core.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { rolldown } from "rolldown";

/** @param root the tree whose sources are tested */
export async function liveHistories(root, { first, count, shown = 60, kind = "any" }) {
  const folder = mkdtempSync(join(tmpdir(), "integ-histories-"));
  const file = join(folder, "driver.mjs");
  try {
    const bundle = await rolldown({ input: join(root, "test/model/one-seed-driver.ts"), platform: "node" });
    await bundle.write({ file, format: "esm", codeSplitting: false });
    await bundle.close();
    const workers = Math.min(count, availableParallelism());
    const seeds = Array.from({ length: workers }, (_, index) => [first + index, count - index, workers, shown, kind]);
    return combined(await Promise.all(seeds.map((some) => liveIn(file, some))));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function liveIn(file, words) {
  return new Promise((done, fail) => {
    const child = spawn(process.execPath, [file, ...words.map(String)], { stdio: ["ignore", "pipe", "inherit"] });
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (chunk) => (text += chunk));
    child.on("error", fail);
    child.on("close", (code) => {
      if (code === 0 && text !== "") done(JSON.parse(text));
      else fail(new Error(`a process of histories ended with ${code}: ${text}`));
    });
  });
}

function combined(parts) {
  const sum = (name) => parts.reduce((all, part) => all + part[name], 0);
  const found = parts.flatMap((part) => part.found ?? []).toSorted((a, b) => a.seed - b.seed);
  const names = ["histories", "hostile", "processes", "turns", "kills", "refusals", "refusalsOfHostile"];
  const total = Object.fromEntries(names.map((name) => [name, sum(name)]));
  return { total, found: found[0], processorSeconds: Math.round(sum("processorMs") / 1000) };
}
