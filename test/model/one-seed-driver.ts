// Plays every nth seed until a history breaks a promise. The kind `alone` plays one-seed.ts, and `benign` and `hostile` play
// nights.ts with the actors of other-actors.ts.
import { liveThroughNights } from "./nights.ts";
import { liveThrough } from "./one-seed.ts";

const kinds = ["alone", "benign", "hostile"];
const [, , ...words] = process.argv;
const [first = 1, count = 1, step = 1, shown = 0] = words.slice(0, 4).map(Number);
const wanted = words[4] ?? "any";
const total = { histories: 0, hostile: 0, processes: 0, turns: 0, kills: 0, refusals: 0, refusalsOfHostile: 0 };
let found:
  | { readonly seed: number; readonly broken: readonly string[]; readonly history: readonly string[] }
  | undefined;
for (let seed = first; seed < first + count && found === undefined; seed += step) {
  const kind = wanted === "any" ? kinds[seed % kinds.length] : wanted;
  const isHostile = kind === "hostile";
  const lived = await (kind === "alone" ? liveThrough(seed) : liveThroughNights(seed, isHostile));
  const { broken, history, processes, kills, refusals = 0 } = lived;
  total.histories += 1;
  total.processes += processes;
  total.turns += history.length;
  total.kills += kills;
  if (isHostile) total.hostile += 1;
  total[isHostile ? "refusalsOfHostile" : "refusals"] += refusals;
  if (broken.length > 0) found = { seed, broken, history: history.slice(-shown) };
}
const { user, system } = process.cpuUsage();
process.stdout.write(JSON.stringify({ ...total, processorMs: (user + system) / 1000, found }));
