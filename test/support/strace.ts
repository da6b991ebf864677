// Kills a process, or fails one of its system calls, with strace, at a point of an earlier recording. strace injects a signal at
// the call's entry, so that the call itself does not happen, and counts `when=N` for each thread.
import { existsSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Ended } from "./program.ts";

/** The nth time that a thread makes a call. */
export interface Point {
  readonly call: string;
  readonly nth: number;
  /** The call as strace printed it, for messages. */
  readonly text: string;
  /**
   * False if no durable change happened since the previous point: a kill at either leaves the same state. Undefined if unknown.
   */
  readonly isAfterChange?: boolean;
}

export function nameOf({ call, nth, text }: Point): string {
  return `${call} ${nth} [${text.slice(0, 120)}]`;
}

/** The recorded classes of calls; calls that only map memory or wait are ignored. */
const tracedClasses = ["%file", "%network", "%desc"];
const ignoredCalls = /^(execve|mmap|epoll_\w+|eventfd2?|pipe2?|poll|ppoll|select|timerfd_\w+|io_uring_\w+)$/;
/** Writes and reads by which threads wake each other, through an eventfd or a pipe. Their number differs between runs. */
const wakeUp = /^\d+, "(?:(?:\\\d+){8}", (?:8|1024)|\*", 1)\b/;

let traces = 0;

function traceFile(): string {
  traces += 1;
  return join(tmpdir(), `integ-trace-${process.pid}-${traces}`);
}

/**
 * Records the file and network calls of a run.
 * @param run runs the program with this strace command line in front, and waits until it ends
 * @param options.ownCallsOnly omit the calls of programs that it starts
 * @returns the points of the main thread in order of time, then the points that only other threads reach
 */
export async function record(
  run: (under: readonly string[]) => Promise<Ended>,
  { ownCallsOnly = false }: { readonly ownCallsOnly?: boolean | undefined } = {},
): Promise<{ ended: Ended; points: Point[] }> {
  const file = traceFile();
  try {
    const ended = await run([
      "strace",
      "-f",
      ...detachOptions(ownCallsOnly),
      "-o",
      file,
      "-e",
      `trace=${tracedClasses.join(",")}`,
    ]);
    return { ended, points: pointsOf(readFileSync(file, "latin1")) };
  } finally {
    rmSync(file, { force: true });
  }
}

