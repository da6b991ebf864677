// Owns: whether a descriptor still leads anywhere, found out without writing a byte to it.
// Must not know: what will be written. Design: cli.md §4 («a closed or dead stdout is noticed before the request»).
import { fstatSync, readFileSync, statSync, writeSync } from "node:fs";
import { errorCode } from "../disk/error-words.ts";

const words: Readonly<Record<string, string>> = {
  EPIPE: "goes to a reader that is gone",
  EBADF: "is not open for writing",
  ENOSPC: "goes to a device with no space left",
  EIO: "goes to a terminal that is gone",
};

/**
 * Node opens a closed standard stream on the null device at start, so that writing «succeeds». A person's own
 * `>/dev/null` cannot be told from it, and loses a secret just the same.
 */
function isNullDevice(fd: number): boolean {
  const stats = fstatSync(fd);
  if (process.platform === "win32" || !stats.isCharacterDevice()) return false;
  return stats.rdev === statSync("/dev/null").rdev;
}

/** A write of nothing fails on a socket, a terminal or a device that is gone, and harms none that is there. */
function emptyWriteError(fd: number): string | undefined {
  try {
    writeSync(fd, Buffer.alloc(0), 0, 0);
    return undefined;
  } catch (error) {
    const code = errorCode(error);
    return code === "EAGAIN" ? undefined : code;
  }
}

/** True where the descriptor was opened for writing alone: then being ready to read can only mean an error. */
function isWriteOnly(fd: number): boolean {
  try {
    const flags = /^flags:\s+0?(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "latin1"))?.[1] ?? "0";
    return (Number.parseInt(flags, 8) & 3) === 1;
  } catch {
    return false;
  }
}

/**
 * Linux lets an empty write to a pipe without readers pass, and Node has no `poll`. The shell has one: `read -t 0`
 * tells at once whether a descriptor has news, and a pipe open for writing alone has none but the loss of its reader.
 * Where there is no such shell the loss is met when the secret is printed, and the secret is kept then.
 */
async function hasLostItsReader(fd: number): Promise<boolean> {
  if (process.platform !== "linux" || !fstatSync(fd).isFIFO() || !isWriteOnly(fd)) return false;
  const { spawn } = await import("node:child_process");
  return new Promise((resolve) => {
    const child = spawn("/bin/bash", ["--norc", "-c", "read -t 0 -u 1"], {
      env: {},
      stdio: ["ignore", fd, "ignore"],
      timeout: 2_000,
    });
    child.on("error", () => resolve(false));
    child.on("exit", (status) => resolve(status === 0));
  });
}

/** What is wrong with a descriptor, in words that follow "standard output"; undefined where it leads somewhere. */
export async function outputTrouble(fd: number): Promise<string | undefined> {
  try {
    if (isNullDevice(fd)) return "is closed, or goes to the null device";
  } catch (error) {
    return words[errorCode(error) ?? ""] ?? "cannot be looked at";
  }
  const code = emptyWriteError(fd);
  if (code !== undefined) return words[code] ?? `cannot be written to (${code})`;
  return (await hasLostItsReader(fd)) ? words.EPIPE : undefined;
}
