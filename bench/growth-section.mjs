// What a list costs as it grows: seconds of processor at each size, which other work on the machine hardly changes.
import { processorSeconds, sideBySide } from "./measure.mjs";

const forms = {
  NDJSON: ["--ndjson"],
  "--fields id,email": ["--ndjson", "--fields", "id,email"],
  CSV: ["-o", "csv"],
  YAML: ["-o", "yaml"],
};

/** @returns lines as of sections.mjs, with the `form` and the `size` that the chart of growth is drawn from */
export async function growth({ workplace, plan }) {
  const lines = [];
  for (const [form, words] of Object.entries(forms)) {
    const contenders = Object.fromEntries(
      plan.growthSizes.map((rows) => [
        rows,
        workplace.integ(["entities", "list", "--all", "--limit", "500", ...words], { list: { rows } }),
      ]),
    );
    const found = await sideBySide(contenders, { rounds: plan.growthRounds, measure: processorSeconds });
    for (const size of plan.growthSizes) {
      const what = `${size.toLocaleString("en")} rows, ${form}`;
      lines.push({ what, against: `${plan.growthSizes[0].toLocaleString("en")} rows`, form, size, ...found[size] });
    }
  }
  return lines;
}
