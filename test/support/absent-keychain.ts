// Without a keychain, each added profile starts a process to find that out. Commands in the test's process reuse the first
// result in each test file. With a message bus, or when children are watched, each process runs; e2e/keychain.test.ts tests the
// keychain itself.
import childProcess, { ChildProcess } from "node:child_process";
import { EventEmitter } from "node:events";
import { syncBuiltinESMExports } from "node:module";
import { PassThrough } from "node:stream";
import { expect } from "vitest";
import { isFull } from "./sample.ts";

type Spawn = (file: string, words: readonly string[], options: { readonly env: NodeJS.ProcessEnv }) => ChildProcess;

const spawn = childProcess.spawn as Spawn;
const { spawn: start } = ChildProcess.prototype as unknown as { readonly spawn: unknown };

/** The first process's output, in the test file that ran it. */
let heard: { readonly in: string | undefined; readonly text: string } | undefined;

function isOfKeychain(words: unknown, env: NodeJS.ProcessEnv = {}): boolean {
  const isAsking = Array.isArray(words) && words[0] === "-e" && String(words[1]).includes("AsyncEntry");
  const isWatched = (ChildProcess.prototype as unknown as { readonly spawn: unknown }).spawn !== start;
  return isAsking && !isWatched && !env.DBUS_SESSION_BUS_ADDRESS && !env.XDG_RUNTIME_DIR;
}

function listenTo(child: ChildProcess, file: string | undefined): ChildProcess {
  let text = "";
  child.stdout!.on("data", (chunk) => (text += String(chunk)));
  child.on("close", (code) => {
    if (code === 0 && text.startsWith('{"ok":false')) heard = { in: file, text };
  });
  return child;
}

/** A process with the same output. */
function repeating(text: string): ChildProcess {
  const [stdin, stdout] = [new PassThrough().resume(), new PassThrough()];
  const child = Object.assign(new EventEmitter(), { stdin, stdout, kill: () => true });
  stdin.on("finish", () => stdout.end(text));
  stdout.on("end", () => child.emit("close", 0, null));
  return child as unknown as ChildProcess;
}

/** Runs a command of the program in this process. */
export async function askingOnce<T>(command: () => Promise<T>): Promise<T> {
  if (isFull) return command();
  const asking: Spawn = (file, words, options) => {
    if (!isOfKeychain(words, options?.env)) return spawn(file, words, options);
    const { testPath } = expect.getState();
    return heard !== undefined && heard.in === testPath
      ? repeating(heard.text)
      : listenTo(spawn(file, words, options), testPath);
  };
  Object.assign(childProcess, { spawn: asking });
  syncBuiltinESMExports();
  try {
    return await command();
  } finally {
    Object.assign(childProcess, { spawn });
    syncBuiltinESMExports();
  }
}
