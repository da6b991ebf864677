// An account with a hundred thousand access keys: what lists and audits cost beyond those of a thousand.
import { join } from "node:path";
import { startServer } from "./account-service.mjs";
import { peakMegabytes, processorSeconds, sideBySide } from "./measure.mjs";

const commands = {
  "keys list": ["keys", "list", "--ndjson"],
  "keys audit": ["keys", "audit", "--json"],
};
const organization = "7d4f7a2e-2d9c-4c1c-9b53-0a3c3f1f0b11";
const hook = join(import.meta.dirname, "peak-memory.cjs");

/** Findings are not a failure of the measurement. @returns lines as of sections.mjs */
export async function keys({ workplace, plan }) {
  const server = await startServer();
  const [few, many] = plan.keyCounts;
  try {
    const lines = [];
    for (const [what, words] of Object.entries(commands)) {
      const command = (count, nodeWords = []) => {
        const env = {
          INTEG_REGION: "us",
          INTEG_BASE_URL: server.baseUrl(count),
          INTEG_ACCESS_TOKEN: "bench",
          INTEG_ORGANIZATION_ID: organization,
        };
        return { ...workplace.integ(words, { env, nodeWords }), statuses: [0, 10] };
      };
      const found = await sideBySide(
        { few: command(few), many: command(many) },
        { rounds: plan.keyRounds, measure: processorSeconds },
      );
      const megabytes = await peakMegabytes(command(many, ["--require", hook]), join(workplace.folder, "peak"));
      const count = many.toLocaleString("en");
      lines.push(
        { what: `${what}, ${count} keys`, against: `${few.toLocaleString("en")} keys`, ...found.many },
        {
          what: `${what}, ${count} keys, peak memory`,
          against: "itself",
          megabytes,
          ratio: { median: 1 },
          bar: { mostMegabytes: 157.3 },
        },
      );
    }
    return lines;
  } finally {
    server.stop();
  }
}
