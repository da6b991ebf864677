// The daily time in which changes may begin.
import type { DailyWindow } from "./policy.ts";

const minuteMs = 60_000;

/** @returns nothing if the text is not a window: two different times of a day and a time zone */
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

export function isOpen({ from, to, zone }: DailyWindow, nowMs: number): boolean {
  const minute = minuteOfDay(nowMs, zone);
  return from < to ? from <= minute && minute < to : from <= minute || minute < to;
}

/** @returns milliseconds since 1970: now, or the first full minute at which the window is open */
export function nextOpening(window: DailyWindow, nowMs: number): number {
  if (isOpen(window, nowMs)) return nowMs;
  const twoDays = 2 * 24 * 60;
  let at = Math.ceil(nowMs / minuteMs) * minuteMs;
  // A change to summer time may skip the window of one day.
  for (let minute = 0; minute < twoDays && !isOpen(window, at); minute++) at += minuteMs;
  return at;
}

const clocks = new Map<string, Intl.DateTimeFormat>();

/** @throws RangeError for a time zone that does not exist */
function minuteOfDay(ms: number, zone: string): number {
  let clock = clocks.get(zone);
  if (clock === undefined) {
    clock = new Intl.DateTimeFormat("en-GB", { timeZone: zone, hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
    clocks.set(zone, clock);
  }
  const [hour = 0, minute = 0] = clock.format(ms).split(":").map(Number);
  return hour * 60 + minute;
}
