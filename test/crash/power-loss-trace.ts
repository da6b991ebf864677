// Records a command's file operations, which a power cut may undo, and its requests, which the service may have received.
import { readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Ended } from "../support/program.ts";
import { type FileOperation, type Image, readImage } from "./power-loss-disk.ts";

export type Step =
  | FileOperation
  | { readonly kind: "sent"; readonly nth: number }
  | { readonly kind: "answered"; readonly nth: number; readonly requestId: string | undefined };

/** The traced calls. A call with a path in the folder that `Reader` does not model is an error. */
const calls =
  "open openat openat2 creat write pwrite64 writev pwritev pwritev2 fsync fdatasync rename renameat renameat2 link linkat " +
  "unlink unlinkat ftruncate truncate mkdir mkdirat rmdir close read recvfrom recvmsg sendto sendmsg symlink symlinkat " +
  "copy_file_range fallocate sendfile";

export interface Recording {
  readonly ended: Ended;
  readonly start: Image;
  readonly steps: readonly Step[];
}

/**
 * @param run runs the command under this strace command line, and waits until it ends
 * @param before the folder's content, if its files must keep the numbers of an earlier recording
 */
export async function recordFiles(
  folder: string,
  run: (under: readonly string[]) => Promise<Ended>,
  before?: Image,
): Promise<Recording> {
  const start = before ?? readImage(folder);
  const file = join(tmpdir(), `integ-files-${process.pid}-${crypto.randomUUID()}`);
  const traced = `trace=${calls.replaceAll(/(\w+)/g, "?$1").replaceAll(" ", ",")}`;
  try {
    const ended = await run(["strace", "-f", "-xx", "-s", "200000", "-o", file, "-e", "signal=none", "-e", traced]);
    const reader = new Reader(folder, start);
    for (const call of callsIn(readFileSync(file, "latin1"))) reader.take(call);
    return { ended, start, steps: reader.steps };
  } finally {
    rmSync(file, { force: true });
  }
}

interface Call {
  readonly name: string;
  readonly args: string;
  readonly fd: number;
  readonly result: number;
}

/** The successful calls in the order of their ends. */
function* callsIn(trace: string): Generator<Call> {
  const begun = new Map<string, string>();
  for (const line of trace.split("\n")) {
    const [, thread = "", rest = ""] = /^(\d+) +(.*)$/.exec(line) ?? [];
    const start = /^(.*) <unfinished \.\.\.>$/.exec(rest)?.[1];
    if (start !== undefined) begun.set(thread, start);
    const end = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest)?.[1];
    const whole = end === undefined ? rest : `${begun.get(thread) ?? ""}${end}`;
    const found = /^(\w+)\((.*)\) += (\d+)(?: .*)?$/.exec(whole);
    if (!found) continue;
    const args = found[2]!;
    yield { name: found[1]!, args, fd: Number.parseInt(args, 10), result: Number(found[3]) };
  }
}

function stringsIn(args: string): Buffer[] {
  return [...args.matchAll(/"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?/g)].map(([, hex = "", cut]) => {
    if (cut) throw new Error("a string of the trace is not whole");
    return Buffer.from(hex.replaceAll("\\x", ""), "hex");
  });
}

interface Open {
  readonly node: number;
  readonly appends: boolean;
  at: number;
}

const requestLine = /^(?:GET|POST|PUT|PATCH|DELETE) [^ ]+ HTTP\/1\.1\r\n/;

class Reader {
  readonly steps: Step[] = [];
  readonly #folder: string;
  readonly #open = new Map<number, Open>();
  readonly #names: Map<string, number>;
  readonly #lengths = new Map<number, number>();
  #nodes: number;
  #sent = 0;
  readonly #waiting = new Map<number, number>();

  constructor(folder: string, start: Image) {
    this.#folder = folder;
    this.#names = new Map(start.names);
    this.#nodes = Math.max(...start.nodes.keys());
    for (const [node, { bytes }] of start.nodes) this.#lengths.set(node, bytes.length);
  }

