// The index on disk, beside the journal: a list (`journal.ndjson.index`) that is replaced as a whole, and segments
// (`journal.ndjson.index-<tag>`) that never change. It is derived: nothing of it is synced, every byte that is used is
// checked, and what does not fit counts as absent.
import { hash, randomBytes } from "node:crypto";
import * as fs from "node:fs";
import { basename, dirname, join } from "node:path";
import { replaceFile } from "../../../disk/atomic-write.ts";
import { careful, removeFile, writeAll } from "../../../disk/write.ts";
import { errorCode } from "../../../disk/error-words.ts";
import { isObject } from "../../entry-destination.ts";
import { type Damage, type LineStart, readBytes } from "../scan.ts";
import { type IndexedFacts, indexBehind, JournalIndex, type Segment, Unfit } from "./journal-index.ts";
import type { Known } from "../reading.ts";
import { formatOfIndex, listPath, merge, pageBytes, pagesOf, type Rows, rowsOfPage, segmentPath } from "./rows.ts";

const { O_CREAT, O_EXCL, O_RDONLY, O_RDWR } = fs.constants;
const rowBytes = rowsOfPage * 16;
const digestBytes = pageBytes - rowBytes;
const pagesAtOnce = 64;
const pagesKept = 128;

/** Which file an index belongs to: how it begins, and the last record that the index covers. */
interface IndexPosition {
  readonly head: Buffer;
  readonly anchor: LineStart & { readonly bytes: Buffer };
}

/** The index as it was found, with the anchor whose bytes are still there. */
export interface LoadedIndex {
  readonly index: JournalIndex;
  readonly anchor: IndexPosition["anchor"];
}

export interface ListedSegment extends Pick<Segment, "first" | "last" | "updated"> {
  readonly tag: string;
  readonly records: number;
  readonly names: number;
}

export interface List extends Omit<IndexedFacts, "damage" | "gaps"> {
  readonly v: number;
  readonly head: { readonly length: number; readonly digest: string };
  readonly anchor: LineStart & { readonly length: number; readonly digest: string };
  readonly damage: readonly (Omit<Damage, "bytes"> & { readonly length: number })[];
  readonly gaps: readonly string[];
  readonly segments: readonly ListedSegment[];
}

/** A segment that is in a file, open. */
interface FileSegment extends Segment {
  readonly listed: ListedSegment;
}

function digestOf(bytes: Uint8Array | string): string {
  return hash("sha256", bytes, "hex");
}

export class IndexFiles {
  readonly #journal: string;
  readonly #path: string;

  /** @param journal its path */
  constructor(journal: string) {
    this.#journal = journal;
    this.#path = listPath(journal);
  }

  /**
   * The index of the open file, if there is one and it fits: the file begins as it did, and the last record that is
   * covered is where it stood. Each record names the checksum of the one before, so that this one speaks for all.
   * @param file.head how the file begins
   */
  load(file: { readonly fd: number; readonly head: Buffer }): LoadedIndex | undefined {
    try {
      return this.#loadFor(file);
    } catch (error) {
      if (errorCode(error) === undefined) throw error;
      return undefined; // what the disk cannot give is not there
    }
  }

