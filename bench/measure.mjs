// Measures contenders side by side: every round runs each of them once, one after the other, so that whatever else
// the machine does meets all of them alike; what counts is the ratio within a round.
import { spawn, spawnSync } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";

/** Runs a command to its end with its output thrown away. @returns seconds */
export function timed({ name, command: [program, ...words], env, statuses = [0], out = "/dev/null" }) {
  const fd = openSync(out, "w");
  return new Promise((resolve, reject) => {
    const begun = performance.now();
    const child = spawn(program, words, { env, stdio: ["ignore", fd, "pipe"] });
    let errors = "";
    child.stderr.on("data", (chunk) => (errors += chunk));
    child.on("error", reject);
    let seconds = 0;
    child.on("exit", () => (seconds = (performance.now() - begun) / 1000));
    child.on("close", (code) => {
      if (statuses.includes(code)) resolve(seconds);
      else reject(new Error(`${name} ended with ${code}: ${errors}`));
    });
  }).finally(() => closeSync(fd));
}

/** Runs a command to its end. @returns the seconds of processor it used: other work on the machine hardly changes them */
export async function processorSeconds({ name, command, env, statuses = [0], out = "/dev/null" }) {
  const line = 'TIMEFORMAT="%3U %3S"; time "$@" >"$OUT" 2>/dev/null';
  const { status, stderr } = spawnSync("bash", ["-c", line, "bash", ...command], {
    env: { ...env, OUT: out },
    encoding: "utf8",
  });
  if (!statuses.includes(status)) throw new Error(`${name} ended with ${status}`);
  const [user, system] = stderr.trim().split(" ").map(Number);
  return user + system;
}

/**
 * @param measure gives the seconds of one run
 * @param contenders by name; the first is the floor that the others are compared with
 * @param about.isTurned false if one must run behind the one before it
 * @param about.isWarm true if nothing is to be run unmeasured before the first round: what takes long has no caches to fill
 * @param about.worked what is worked out of the seconds of a round, by name: it is shown as if it had been measured
 * @returns for each: the median of its seconds, and of its ratios to the floor of the same round, with quartiles
 */
export async function sideBySide(
  contenders,
  { rounds, measure = timed, isTurned = true, isWarm = false, worked = {} },
) {
  const names = Object.keys(contenders);
  const seconds = Object.fromEntries(names.map((name) => [name, []]));
  // Once unmeasured: caches of the disk and of the compiler fill.
  if (!isWarm) for (const name of names) await measure(contenders[name]);
  for (let round = 0; round < rounds; round += 1) {
    // Forth and back, so that no one always runs behind the same one.
    for (const name of isTurned && round % 2 === 1 ? names.toReversed() : names)
      seconds[name].push(await measure(contenders[name]));
  }
  const floor = seconds[names[0]];
  for (const [name, work] of Object.entries(worked))
    seconds[name] = floor.map((_, round) => work(Object.fromEntries(names.map((one) => [one, seconds[one][round]]))));
  return Object.fromEntries(
    Object.keys(seconds).map((name) => [
      name,
      { seconds: spread(seconds[name]), ratio: spread(seconds[name].map((value, round) => value / floor[round])) },
    ]),
  );
}

/** Runs a command once. @returns its peak memory in megabytes (10⁶ bytes) */
export async function peakMegabytes(contender, file) {
  await timed(noting(contender, file));
  return notedMegabytes(file);
}

/** @returns the same command, of a Node that `peak-memory.cjs` is loaded into: it writes its peak memory to the file */
export function noting(contender, file) {
  return { ...contender, env: { ...contender.env, BENCH_PEAK_FILE: file } };
}

export function notedMegabytes(file) {
  return (Number(readFileSync(file, "utf8")) * 1024) / 1e6;
}

/** Median, with the quartiles around it and the extremes. */
export function spread(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share) => {
    const place = (sorted.length - 1) * share;
    const below = sorted[Math.floor(place)];
    return below + (sorted[Math.ceil(place)] - below) * (place % 1);
  };
  return { median: at(0.5), low: at(0.25), high: at(0.75), least: at(0), most: at(1), of: sorted.length };
}
