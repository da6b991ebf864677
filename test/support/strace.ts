// Kills a process at a point of an earlier recording, or fails some of its system calls. strace injects a signal before the
// call has its effect, and counts `when=N` in each thread.
import { existsSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Ended } from "./program.ts";

/** The nth call of its kind in a thread. */
export interface Point {
  readonly call: string;
  readonly nth: number;
  /** The arguments and result as strace printed them. Messages show this text, and tests find points by it. */
  readonly text: string;
  /** False if a kill leaves the same state as at the previous point. Undefined if that is unknown. */
  readonly isAfterChange?: boolean;
}

export function nameOf({ call, nth, text }: Point): string {
  return `${call} ${nth} [${text.slice(0, 120)}]`;
}

const tracedClasses = ["%file", "%network", "%desc"];
const ignoredCalls = /^(execve|mmap|epoll_\w+|eventfd2?|pipe2?|poll|ppoll|select|timerfd_\w+|io_uring_\w+)$/;
/** Reads and writes by which threads wake each other, through an eventfd or a pipe. Their number differs between runs. */
const wakeUp = /^\d+, "(?:(?:\\\d+){8}", (?:8|1024)|\*", 1)\b/;

let traces = 0;

function traceFile(): string {
  traces += 1;
  return join(tmpdir(), `integ-trace-${process.pid}-${traces}`);
}

/**
 * Records the file and network calls of a run.
 * @param run runs the program under this strace command line, and waits until it ends
 * @param options.ownCallsOnly true to omit the calls of other programs that the program starts
 * @returns the points of the main thread in order of time, then the points that only other threads reach
 */
export async function record(
  run: (under: readonly string[]) => Promise<Ended>,
  { ownCallsOnly = false }: { readonly ownCallsOnly?: boolean | undefined } = {},
): Promise<{ ended: Ended; points: Point[] }> {
  const file = traceFile();
  try {
    const traced = ["-e", `trace=${tracedClasses.join(",")}`];
    const ended = await run(["strace", "-f", ...detachOptions(ownCallsOnly), "-o", file, ...traced]);
    return { ended, points: pointsOf(readFileSync(file, "latin1")) };
  } finally {
    rmSync(file, { force: true });
  }
}

const changesNothing =
  /^(?:\d+ +)?(?:read|readv|pread64|preadv|recvfrom|recvmsg|stat|lstat|fstat|newfstatat|fstatfs|statfs|statx|f?access|faccessat2?|readlink|readlinkat|getcwd|getdents64|lseek|fcntl|ioctl|dup[23]?|fadvise64|fsync|fdatasync|close|getsockname|getpeername|getsockopt|setsockopt|socket|bind|chdir|epoll_\w+|eventfd2?|pipe2?|poll|ppoll|select|mmap|munmap|io_uring_\w+|timerfd_\w+|openat\((?!.*O_(?:CREAT|TRUNC))|open\((?!.*O_(?:CREAT|TRUNC)))/;
/** Lines that are not calls: the rest of a counted call, and the end of a thread. */
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

/** A signal counts as a change: it reports that a child process has ended. */
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
  // The main thread comes first, because an injection matches the same count in any thread.
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

/** `-b execve` detaches strace from the programs that the traced program starts. */
function detachOptions(ownCallsOnly: boolean): string[] {
  return ownCallsOnly ? ["-b", "execve"] : [];
}

/** The command line lacks `--seccomp-bpf`, with which strace would lose the signal. */
export function killedAt(
  { call, nth }: Point,
  { ownCallsOnly = false }: { readonly ownCallsOnly?: boolean | undefined } = {},
): string[] {
  const killing = ["-e", `trace=${call}`, "-e", `inject=${call}:signal=KILL:when=${nth}`];
  return ["strace", "-f", ...detachOptions(ownCallsOnly), "-o", "/dev/null", ...killing];
}

/**
 * The point for the next attempt. In a run with fewer wake-up calls, which strace counts too, a late call has a lower
 * number.
 * @param round how many attempts missed the point
 */
export function countedAgain<T extends { readonly nth: number }>(point: T, round: number): T {
  return { ...point, nth: Math.max(1, point.nth - Math.floor(round / 2)) };
}

export function wasKilled(ended: Ended): boolean {
  return ended.signal === "SIGKILL" || ended.code === 137;
}

export interface CallFault {
  readonly call: string;
  readonly errno: string;
  /** `3` is the third call of each thread, `3+` the third and all later calls of each thread. */
  readonly when: string;
}

export interface FaultyRun {
  readonly ended: Ended;
  readonly injected: number;
  /** Method and path of each request that was sent after the first failed call. */
  readonly requestsAfter: readonly string[];
}

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

/** At most `count` evenly distributed points. */
export function spread<T>(points: readonly T[], count: number): T[] {
  if (points.length <= count) return [...points];
  const step = (points.length - 1) / Math.max(1, count - 1);
  return Array.from({ length: count }, (_, i) => points[Math.round(i * step)]!);
}