  take(call: Call): void {
    const { name, args, fd } = call;
    if (/^(open|creat)/.test(name)) this.#opened(call);
    else if (name === "close") this.#open.delete(fd);
    else if (/^(read|recv)/.test(name)) this.#received(call);
    else if (/^(p?write|send(to|msg))/.test(name)) this.#written(call);
    else if (/^f(?:data)?sync$/.test(name)) this.#synced(fd);
    else if (name === "ftruncate") this.#cut(fd, Number(/, (\d+)$/.exec(args)![1]));
    else this.#named(name, args);
  }

  #inside(path: Buffer | undefined): string | undefined {
    const whole = resolve(this.#folder, path?.toString("utf8") ?? "/");
    if (whole === this.#folder) return "";
    return whole.startsWith(`${this.#folder}/`) ? whole.slice(this.#folder.length + 1) : undefined;
  }

  #create(path: string, isFolder: boolean): number {
    const node = (this.#nodes += 1);
    this.steps.push({ kind: "create", path, node, isFolder });
    this.#names.set(path, node);
    this.#lengths.set(node, 0);
    return node;
  }

  #opened({ args, result: fd }: Call): void {
    this.#open.delete(fd);
    const path = this.#inside(stringsIn(args)[0]);
    if (path === undefined) return;
    const there = this.#names.get(path);
    const node = there ?? this.#create(path, false);
    this.#open.set(fd, { node, appends: args.includes("O_APPEND"), at: 0 });
    if (args.includes("O_TRUNC") && there !== undefined) this.#cut(fd, 0);
  }

  #synced(fd: number): void {
    const open = this.#open.get(fd);
    if (open) this.steps.push({ kind: "sync", node: open.node });
  }

  #cut(fd: number, length: number): void {
    const open = this.#open.get(fd);
    if (!open) return;
    this.steps.push({ kind: "cut", node: open.node, length });
    this.#lengths.set(open.node, length);
  }

  #written({ name, args, fd, result }: Call): void {
    const bytes = Buffer.concat(stringsIn(args)).subarray(0, result);
    const open = this.#open.get(fd);
    if (!open) {
      if (!requestLine.test(bytes.toString("latin1"))) return;
      this.steps.push({ kind: "sent", nth: (this.#sent += 1) });
      this.#waiting.set(fd, this.#sent);
      return;
    }
    const given = name.startsWith("pwrite") ? Number(/, (\d+)$/.exec(args)![1]) : undefined;
    const length = this.#lengths.get(open.node) ?? 0;
    const at = open.appends ? length : (given ?? open.at);
    this.steps.push({ kind: "write", node: open.node, at, bytes });
    if (given === undefined) open.at = at + result;
    this.#lengths.set(open.node, Math.max(length, at + result));
  }

  #received({ args, fd }: Call): void {
    const nth = this.#open.has(fd) ? undefined : this.#waiting.get(fd);
    if (nth === undefined) return;
    const text = stringsIn(args)[0]?.toString("latin1") ?? "";
    if (!text.startsWith("HTTP/1.1 ")) return;
    this.#waiting.delete(fd);
    this.steps.push({ kind: "answered", nth, requestId: /^request-id: *(\S+)/im.exec(text)?.[1] });
  }

  #named(name: string, args: string): void {
    const [from, to] = stringsIn(args).map((path) => this.#inside(path));
    if (from === undefined && to === undefined) return;
    if (name.startsWith("mkdir")) this.#create(from!, true);
    else if (/^(unlink|rmdir)/.test(name)) {
      this.steps.push({ kind: "remove", path: from! });
      this.#names.delete(from!);
    } else if (/^(rename|link)/.test(name) && from !== undefined && to !== undefined) {
      const node = this.#names.get(from)!;
      this.steps.push({ kind: name.startsWith("link") ? "link" : "rename", from, to, node });
      this.#names.set(to, node);
      if (name.startsWith("rename")) this.#names.delete(from);
    } else throw new Error(`${name}: what a power cut makes of it is not modeled`);
  }
}