  #loadFor(file: { readonly fd: number; readonly head: Buffer }): LoadedIndex | undefined {
    const list = this.#readList();
    if (list === undefined) return undefined;
    const { anchor, head } = list;
    if (head.length > file.head.length || digestOf(file.head.subarray(0, head.length)) !== head.digest)
      return undefined;
    const bytes = readBytes(file.fd, anchor.offset, anchor.length);
    if (bytes.length !== anchor.length || digestOf(bytes) !== anchor.digest) return undefined;
    const segments: Segment[] = [];
    for (const listed of list.segments) {
      const segment = this.#openSegment(listed);
      if (segment === undefined) return undefined;
      segments.push(segment);
    }
    const damage = list.damage.map((place) => lazily(place, file.fd));
    const facts = { ...list, damage, gaps: new Set(list.gaps) };
    const end = anchor.offset + anchor.length;
    return {
      index: new JournalIndex({ fd: file.fd, end, facts, segments }),
      anchor: { offset: anchor.offset, line: anchor.line, bytes },
    };
  }

  #readList(): List | undefined {
    const fd = openOwn(this.#path);
    if (fd === undefined) return undefined;
    try {
      const text = readBytes(fd, 0, fs.fstatSync(fd).size).toString();
      const cut = text.indexOf("\n");
      if (digestOf(text.slice(cut + 1)) !== text.slice(0, cut)) return undefined;
      const list: unknown = JSON.parse(text.slice(cut + 1));
      return isObject(list) && list.v === formatOfIndex ? (list as unknown as List) : undefined;
    } finally {
      fs.closeSync(fd);
    }
  }

  #segmentPath(tag: string): string {
    return segmentPath(this.#journal, tag);
  }

  #openSegment(listed: ListedSegment): FileSegment | undefined {
    const fd = openOwn(this.#segmentPath(listed.tag));
    if (fd === undefined) return undefined;
    const size = (pagesOf(listed.records) + pagesOf(listed.names)) * pageBytes;
    if (fs.fstatSync(fd).size === size) return segmentIn(fd, listed);
    fs.closeSync(fd);
    return undefined;
  }

  /** Writes the index of all that is known, if that can be: it only saves time. The caller holds the journal's lock. */
  keep(known: Known, fd: number): JournalIndex | undefined {
    const { offset, bytes } = known.anchor;
    try {
      const index = indexBehind(known.fold, { fd, end: offset + bytes.length });
      return index && this.save(index, known);
    } catch (error) {
      if (error instanceof Unfit) this.remove();
      else if (errorCode(error) === undefined) throw error;
      return undefined;
    }
  }

  /**
   * Writes what is not on disk yet, together with segments that are not much larger: so there are never many, and each
   * row is written again only a few times. The caller holds the journal's lock.
   * @throws the error of a file call; the index of before is still there then
   */
  save(index: JournalIndex, { head, anchor }: IndexPosition): JournalIndex {
    const kept = index.segments.filter(isInFile);
    const fresh: Segment[] = index.segments.filter((segment) => !isInFile(segment));
    const sizeOf = ({ records, names }: Segment): number => records.count + names.count;
    for (let size = fresh.reduce((sum, one) => sum + sizeOf(one), 0); ; ) {
      const last = kept.at(-1);
      if (last === undefined || fresh.length === 0 || sizeOf(last) > 4 * size) break;
      fresh.unshift(last);
      kept.pop();
      size += sizeOf(last);
    }
    const segments = fresh.length === 0 ? kept : [...kept, this.#write(fresh)];
    const { format, isJournal, misplaced, lastSum, gaps, count, newest, unsettled, damage } = index;
    const list: List = {
      v: formatOfIndex,
      head: { length: head.length, digest: digestOf(head) },
      anchor: { offset: anchor.offset, line: anchor.line, length: anchor.bytes.length, digest: digestOf(anchor.bytes) },
      format,
      isJournal,
      misplaced,
      count,
      newest,
      unsettled,
      lastSum,
      damage: damage.map(({ bytes, ...place }) => ({ ...place, length: bytes.length })),
      gaps: [...gaps],
      segments: segments.map(({ listed }) => listed),
    };
    const text = JSON.stringify(list);
    replaceFile(this.#path, `${digestOf(text)}\n${text}`, { durable: "none" });
    this.#sweep(new Set(segments.map(({ listed }) => basename(this.#segmentPath(listed.tag)))));
    return index.with(segments);
  }

  #write(parts: readonly Segment[]): FileSegment {
    const tag = randomBytes(8).toString("hex");
    const path = this.#segmentPath(tag);
    const fd = fs.openSync(path, O_RDWR | O_CREAT | O_EXCL | careful, 0o600);
    try {
      const pages = new PageWriter(fd, tag);
      merge(
        parts.map(({ records }) => records),
        (key, value) => pages.add(key, value),
      );
      const records = pages.end();
      merge(
        parts.map(({ names }) => names),
        (key, value) => pages.add(key, value),
      );
      const names = pages.end();
      const first = Math.min(...parts.map((part) => part.first));
      const last = Math.max(...parts.map((part) => part.last));
      const updated = parts.reduce((latest, part) => (part.updated > latest ? part.updated : latest), "");
      return segmentIn(fd, { tag, records, names, first, last, updated });
    } catch (error) {
      fs.closeSync(fd);
      removeFile(path);
      throw error;
    }
  }

  /** Of a journal that was written again. What cannot be removed does not fit it, and is not used. */
  remove(): void {
    try {
      removeFile(this.#path);
      this.#sweep(new Set());
    } catch (error) {
      if (errorCode(error) === undefined) throw error;
    }
  }

  /** Removes segments that the list does not name any more, and what killed writers left. */
  #sweep(named: ReadonlySet<string>): void {
    const own = basename(this.#path);
    for (const name of fs.readdirSync(dirname(this.#path)))
      if ((name.startsWith(`${own}-`) || name.startsWith(`${own}.new-`)) && !named.has(name))
        removeFile(join(dirname(this.#path), name));
  }
}

function isInFile(segment: Segment): segment is FileSegment {
  return "listed" in segment;
}

/** A file that can be read and that no one else can have written; everything else counts as absent. */
function openOwn(path: string): number | undefined {
  let fd: number;
  try {
    fd = fs.openSync(path, O_RDONLY | careful);
  } catch {
    return undefined;
  }
  const stat = fs.fstatSync(fd);
  const user = process.geteuid?.();
  if (stat.isFile() && (user === undefined || (stat.uid === user && (stat.mode & 0o022) === 0))) return fd;
  fs.closeSync(fd);
  return undefined;
}

function lazily({ length, ...place }: List["damage"][number], fd: number): Damage {
  return {
    ...place,
    get bytes() {
      return readBytes(fd, place.offset, length);
    },
  };
}

function segmentIn(fd: number, listed: ListedSegment): FileSegment {
  const { tag, records, names, first, last, updated } = listed;
  const read = new Map<number, Float64Array>();
  const pageAt = (number: number): Float64Array => {
    const known = read.get(number);
    if (known) return known;
    // Entries that are looked up one after the other mostly are on the same pages.
    if (read.size === pagesKept) read.clear();
    const page = readPage(fd, tag, number);
    read.set(number, page);
    return page;
  };
  const rows = (count: number, before: number): Rows => ({ count, page: (number) => pageAt(before + number) });
  return { listed, first, last, updated, records: rows(records, 0), names: rows(names, pagesOf(records)) };
}

/** Of the page's rows, its number and its segment: a page of another place or file is not taken for this one. */
function digestOfPage(page: Buffer, tag: string, number: number): Buffer {
  const label = Buffer.from(`${tag} ${number}`);
  return hash("sha256", Buffer.concat([page.subarray(0, rowBytes), label]), "buffer").subarray(0, digestBytes);
}

function readPage(fd: number, tag: string, number: number): Float64Array {
  const page = Buffer.alloc(pageBytes);
  const got = readInto(fd, page, number * pageBytes);
  if (got !== pageBytes || !digestOfPage(page, tag, number).equals(page.subarray(rowBytes)))
    throw new Unfit(`page ${number} of segment ${tag}`);
  return new Float64Array(page.buffer, page.byteOffset, 2 * rowsOfPage);
}

function readInto(fd: number, bytes: Buffer, offset: number): number {
  try {
    return fs.readSync(fd, bytes, 0, bytes.length, offset);
  } catch {
    return 0; // a page that the disk cannot give counts as a wrong one
  }
}

class PageWriter {
  readonly #fd: number;
  readonly #tag: string;
  #buffer = Buffer.alloc(pagesAtOnce * pageBytes);
  /** Pages that are full, in the buffer and before it. */
  #pages = 0;
  #written = 0;
  #rows = 0;

  constructor(fd: number, tag: string) {
    this.#fd = fd;
    this.#tag = tag;
  }

  add(key: number, value: number): void {
    const at = (this.#pages - this.#written) * pageBytes + (this.#rows % rowsOfPage) * 16;
    this.#buffer.writeDoubleLE(key, at);
    this.#buffer.writeDoubleLE(value, at + 8);
    this.#rows += 1;
    if (this.#rows % rowsOfPage === 0) this.#endPage();
  }

  /** Ends a table, at the end of a page. @returns how many rows it has */
  end(): number {
    if (this.#rows % rowsOfPage !== 0) this.#endPage();
    this.#flush();
    const rows = this.#rows;
    this.#rows = 0;
    return rows;
  }

  #endPage(): void {
    const at = (this.#pages - this.#written) * pageBytes;
    const page = this.#buffer.subarray(at, at + pageBytes);
    digestOfPage(page, this.#tag, this.#pages).copy(page, rowBytes);
    this.#pages += 1;
    if (this.#pages - this.#written === pagesAtOnce) this.#flush();
  }

  #flush(): void {
    writeAll(this.#fd, this.#buffer.subarray(0, (this.#pages - this.#written) * pageBytes));
    this.#written = this.#pages;
    this.#buffer.fill(0);
  }
}
