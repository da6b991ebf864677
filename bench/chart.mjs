// How lines of figures are shown: a line each, with a bar on a logarithmic scale, so that 1.1 and 300 fit together.

const barWidth = 28;
const widestRatio = 500;

/** @param line see sections.mjs */
export function chartLine(line) {
  const { what, against, ratio, seconds, megabytes } = line;
  const filled = Math.round((Math.log(Math.max(1, ratio.median)) / Math.log(widestRatio)) * barWidth);
  const bar = "█".repeat(Math.min(barWidth, filled)).padEnd(barWidth, "·");
  const amount = megabytes === undefined ? `${number(seconds?.median)} s` : `${megabytes.toFixed(1)} MB`;
  const around = ratio.low === undefined ? "" : ` (${number(ratio.low)} to ${number(ratio.high)})`;
  const verdict = verdictOf(line);
  return [
    what.padEnd(52),
    (seconds || megabytes !== undefined ? amount : "").padStart(10),
    bar,
    `${number(ratio.median)} ×${around} ${against}`,
    verdict,
    line.note ? `[${line.note}]` : "",
  ]
    .filter((part) => part !== "")
    .join("  ")
    .trimEnd();
}

/** Cost over size: a line for each form and size, with a bar on a logarithmic scale. @param lines of the section "growth" */
export function growthChart(lines) {
  const shortest = Math.min(...lines.map(({ seconds }) => seconds.median));
  const decades = Math.log(Math.max(...lines.map(({ seconds }) => seconds.median)) / shortest);
  return lines
    .map(({ form, size, seconds: { median } }) => {
      const filled = 1 + Math.round((Math.log(median / shortest) / decades) * (barWidth - 1));
      const each = `${number((median / size) * 1e6)} µs a row`;
      const bar = "█".repeat(filled).padEnd(barWidth, "·");
      return `${form.padEnd(18)}${size.toLocaleString("en").padStart(10)}  ${bar}  ${number(median)} s, ${each}`;
    })
    .join("\n");
}

/** Whether a promised figure was reached; empty if none is promised. */
export function verdictOf(line) {
  const { bar } = line;
  if (bar === undefined) return "";
  const bounds = [
    ...(bar.most === undefined ? [] : [`≤ ${bar.most}`]),
    ...(bar.least === undefined ? [] : [`≥ ${bar.least}`]),
    ...(bar.mostSeconds === undefined ? [] : [`≤ ${bar.mostSeconds} s`]),
    ...(bar.mostMegabytes === undefined ? [] : [`< ${bar.mostMegabytes} MB`]),
  ].join(", ");
  return `${isReached(line) ? "reached" : "MISSED"} ${bounds}`;
}

export function isReached({ bar = {}, ratio, seconds, megabytes = 0 }) {
  const { most = Infinity, least = 0, mostSeconds = Infinity, mostMegabytes = Infinity } = bar;
  const isFast = (seconds?.median ?? 0) <= mostSeconds;
  return ratio.median <= most && ratio.median >= least && isFast && megabytes < mostMegabytes;
}

export function number(value) {
  if (value === undefined) return "?";
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(value < 0.1 ? 3 : 2);
}
