// Owns: how the bytes of a journal are cut into sound records and damaged places, whatever happened to them. Pure.
// Must not know: files, locks, what an entry is for. design: journal.md «What it promises» 7.
import { readLine, recordStart, type SoundRecord } from "./record.ts";

/** A place in the file that holds no sound record. */
export interface Damage {
  readonly offset: number;
  /** Counted from 1. */
  readonly line: number;
  readonly bytes: Buffer;
  readonly reason: string;
}

export interface Found {
  readonly record: SoundRecord;
  readonly offset: number;
  readonly line: number;
  readonly bytes: Buffer;
}

export interface Scan {
  readonly found: Found[];
  readonly damage: Damage[];
  /** What stands after the last newline and is no sound record: an append that a crash cut short, or one under way. */
  readonly torn: Damage | undefined;
}

/** Where the bytes to be scanned begin in the file. */
export interface Place {
  readonly offset: number;
  readonly line: number;
}

const newline = 10;

/** Cuts bytes that begin at the start of a line into records. Blank lines are no damage: a torn end is followed by one. */
export function scanBytes(bytes: Buffer, from: Place): Scan {
  const scan: { found: Found[]; damage: Damage[]; torn: Damage | undefined } = {
    found: [],
    damage: [],
    torn: undefined,
  };
  let line = from.line;
  for (let start = 0; start < bytes.length; line += 1) {
    const cut = bytes.indexOf(newline, start);
    const end = cut < 0 ? bytes.length : cut;
    const text = bytes.subarray(start, end);
    const place = { offset: from.offset + start, line };
    const record = text.length === 0 ? undefined : readLine(text);
    if (record !== undefined) scan.found.push({ record, ...place, bytes: text });
    else if (text.length > 0) scanBadLine(text, { place, ended: cut >= 0, scan });
    start = end + 1;
  }
  return scan;
}

/**
 * A line that is not sound as a whole: two records whose newline was lost, or damage. Every start of a record in it is
 * tried up to the next start, then without the one byte before that (the former newline).
 */
function scanBadLine(
  text: Buffer,
  at: { place: Place; ended: boolean; scan: { found: Found[]; damage: Damage[]; torn: Damage | undefined } },
): void {
  const { place, ended, scan } = at;
  const starts = recordStarts(text);
  for (const [index, start] of starts.entries()) {
    const end = starts[index + 1] ?? text.length;
    const sound = [end, end - 1].map((to) => text.subarray(start, to)).find((piece) => readLine(piece));
    const record = sound && readLine(sound);
    const here = { offset: place.offset + start, line: place.line };
    if (sound && record) scan.found.push({ record, ...here, bytes: sound });
    const left = start + (sound?.length ?? 0);
    if (left >= end) continue;
    const bytes = text.subarray(left, end);
    const rest = { offset: place.offset + left, line: place.line, bytes };
    if (end === text.length && !ended) scan.torn = { ...rest, reason: "an append that was cut short" };
    else if (bytes.length > 1 || !sound) scan.damage.push({ ...rest, reason: "its checksum does not fit" });
    else scan.damage.push({ ...rest, reason: "a byte that ended a line is another" });
  }
}

/** Where records may begin in a bad line: its beginning and every place that looks like one. */
function recordStarts(text: Buffer): number[] {
  const starts = [0];
  for (let at = text.indexOf(recordStart, 1, "latin1"); at >= 0; at = text.indexOf(recordStart, at + 1, "latin1")) {
    starts.push(at);
  }
  return starts;
}
