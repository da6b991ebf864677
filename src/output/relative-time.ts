// Times as a person reads them.
const iso = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/;
const units: readonly (readonly [name: string, ms: number])[] = [
  ["year", 365 * 86_400_000],
  ["month", 30 * 86_400_000],
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1000],
];

/** As many characters as a relative time of this century may take: `in 59 minutes`, `59 seconds ago`. */
export const relativeTimeWidth = 14;

/**
 * An ISO 8601 time as seen from `nowMs`: `3 days ago`, `in 2 hours`, `just now`. Rounded down, a month is 30 days.
 * What is not an ISO 8601 time with a zone comes back as it is.
 */
export function relativeTime(time: string, nowMs: number): string {
  const then = iso.test(time) ? Date.parse(time) : Number.NaN;
  if (Number.isNaN(then)) return time;
  const distance = Math.abs(nowMs - then);
  if (distance < 1000) return "just now";
  const [name, ms] = units.find(([, unit]) => distance >= unit) ?? ["second", 1000];
  const count = Math.floor(distance / ms);
  const amount = `${count} ${name}${count === 1 ? "" : "s"}`;
  return then > nowMs ? `in ${amount}` : `${amount} ago`;
}

/** A time of today as the clock on the wall shows it, in this machine's own zone: `09:28:31`. */
export function localClock(ms: number): string {
  const at = new Date(ms);
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** A duration as a person plans with it, rounded: `80 minutes`, `36 hours`, `3 days`. */
export function soLong(ms: number): string {
  const minutes = Math.round(ms / 60_000);
  const [count, unit] =
    minutes < 90
      ? [minutes, "minute"]
      : minutes < 48 * 60
        ? [Math.round(minutes / 60), "hour"]
        : [Math.round(minutes / 1440), "day"];
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}

/** A time ahead as a person plans with it, in this machine's own zone: `in 36 hours (23 Nov 09:28)`. */
export function timeAhead(time: string, nowMs: number): string {
  const then = new Date(time);
  const clock = [then.getHours(), then.getMinutes()].map((part) => String(part).padStart(2, "0")).join(":");
  const day = `${then.getDate()} ${months[then.getMonth()]}`;
  return `in ${soLong(Math.max(0, then.getTime() - nowMs))} (${day} ${clock})`;
}
