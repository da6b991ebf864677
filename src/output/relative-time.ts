const iso = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/;
const day = 86_400_000;
/** Each unit is used for counts below `below`: `47 hours`, but `2 days`. */
const units: readonly (readonly [name: string, ms: number, below: number])[] = [
  ["second", 1000, 60],
  ["minute", 60_000, 120],
  ["hour", 3_600_000, 48],
  ["day", day, 121],
  ["month", 30 * day, 12],
  ["year", 365 * day, Infinity],
];

/** The least width of a column of relative times, such as `119 minutes ago`. */
export const relativeTimeWidth = 15;

/** Rounds down, such as `3 days ago`, `in 2 hours` or `just now`. Other texts than ISO 8601 stay unchanged. */
export function relativeTime(time: string, nowMs: number): string {
  const then = iso.test(time) ? Date.parse(time) : Number.NaN;
  if (Number.isNaN(then)) return time;
  const distance = Math.abs(nowMs - then);
  if (distance < 1000) return "just now";
  return then > nowMs ? `in ${roundedDuration(distance)}` : `${roundedDuration(distance)} ago`;
}

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/**
 * Rounds down, but tolerates a thousandth: a limit of 90 days, read a moment later, is still 90 days.
 * @param isExact true to use no months and years
 */
export function roundedDuration(ms: number, isExact = false): string {
  const allowed = isExact ? units.slice(0, 4) : units;
  const wholeOf = (unit: number): number => Math.floor(ms / unit + 0.001);
  const [name, unit] = allowed.find(([, each, below]) => wholeOf(each) < below) ?? allowed.at(-1)!;
  const count = Math.max(1, wholeOf(unit));
  return `${count} ${name}${count === 1 ? "" : "s"}`;
}

/** Such as `in 36 hours (23 Nov 09:28)`, in this machine's time zone. */
export function timeAhead(time: string, nowMs: number): string {
  const then = new Date(time);
  const clock = [then.getHours(), then.getMinutes()].map((part) => String(part).padStart(2, "0")).join(":");
  const date = `${then.getDate()} ${months[then.getMonth()]}`;
  const distance = then.getTime() - nowMs;
  return `${distance < 1000 ? "now" : `in ${roundedDuration(distance)}`} (${date} ${clock})`;
}
