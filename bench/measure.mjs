// Runs commands side by side. Each round runs every command once, so that other load affects all of them. Results are
// ratios of two commands within a round.
import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";

export function timed({ command: [program, ...words], env }) {
  const output = openSync("/dev/null", "w");
  return new Promise((resolve, reject) => {
    const startedAt = performance.now();
    const child = spawn(program, words, { env, stdio: ["ignore", output, "pipe"] });
    let seconds = 0;
    let errors = "";
    child.stderr.on("data", (chunk) => (errors += chunk));
    child.on("error", reject);
    child.on("exit", () => (seconds = (performance.now() - startedAt) / 1000));
    child.on("close", (code) => {
      if (code === 0) resolve(seconds);
      else reject(new Error(`${[program, ...words].join(" ")} ended with ${code}: ${errors}`));
    });
  }).finally(() => closeSync(output));
}

/** @param how.isWarm true if long runs need no warm-up */
export async function sideBySide(commands, { rounds, isWarm = false }) {
  const names = Object.keys(commands);
  const seconds = Object.fromEntries(names.map((name) => [name, []]));
  if (!isWarm) for (const name of names) await timed(commands[name]);
  for (let round = 0; round < rounds; round += 1) {
    // Alternate the order, so that no command always runs after the same command.
    for (const name of round % 2 === 0 ? names : names.toReversed()) seconds[name].push(await timed(commands[name]));
  }
  return {
    seconds: (name) => spread(seconds[name]),
    ratio: (name, other) => spread(seconds[name].map((value, round) => value / seconds[other][round])),
  };
}

export function spread(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share) => {
    const place = (sorted.length - 1) * share;
    const below = sorted[Math.floor(place)];
    return below + (sorted[Math.ceil(place)] - below) * (place % 1);
  };
  return { median: at(0.5), low: at(0.25), high: at(0.75) };
}
