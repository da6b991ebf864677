// The daily window in which changes may start.
import type { DailyWindow } from "./policy.ts";

/** @returns undefined unless the text has two different times and a time zone */
export function readWindow(text: string): DailyWindow | undefined {
  const form = /^([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d) ([A-Za-z0-9_+/-]+)$/.exec(text);
  if (!form) return undefined;
  const [fromHour, fromMinute, toHour, toMinute] = form.slice(1, 5).map(Number) as [number, number, number, number];
  const window = { from: fromHour * 60 + fromMinute, to: toHour * 60 + toMinute, zone: form[5]! };
  return window.from !== window.to && isZone(window.zone) ? window : undefined;
}

function isZone(zone: string): boolean {
  try {
    minuteOfDay(0, zone);
    return true;
  } catch {
    return false;
  }
}

const clocks = new Map<string, Intl.DateTimeFormat>();

function minuteOfDay(ms: number, zone: string): number {
  let clock = clocks.get(zone);
  if (clock === undefined) {
    clock = new Intl.DateTimeFormat("en-GB", { timeZone: zone, hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
    clocks.set(zone, clock);
  }
  const [hour = 0, minute = 0] = clock.format(ms).split(":").map(Number);
  return hour * 60 + minute;
}

export function isOpen({ from, to, zone }: DailyWindow, ms: number): boolean {
  const minute = minuteOfDay(ms, zone);
  return from < to ? minute >= from && minute < to : minute >= from || minute < to;
}

const minuteMs = 60_000;

/** @returns the first whole minute in the window from `ms` on, in milliseconds since 1970 */
export function opensAt(window: DailyWindow, ms: number): number {
  const start = Math.ceil(ms / minuteMs) * minuteMs;
  // The loop tries each minute, because daylight saving time changes a day's length and may skip the opening.
  for (let at = start; at < start + 48 * 60 * minuteMs; at += minuteMs) if (isOpen(window, at)) return at;
  return start;
}
