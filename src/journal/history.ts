// The records of one entry as its history, and whether each stands on the one before.
import { type Actor, readActor } from "./actor.ts";
import type { Finding } from "./finding.ts";
import { type EntryDestination, isObject, readDestination } from "./entry-destination.ts";
import { chainOf, hashOfRecord, type Slice } from "./record.ts";

/** What a step of an entry's work left: when, as what, by whom. */
export interface Step {
  readonly at: string;
  readonly state: string;
  /** null in records of earlier versions. */
  readonly actor: Actor | null;
  /** Where the secret was to go by then. */
  readonly destination?: EntryDestination | undefined;
}

function parsed({ bytes, start, end }: Slice): Record<string, unknown> {
  const read: unknown = JSON.parse(bytes.toString("utf8", start, end));
  return isObject(read) ? read : {};
}

export function stepOf(line: Slice): Step {
  return stepIn(parsed(line));
}

/** The same of a record's content, where a journal keeps it without its line. */
export function stepOfContent(content: string): Step {
  const read: unknown = JSON.parse(`{${content}}`);
  return stepIn(isObject(read) ? read : {});
}

function stepIn({ now, by }: Record<string, unknown>): Step {
  const { updated_at, state, destination } = isObject(now) ? now : {};
  return {
    at: typeof updated_at === "string" ? updated_at : "",
    state: typeof state === "string" ? state : "",
    actor: readActor(by),
    destination: readDestination(destination),
  };
}

/**
 * Whether each record stands on the one before it in its entry. Those of format 1 name none before them.
 * @param from the first that is looked at; those before it were looked at already
 * @returns the place of the first that does not; undefined where all do
 */
export function brokenStep(lines: readonly Slice[], from = 0): number | undefined {
  for (let place = from; place < lines.length; place += 1) {
    const { prev, format } = chainOf(lines[place]!);
    if (format === 1 && prev === undefined) continue;
    const before = lines[place - 1];
    if (prev !== (before && hashOfRecord(before))) return place;
  }
  return undefined;
}

/** @param isKnown the journal was written again with it */
export function historyFinding(id: string, place: number, isKnown: boolean): Finding {
  const message = `its record ${Math.max(1, place)} or the next was edited, removed or moved since it was written`;
  return { severity: isKnown ? "warning" : "problem", where: `entry ${id}`, message };
}

/**
 * Records that do not stand on the one before them in their entry.
 * @param newest the hash of the newest record, where the journal keeps it besides
 */
export function historyFindings(id: string, lines: readonly Slice[], newest?: string): Finding[] {
  const last = lines.at(-1);
  const isOther = newest !== undefined && newest !== (last && hashOfRecord(last));
  const broken = brokenStep(lines) ?? (isOther ? lines.length : undefined);
  return broken === undefined ? [] : [historyFinding(id, broken, false)];
}
