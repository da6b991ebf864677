// The records of one entry as its history, and whether each stands on the one before.
import { type Actor, readActor } from "./actor.ts";
import type { Finding } from "./finding.ts";
import { isObject } from "./entry-destination.ts";
import { contentIn, recordHash, type Slice } from "./record.ts";

/** What a step of an entry's work left: when, as what, by whom. */
export interface Step {
  readonly at: string;
  readonly state: string;
  /** null in records of earlier versions. */
  readonly actor: Actor | null;
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
  const { updated_at, state } = isObject(now) ? now : {};
  return {
    at: typeof updated_at === "string" ? updated_at : "",
    state: typeof state === "string" ? state : "",
    actor: readActor(by),
  };
}

/**
 * Records that do not stand on the one before them in their entry. Those of format 1 name none before them.
 * @param newest the hash of the newest record, where the journal keeps it besides
 */
export function historyFindings(id: string, lines: readonly Slice[], newest?: string): Finding[] {
  let before: string | undefined;
  const broken = lines.map((line) => {
    const { prev, v } = parsed(line);
    const isBroken = (v !== 1 || prev !== undefined) && prev !== before;
    before = recordHash(contentIn(line));
    return isBroken;
  });
  broken.push(newest !== undefined && newest !== before);
  const place = broken.indexOf(true);
  if (place < 0) return [];
  const message = `its record ${Math.max(1, place)} or the next was edited, removed or moved since it was written`;
  return [{ severity: "problem", where: `entry ${id}`, message }];
}
