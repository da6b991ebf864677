// One seed, one world: 2 to 8 processes of changes/ take turns at each await, in memory; faults, kills, lost leases, clocks
// that jump, other environments and false receipts follow from the seed. INTEG_TEST_SEED=<n> plays one history again.
import { expect, it } from "vitest";
import { isFull } from "../support/sample.ts";
import { liveThrough } from "./one-seed.ts";

const { INTEG_TEST_SEED: given, INTEG_TEST_HISTORIES: count } = process.env;

it("no history breaks a promise", { timeout: 3_600_000 }, async () => {
  const first = given === undefined ? 1 : Number(given);
  const histories = given === undefined ? Number(count ?? (isFull ? 100_000 : 1000)) : 1;
  const total = { processes: 0, kills: 0, turns: 0 };
  for (let seed = first; seed < first + histories; seed += 1) {
    const { broken, history, processes, kills } = await liveThrough(seed);
    total.processes += processes;
    total.kills += kills;
    total.turns += history.length;
    if (broken.length > 0)
      throw new Error(
        `seed ${seed} (INTEG_TEST_SEED=${seed} plays it again):\n${broken.join("\n")}\n\n${history.slice(given === undefined ? -60 : 0).join("\n")}`,
      );
  }
  console.log(
    `one seed: ${histories} histories from seed ${first}, ${total.processes} processes, ${total.turns} turns, ${total.kills} kills, 0 broken promises`,
  );
  expect(total.turns).toBeGreaterThan(histories);
});
