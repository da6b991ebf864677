// The states of a folder that strict POSIX allows after a power cut: synced contents and names are kept, and each unsynced
// change may be lost independently.
import { createHash } from "node:crypto";
import { chmodSync, existsSync, linkSync, lstatSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const noBytes = Buffer.alloc(0);

interface Node {
  readonly isFolder: boolean;
  readonly mode: number;
  readonly bytes: Buffer;
}

/** The content of a folder. Files and folders have numbers. Paths are relative to the folder, whose own path is "". */
export interface Image {
  readonly nodes: ReadonlyMap<number, Node>;
  readonly names: ReadonlyMap<string, number>;
}

type Written =
  | { readonly kind: "write"; readonly node: number; readonly at: number; readonly bytes: Buffer }
  | { readonly kind: "cut"; readonly node: number; readonly length: number };

type Named =
  | { readonly kind: "create"; readonly path: string; readonly node: number; readonly isFolder: boolean }
  | { readonly kind: "rename" | "link"; readonly from: string; readonly to: string; readonly node: number }
  | { readonly kind: "remove"; readonly path: string };

export type FileOperation = Written | Named | { readonly kind: "sync"; readonly node: number };

function isWritten(operation: FileOperation): operation is Written {
  return operation.kind === "write" || operation.kind === "cut";
}

export function readImage(folder: string): Image {
  const nodes = new Map<number, Node>();
  const names = new Map<string, number>();
  const numbers = new Map<string, number>();
  for (const path of ["", ...readdirSync(folder, { recursive: true, encoding: "utf8" }).toSorted()]) {
    const stats = lstatSync(join(folder, path), { bigint: true });
    const isFolder = stats.isDirectory();
    if (!isFolder && !stats.isFile()) throw new Error(`${path} is neither file nor folder`);
    const node = numbers.get(String(stats.ino)) ?? numbers.size + 1;
    numbers.set(String(stats.ino), node);
    names.set(path, node);
    const bytes = isFolder ? Buffer.alloc(0) : readFileSync(join(folder, path));
    nodes.set(node, { isFolder, mode: Number(stats.mode & 0o777n), bytes });
  }
  return { nodes, names };
}

export function writeImage({ nodes, names }: Image, folder: string): void {
  // integ regards a new `machine` file as a restored backup, so the original file is moved aside and put back.
  const [machine, original] = [join(folder, "state", "machine"), `${folder}.machine`];
  if (existsSync(machine)) renameSync(machine, original);
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true });
  const written = new Map<number, string>();
  for (const [path, number] of [...names].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const { isFolder, mode, bytes } = nodes.get(number)!;
    const whole = join(folder, path);
    if (path === "") continue;
    const first = written.get(number);
    if (isFolder) mkdirSync(whole, { mode: 0o700 });
    else if (first !== undefined) linkSync(first, whole);
    else writeFileSync(whole, bytes);
    if (!isFolder && first === undefined) chmodSync(whole, mode);
    written.set(number, whole);
  }
  const isSame = (): boolean => readFileSync(machine).equals(readFileSync(original));
  if (existsSync(machine) && existsSync(original) && isSame()) renameSync(original, machine);
}

/** @returns the same text for images that no program can distinguish */
export function fingerprintOf({ nodes, names }: Image): string {
  const links = new Map<number, number>();
  for (const number of names.values()) links.set(number, (links.get(number) ?? 0) + 1);
  const parts = [...names].map(([path, number]) => {
    const { isFolder, mode, bytes } = nodes.get(number)!;
    return JSON.stringify([path, isFolder, mode, digestOf(bytes), links.get(number)]);
  });
  return parts.toSorted((a, b) => (a < b ? -1 : 1)).join("");
}

const digests = new WeakMap<Buffer, string>();

function digestOf(bytes: Buffer): string {
  const known = digests.get(bytes) ?? createHash("sha256").update(bytes).digest("base64");
  digests.set(bytes, known);
  return known;
}

/** The outcome of an unsynced operation. A torn write keeps its first half, an empty write only its length. */
type Fate = "kept" | "lost" | "torn" | "empty";

interface Change {
  readonly operation: Written | Named;
  readonly isSynced: boolean;
}

/** Marks each operation that a later sync made durable, and omits the syncs. */
function changesOf(operations: readonly FileOperation[], start: Image): Change[] {
  const folders = new Map([...start.names].filter(([, node]) => start.nodes.get(node)!.isFolder));
  const done: { operation: Change["operation"]; on: number; isSynced: boolean }[] = [];
  for (const operation of operations) {
    if (operation.kind === "sync") {
      for (const one of done) if (one.on === operation.node) one.isSynced = true;
      continue;
    }
    if (operation.kind === "create" && operation.isFolder) folders.set(operation.path, operation.node);
    const on = isWritten(operation) ? operation.node : folders.get(folderOf(operation));
    if (on === undefined) throw new Error(`${JSON.stringify(operation)} stands in no folder that is known`);
    done.push({ operation, on, isSynced: false });
  }
  return done;
}

function folderOf(operation: Named): string {
  const folder = dirname("path" in operation ? operation.path : operation.to);
  return folder === "." ? "" : folder;
}