/** Calls that leave files, names and connections unchanged. Any other call may change them. */
const changesNothing =
  /^(?:\d+ +)?(?:read|readv|pread64|preadv|recvfrom|recvmsg|stat|lstat|fstat|newfstatat|fstatfs|statfs|statx|f?access|faccessat2?|readlink|readlinkat|getcwd|getdents64|lseek|fcntl|ioctl|dup[23]?|fadvise64|fsync|fdatasync|close|getsockname|getpeername|getsockopt|setsockopt|socket|bind|chdir|epoll_\w+|eventfd2?|pipe2?|poll|ppoll|select|mmap|munmap|io_uring_\w+|timerfd_\w+|openat\((?!.*O_(?:CREAT|TRUNC))|open\((?!.*O_(?:CREAT|TRUNC)))/;
/** Lines that are not calls: the rest of a call whose start is counted, and the end of a thread. */
const isNoCall = /^\d+ +(?:<\.\.\.|\+\+\+ (?:exited|killed))/;

interface Line {
  readonly thread: string;
  readonly call: string;
  readonly text: string;
  readonly isAfterChange: boolean;
}

/** Completes the first line of each interrupted call with the text of its `resumed` line, which stays in the list. */
function joinResumed(lines: readonly string[]): string[] {
  const unfinished = new Map<string, number>();
  const joined = [...lines];
  for (const [index, line] of lines.entries()) {
    const [, thread = "", rest] = /^(\d+) +<\.\.\. \w+ resumed>(.*)$/.exec(line) ?? [];
    const at = unfinished.get(thread);
    if (rest !== undefined && at !== undefined) joined[at] = joined[at]!.replace(/ <unfinished \.\.\.>$/, rest);
    if (line.endsWith(" <unfinished ...>")) unfinished.set(line.slice(0, line.indexOf(" ")), index);
  }
  return joined;
}

/** The calls of a trace in order of time. A signal is a change too: it reports that a child process has ended. */
function linesOf(trace: string): Line[] {
  const main = trace.slice(0, trace.indexOf(" "));
  let isAfterChange = true;
  return joinResumed(trace.split("\n")).flatMap((line) => {
    const found = /^(\d+) +(\w+)\((.*)$/.exec(line);
    const [, thread = "", call = "", text = ""] = found ?? [];
    const isPoint = found !== null && !ignoredCalls.test(call) && !wakeUp.test(text);
    const point = { thread, call, text, isAfterChange: isAfterChange || thread !== main };
    if (isPoint && thread === main) isAfterChange = false;
    if (line !== "" && !isNoCall.test(line) && !wakeUp.test(text) && !changesNothing.test(line)) isAfterChange = true;
    return found && !ignoredCalls.test(call) ? [point] : [];
  });
}

function pointsOf(trace: string): Point[] {
  const main = trace.slice(0, trace.indexOf(" "));
  const highest = new Map<string, number>();
  const counts = new Map<string, number>();
  const points: Point[] = [];
  const lines = linesOf(trace);
  // The main thread first: the same count in another thread would be the same injection.
  for (const { thread, call, text, isAfterChange } of lines.toSorted(
    (a, b) => Number(b.thread === main) - Number(a.thread === main),
  )) {
    const count = (counts.get(`${thread} ${call}`) ?? 0) + 1;
    counts.set(`${thread} ${call}`, count);
    if (count <= (highest.get(call) ?? 0)) continue;
    highest.set(call, count);
    if (wakeUp.test(text)) continue;
    points.push({ call, nth: count, text, isAfterChange });
  }
  return points;
}

/** Options that detach strace from programs that the traced program starts. */
function detachOptions(ownCallsOnly: boolean): string[] {
  return ownCallsOnly ? ["-b", "execve"] : [];
}

/** The strace command line that kills the program at a point. (With a seccomp filter strace would lose the signal.) */
export function killedAt(
  { call, nth }: Point,
  { ownCallsOnly = false }: { readonly ownCallsOnly?: boolean | undefined } = {},
): string[] {
  return [
    "strace",
    "-f",
    ...detachOptions(ownCallsOnly),
    "-o",
    "/dev/null",
    "-e",
    `trace=${call}`,
    "-e",
    `inject=${call}:signal=KILL:when=${nth}`,
  ];
}

/**
 * The point for another attempt. strace also counts the calls that wake a thread, whose number differs between runs: in a run
 * with fewer of them, a late call has a lower number.
 * @param round how many attempts missed the point
 */
export function countedAgain<T extends { readonly nth: number }>(point: T, round: number): T {
  return { ...point, nth: Math.max(1, point.nth - Math.floor(round / 2)) };
}

/** True if the process was killed, by strace or otherwise. */
export function wasKilled(ended: Ended): boolean {
  return ended.signal === "SIGKILL" || ended.code === 137;
}

export interface CallFault {
  readonly call: string;
  readonly errno: string;
  /** `3`: the third call; `3+`: the third and all later calls. */
  readonly when: string;
}

/** A run in which calls failed. */
export interface FaultyRun {
  readonly ended: Ended;
  /** How many calls failed. */
  readonly injected: number;
  /** Requests (first line) that were sent after the first failed call. */
  readonly requestsAfter: readonly string[];
}

/** Runs the program while one of its system calls fails. */
export async function failing(
  { call, errno, when }: CallFault,
  run: (under: readonly string[]) => Promise<Ended>,
): Promise<FaultyRun> {
  const file = traceFile();
  const inject = `inject=${call}:error=${errno}:when=${when}`;
  try {
    const traced = `trace=${call},write,writev,sendto,sendmsg`;
    const ended = await run(["strace", "-f", "--seccomp-bpf", "-s", "80", "-o", file, "-e", traced, "-e", inject]);
    const lines = existsSync(file) ? readFileSync(file, "latin1").split("\n") : [];
    const first = lines.findIndex((line) => line.includes("(INJECTED)"));
    const after = first < 0 ? [] : lines.slice(first);
    return {
      ended,
      injected: after.filter((line) => line.includes("(INJECTED)")).length,
      requestsAfter: after.flatMap((line) => {
        const request = /"((?:GET|POST|DELETE|PUT|PATCH) [^ ]+) HTTP/.exec(line)?.[1];
        return request === undefined || line.includes("(INJECTED)") ? [] : [request];
      }),
    };
  } finally {
    rmSync(file, { force: true });
  }
}

/** Up to `count` of the points, evenly distributed, with the first and the last. */
export function spread<T>(points: readonly T[], count: number): T[] {
  if (points.length <= count) return [...points];
  const step = (points.length - 1) / Math.max(1, count - 1);
  return Array.from({ length: count }, (_, i) => points[Math.round(i * step)]!);
}
