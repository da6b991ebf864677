// Finishing a thousand interrupted creations among a hundred thousand entries: seconds of processor, and how they grow.
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { startServer } from "./account-service.mjs";
import { makeJournal } from "./made-journal.mjs";
import { processorSeconds, spread, timed } from "./measure.mjs";

/** @returns lines as of sections.mjs */
export async function recover({ workplace, plan }) {
  const server = await startServer();
  try {
    const url = server.baseUrl();
    const account = { profile: "env", profile_id: `env:${url}`, organization_id: null, base_url: url };
    const lines = [];
    let first;
    for (const unsettled of plan.recoverUnsettled) {
      const folder = join(workplace.folder, `recover-${unsettled}`);
      const path = join(folder, "journal.ndjson");
      makeJournal(path, { entries: plan.recoverEntries, unsettled, account });
      // Each change keeps the journal's index, so a journal has one; what it takes to make one is another section's.
      await timed(workplace.integ(["journal", "list", "--json"], { env: { INTEG_JOURNAL: path } }));
      const seconds = [];
      for (let round = 0; round < plan.recoverRounds; round += 1)
        seconds.push(await recovered(workplace, { folder, url }));
      rmSync(folder, { recursive: true });
      const found = spread(seconds);
      first ??= { unsettled, median: found.median };
      const entries = plan.recoverEntries.toLocaleString("en");
      lines.push({
        what: `recover ${unsettled} of ${entries} entries`,
        against: `${first.unsettled}, for each of them`,
        seconds: found,
        ratio: { median: found.median / unsettled / (first.median / first.unsettled) },
        bar: unsettled === 1000 ? { mostSeconds: 8 } : undefined,
        note: "seconds of processor",
      });
    }
    return lines;
  } finally {
    server.stop();
  }
}

/** Of a copy: a recovery is done once. */
async function recovered(workplace, { folder, url }) {
  const copy = `${folder}-copy`;
  cpSync(folder, copy, { recursive: true });
  try {
    const env = {
      INTEG_JOURNAL: join(copy, "journal.ndjson"),
      INTEG_REGION: "us",
      INTEG_BASE_URL: url,
      INTEG_API_KEY: "bench",
    };
    const command = workplace.integ(["journal", "recover", "--json"], { env });
    return await processorSeconds({ ...command, out: join(copy, "out") }); // a secret is not written to the null device
  } finally {
    rmSync(copy, { recursive: true });
  }
}
