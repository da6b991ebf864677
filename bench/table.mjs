// Prints a row per figure and a column per Node.

export function table(runs) {
  const head = ["", "against", ...runs.map(({ version }) => `Node ${version}`), "goal"];
  const keyOf = ({ what, against = "" }) => `${what}\n${against}`;
  const lines = new Map(runs.flatMap((run) => run.lines.map((line) => [keyOf(line), line])));
  const rows = [...lines].map(([key, line]) => [
    line.what,
    line.against ?? "",
    ...runs.map((run) => figure(run.lines.find((other) => keyOf(other) === key) ?? {})),
    goalOf(line),
  ]);
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

export function isMissed({ ratio, seconds, megabytes, goal = {} }) {
  const { most = Infinity, least = 0, mostSeconds = Infinity, mostMegabytes = Infinity } = goal;
  return (
    ratio?.median > most || ratio?.median < least || seconds?.median > mostSeconds || megabytes?.median > mostMegabytes
  );
}

const digits = (value) => (value >= 100 ? value.toFixed(0) : value.toPrecision(3));

function figure(line) {
  const { ratio, seconds, megabytes } = line;
  const parts = [
    ...(ratio ? [`${digits(ratio.median)} × (${digits(ratio.low)} to ${digits(ratio.high)})`] : []),
    ...(seconds ? [seconds.median < 1 ? `${digits(seconds.median * 1000)} ms` : `${digits(seconds.median)} s`] : []),
    ...(megabytes ? [`${digits(megabytes.median)} MB`] : []),
    ...(isMissed(line) ? ["**missed**"] : []),
  ];
  return parts.join(", ");
}

function goalOf({ goal = {} }) {
  const { most, least, mostSeconds, mostMegabytes } = goal;
  if (most !== undefined) return `≤ ${most} ×`;
  if (least !== undefined) return `≥ ${least} ×`;
  if (mostSeconds !== undefined) return `≤ ${mostSeconds} s`;
  return mostMegabytes === undefined ? "" : `≤ ${mostMegabytes} MB`;
}
