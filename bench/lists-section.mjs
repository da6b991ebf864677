// Lists in every form and with rows of other kinds than the usual ones: what each costs beside one curl.
import { join } from "node:path";
import { processorSeconds, sideBySide } from "./measure.mjs";

/** What is printed, and what is promised of it: Node 20, and Node 24 if it differs. */
const forms = [
  { what: "NDJSON", words: ["--ndjson"], most: [1.3, 1.1] },
  { what: "JSON", words: ["--json"], most: [1.5, 1.3] },
  { what: "--fields id,email", words: ["--ndjson", "--fields", "id,email"], most: [2] },
  { what: "CSV", words: ["-o", "csv"], most: [3] },
  { what: "--unique", words: ["--ndjson", "--unique"], most: [2.5] },
  { what: "YAML", words: ["-o", "yaml"], most: [6] },
  { what: "--out", words: (out) => ["--ndjson", "--out", out, "--force"] },
  { what: "a table, half the names not ASCII", words: ["-o", "table"], kind: "names", most: [4] },
  { what: "NDJSON, half the names not ASCII", words: ["--ndjson"], kind: "names" },
  { what: "NDJSON, rows of 2 kB", words: ["--ndjson"], kind: "long", most: [2.5] },
];

/** @returns lines as of sections.mjs */
export async function lists({ workplace, plan }) {
  const lines = [];
  for (const [kind, share] of [
    ["usual", 1],
    ["names", 1],
    ["long", 1],
  ]) {
    const list = { rows: Math.round(plan.listRows * share), kind };
    const asked = forms.filter((form) => (form.kind ?? "usual") === kind);
    const contenders = { curl: workplace.curl(list) };
    for (const { what, words } of asked) {
      const typed = typeof words === "function" ? words(join(workplace.folder, "rows.ndjson")) : words;
      contenders[what] = workplace.integ(["entities", "list", "--all", "--limit", "500", ...typed], { list });
    }
    const found = await sideBySide(contenders, { rounds: plan.listRounds });
    const processor = await sideBySide(contenders, { rounds: plan.listProcessorRounds, measure: processorSeconds });
    const count = list.rows.toLocaleString("en");
    for (const { what, most } of asked) {
      const bar = workplace.bar(most);
      const note = `processor ${processor[what].seconds.median.toFixed(2)} s`;
      lines.push({ what: `${count} rows, ${what}`, against: "one curl", ...found[what], bar, note });
    }
  }
  return lines;
}