function imageWith(start: Image, changes: readonly Change[], fateOf: (index: number) => Fate): Image {
  const nodes = new Map(start.nodes);
  const names = new Map(start.names);
  for (const [index, { operation }] of changes.entries()) {
    if (operation.kind === "create" && !nodes.has(operation.node))
      nodes.set(operation.node, {
        isFolder: operation.isFolder,
        mode: operation.isFolder ? 0o700 : 0o600,
        bytes: noBytes,
      });
    const fate = fateOf(index);
    if (fate !== "lost") apply(operation, { nodes, names, fate });
  }
  return reachable({ nodes, names });
}

/** A kill, unlike a power cut, loses no completed operation. */
export function imageAfter(image: Image, operation: FileOperation): Image {
  if (operation.kind === "sync") return image;
  return imageWith(image, [{ operation, isSynced: true }], () => "kept");
}

function apply(
  operation: Change["operation"],
  { nodes, names, fate }: { nodes: Map<number, Node>; names: Map<string, number>; fate: Fate },
): void {
  if (isWritten(operation)) {
    const node = nodes.get(operation.node)!;
    nodes.set(operation.node, { ...node, bytes: cachedBytesAfter(node.bytes, operation, fate) });
  } else if (operation.kind === "create") names.set(operation.path, operation.node);
  else if (operation.kind === "remove") names.delete(operation.path);
  else {
    names.set(operation.to, operation.node);
    if (operation.kind === "rename") names.delete(operation.from);
  }
}

/** Caches file contents after each write, because thousands of states share all but their last few writes. */
const written = new WeakMap<Buffer, Map<Written, Map<Fate, Buffer>>>();

function cachedBytesAfter(before: Buffer, operation: Written, fate: Fate): Buffer {
  const ofFile = written.get(before) ?? new Map<Written, Map<Fate, Buffer>>();
  written.set(before, ofFile);
  const ofWrite = ofFile.get(operation) ?? new Map<Fate, Buffer>();
  ofFile.set(operation, ofWrite);
  const known = ofWrite.get(fate) ?? bytesAfter(before, operation, fate);
  ofWrite.set(fate, known);
  return known;
}

function bytesAfter(before: Buffer, operation: Written, fate: Fate): Buffer {
  if (operation.kind === "cut") {
    const after = Buffer.alloc(operation.length);
    before.copy(after, 0, 0, operation.length);
    return after;
  }
  const { at, bytes } = operation;
  const kept = fate === "torn" ? bytes.subarray(0, Math.floor(bytes.length / 2)) : bytes;
  const after = Buffer.alloc(Math.max(before.length, at + kept.length));
  before.copy(after);
  // With the fate `empty` only the length changes, and the bytes after the old end read as zeros.
  if (fate !== "empty") kept.copy(after, at);
  return after;
}

function reachable({ nodes, names }: Image): Image {
  const there = new Map<string, number>();
  for (const [path, node] of [...names].toSorted(([a], [b]) => a.length - b.length)) {
    const folder = dirname(path) === "." ? "" : dirname(path);
    if (path === "" || there.has(folder)) there.set(path, node);
  }
  return { nodes, names: there };
}

/** How many of the last unsynced operations are lost or kept in pairs. */
const maxPaired = 10;

export interface State {
  readonly image: Image;
  readonly how: string;
}

/**
 * The states that a power cut may leave. The unsynced operations are all kept, all lost, each lost alone, each kept alone,
 * each write torn or empty (the others kept or lost), or the last ones lost or kept in pairs.
 */
export function* statesAfter(start: Image, operations: readonly FileOperation[]): Generator<State> {
  const changes = changesOf(operations, start);
  const open = changes.flatMap(({ isSynced }, index) => (isSynced ? [] : [index]));
  const state = (how: string, fateOf: (index: number) => Fate): State => ({
    how,
    image: imageWith(start, changes, (index) => (changes[index]!.isSynced ? "kept" : fateOf(index))),
  });
  const named = (index: number): string => describe(changes[index]!.operation);
  yield state("all is there", () => "kept");
  if (open.length === 0) return;
  yield state("nothing unsynced is there", () => "lost");
  for (const one of open) {
    yield state(`without ${named(one)}`, (index) => (index === one ? "lost" : "kept"));
    yield state(`with ${named(one)} alone`, (index) => (index === one ? "kept" : "lost"));
    if (changes[one]!.operation.kind !== "write") continue;
    for (const fate of ["torn", "empty"] as const) {
      yield state(`${fate} ${named(one)}`, (index) => (index === one ? fate : "kept"));
      yield state(`${fate} ${named(one)} alone`, (index) => (index === one ? fate : "lost"));
    }
  }
  for (const [place, one] of open.slice(-maxPaired).entries())
    for (const other of open.slice(-maxPaired).slice(place + 1)) {
      const isPair = (index: number): boolean => index === one || index === other;
      yield state(`without ${named(one)} and ${named(other)}`, (index) => (isPair(index) ? "lost" : "kept"));
      yield state(`with ${named(one)} and ${named(other)} alone`, (index) => (isPair(index) ? "kept" : "lost"));
    }
}

function describe(operation: FileOperation): string {
  if (operation.kind === "write") return `the write of ${operation.bytes.length} bytes to file ${operation.node}`;
  if (operation.kind === "cut") return `the cut of file ${operation.node} to ${operation.length}`;
  if (operation.kind === "sync") return `the sync of ${operation.node}`;
  return "path" in operation
    ? `${operation.kind} ${operation.path}`
    : `${operation.kind} ${operation.from} as ${operation.to}`;
}
