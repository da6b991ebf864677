// What the index of a long journal says of entries before its last lines, unchecked, for a Tab: what checks an index costs more
// than reading it. A name that is shown comes from a record of the journal.
import { closeSync, constants, openSync, readFileSync, readSync } from "node:fs";
import { careful } from "../../../disk/write.ts";
import { numberOf } from "../../lookup.ts";
import type { List, ListedSegment } from "./index-files.ts";
import { formatOfIndex, listPath, pageBytes, type Rows, rowsOfPage, segmentPath, valuesOf } from "./rows.ts";

/** Most records are shorter, bytes. */
const lineBytes = 2048;

export interface GlancedIndex {
  /** Where the new line is behind the last record that is indexed, bytes. */
  readonly end: number;
  readonly unsettled: readonly string[];
  /** The newest record there of each of these entries; undefined if one is not where the index says. */
  lines(ids: readonly string[]): readonly string[] | undefined;
}

/**
 * @param journal its path, and its file, open
 * @returns undefined if there is no index that can be read
 */
export function glanceAtIndex(journal: { readonly path: string; readonly fd: number }): GlancedIndex | undefined {
  const list = attempted(() => readList(journal.path));
  if (list === undefined) return undefined;
  const { offset, length } = list.anchor;
  return {
    end: offset + length,
    unsettled: list.unsettled,
    lines: (ids) => attempted(() => linesOf(ids, { journal, segments: list.segments })),
  };
}

/** What cannot be read counts as absent: the journal says it then. */
function attempted<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

function readList(journal: string): List | undefined {
  const fd = openSync(listPath(journal), constants.O_RDONLY | careful);
  try {
    const text = readFileSync(fd, "utf8");
    const list = JSON.parse(text.slice(text.indexOf("\n") + 1)) as List;
    return list.v === formatOfIndex ? list : undefined;
  } finally {
    closeSync(fd);
  }
}

interface Indexed {
  readonly journal: { readonly path: string; readonly fd: number };
  readonly segments: readonly ListedSegment[];
}

function linesOf(ids: readonly string[], { journal, segments }: Indexed): readonly string[] | undefined {
  const open: number[] = [];
  try {
    const parts = segments.map((segment) => {
      const fd = openSync(segmentPath(journal.path, segment.tag), constants.O_RDONLY | careful);
      open.push(fd);
      return { ...segment, rows: rowsIn(fd, segment.records) };
    });
    const lines: string[] = [];
    const space = Buffer.allocUnsafe(lineBytes);
    for (const id of ids) {
      const number = numberOf(id);
      const holding = parts.filter(({ first, last }) => first <= number && number <= last);
      const offset = holding.flatMap(({ rows }) => valuesOf(rows, number)).at(-1);
      const line = offset === undefined ? undefined : lineAt(journal.fd, offset, space);
      if (line === undefined) return undefined;
      lines.push(line);
    }
    return lines;
  } finally {
    for (const fd of open) closeSync(fd);
  }
}

function rowsIn(fd: number, count: number): Rows {
  const pages = new Map<number, Float64Array>();
  return {
    count,
    page(number) {
      let page = pages.get(number);
      if (page === undefined) {
        const bytes = Buffer.alloc(pageBytes);
        readSync(fd, bytes, 0, pageBytes, number * pageBytes);
        page = new Float64Array(bytes.buffer, bytes.byteOffset, 2 * rowsOfPage);
        pages.set(number, page);
      }
      return page;
    },
  };
}

/** @param first what it is read into, if it is not longer */
function lineAt(fd: number, offset: number, first: Buffer): string | undefined {
  for (let bytes = first; ; bytes = Buffer.allocUnsafe(4 * bytes.length)) {
    const length = readSync(fd, bytes, 0, bytes.length, offset);
    const end = bytes.subarray(0, length).indexOf(10);
    if (end >= 0) return bytes.toString("utf8", 0, end);
    if (length < bytes.length) return undefined;
  }
}
