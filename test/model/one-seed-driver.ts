// Lives through histories in a process of its own: every n-th seed, until one breaks a promise.
import { liveThrough } from "./one-seed.ts";

const [first = 1, count = 1, step = 1, shown = 0] = process.argv.slice(2).map(Number);
const total = { histories: 0, processes: 0, turns: 0, kills: 0 };
let found:
  | { readonly seed: number; readonly broken: readonly string[]; readonly history: readonly string[] }
  | undefined;
for (let seed = first; seed < first + count && found === undefined; seed += step) {
  const { broken, history, processes, kills } = await liveThrough(seed);
  total.histories += 1;
  total.processes += processes;
  total.turns += history.length;
  total.kills += kills;
  if (broken.length > 0) found = { seed, broken, history: history.slice(-shown) };
}
const { user, system } = process.cpuUsage();
process.stdout.write(JSON.stringify({ ...total, processorMs: (user + system) / 1000, found }));
