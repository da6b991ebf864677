// `node bench/report.mjs`: writes the figures of the result files into bench/README.md, between its markers.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { growthChart, isReached, number } from "./chart.mjs";

const readme = join(import.meta.dirname, "README.md");
const nodes = ["node-20", "node-24"];

/** @returns the text with each part between two markers made again from the results */
export function report(text, results) {
  const parts = { growth: growthPart(results), promises: promisesPart(results) };
  return Object.entries(parts).reduce((whole, [name, part]) => {
    const [begin, end] = [`<!-- from the results: ${name} -->\n`, `<!-- end of ${name} -->`];
    const [from, to] = [whole.indexOf(begin), whole.indexOf(end)];
    if (from < 0 || to < from) throw new Error(`bench/README.md has no place for ${name}: ${begin.trim()}`);
    return whole.slice(0, from) + begin + part + whole.slice(to);
  }, text);
}

/** The result files that are there, by their names. */
export function readResults() {
  const files = [...nodes, "growth"].map((name) => [name, join(import.meta.dirname, "results", `${name}.json`)]);
  const found = files.filter(([, file]) => existsSync(file));
  return Object.fromEntries(found.map(([name, file]) => [name, JSON.parse(readFileSync(file, "utf8"))]));
}

/** Of the run that has it and was made last. */
function growthPart(results) {
  const [last] = Object.values(results)
    .filter(({ sections }) => sections.growth !== undefined)
    .sort((a, b) => (a.measured_at < b.measured_at ? 1 : -1));
  if (last === undefined) throw new Error("no result file has the section growth");
  return `\nSeconds of processor. ${conditionsOf(last)}\n\n\`\`\`text\n${growthChart(last.sections.growth)}\n\`\`\`\n\n`;
}

/** A row for each promised figure. A bar that differs between versions of Node is said for each. */
function promisesPart(results) {
  const runs = nodes.flatMap((name) => results[name] ?? []);
  if (runs.length === 0) throw new Error("there is no result file");
  const promised = runs.map(({ sections }) => new Map(linesOf(sections).map((line) => [keyOf(line), line])));
  const rows = [...new Set(promised.flatMap((lines) => [...lines.keys()]))].map((key) => {
    const cells = promised.map((lines) => figureOf(lines.get(key)));
    const bars = [...new Set(promised.flatMap((lines) => barOf(lines.get(key)?.bar)))];
    return [key.replaceAll("|", "\\|"), ...cells, bars.join("; ")];
  });
  const head = ["", ...runs.map(({ machine }) => `Node ${machine.node}`), "bar"];
  const table = [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
  return `\n${runs.map(conditionsOf).join(" ")}\n\n${table}\n\n`;
}

function linesOf(sections) {
  return Object.values(sections)
    .flat()
    .filter(({ bar }) => bar !== undefined);
}

function keyOf({ what, against }) {
  return against === "itself" ? what : `${what}, against ${against}`;
}

function figureOf(line) {
  if (line === undefined) return "not measured";
  const { ratio, seconds, megabytes, against, bar } = line;
  const parts = [];
  if (megabytes !== undefined) parts.push(`${megabytes.toFixed(1)} MB`);
  if (bar.mostSeconds !== undefined && seconds) parts.push(`${number(seconds.median)} s`);
  if (against !== "itself") parts.push(`${number(ratio.median)} ×${spreadOf(ratio)}`);
  return `${parts.join(", ")}${isReached(line) ? "" : "; missed"}`;
}

function spreadOf({ low, high }) {
  return low === undefined ? "" : ` (${number(low)} to ${number(high)})`;
}

function barOf(bar) {
  if (bar === undefined) return [];
  const { most, least, mostSeconds, mostMegabytes } = bar;
  const bounds = [
    most === undefined ? [] : [`at most ${most} ×`],
    least === undefined ? [] : [`at least ${least} ×`],
    mostSeconds === undefined ? [] : [`${mostSeconds} s`],
    mostMegabytes === undefined ? [] : [`${mostMegabytes} MB`],
  ].flat();
  return [bounds.join(", ")];
}

function conditionsOf({ measured_at, machine, load_at_end }) {
  const { node, integ, commit, processor, processors, load } = machine;
  const what = commit === undefined ? `integ ${integ}` : `integ ${integ} (${commit})`;
  const loads = load_at_end === undefined ? `${load}` : `${load} to ${load_at_end}`;
  return `Node ${node}: ${what} on ${measured_at.slice(0, 10)}, ${processors} × ${processor}, load ${loads}.`;
}

if (import.meta.filename === process.argv[1]) {
  writeFileSync(readme, report(readFileSync(readme, "utf8"), readResults()));
  console.log(`written: ${readme}`);
}
