// Each probe of the keychain is a process. Outside a full run, the commands of a test file reuse the result of a probe that
// found no keychain, except with a message bus or a replaced `ChildProcess.spawn`.
import childProcess, { ChildProcess } from "node:child_process";
import { EventEmitter } from "node:events";
import { syncBuiltinESMExports } from "node:module";
import { PassThrough } from "node:stream";
import { expect } from "vitest";
import { isFull } from "./sample.ts";

type Spawn = (file: string, words: readonly string[], options: { readonly env: NodeJS.ProcessEnv }) => ChildProcess;

const spawn = childProcess.spawn as Spawn;
const { spawn: start } = ChildProcess.prototype as unknown as { readonly spawn: unknown };

/** The output of a probe that found no keychain, and its test file. */
let absence: { readonly in: string | undefined; readonly text: string } | undefined;

function isReusableProbe(words: unknown, env: NodeJS.ProcessEnv = {}): boolean {
  const isProbe = Array.isArray(words) && words[0] === "-e" && String(words[1]).includes("AsyncEntry");
  const isWatched = (ChildProcess.prototype as unknown as { readonly spawn: unknown }).spawn !== start;
  return isProbe && !isWatched && !env.DBUS_SESSION_BUS_ADDRESS && !env.XDG_RUNTIME_DIR;
}

function recordAbsence(child: ChildProcess, file: string | undefined): ChildProcess {
  let text = "";
  child.stdout!.on("data", (chunk) => (text += String(chunk)));
  child.on("close", (code) => {
    if (code === 0 && text.startsWith('{"ok":false')) absence = { in: file, text };
  });
  return child;
}

function fakeProcess(text: string): ChildProcess {
  const [stdin, stdout] = [new PassThrough().resume(), new PassThrough()];
  const child = Object.assign(new EventEmitter(), { stdin, stdout, kill: () => true });
  stdin.on("finish", () => stdout.end(text));
  stdout.on("end", () => child.emit("close", 0, null));
  return child as unknown as ChildProcess;
}

export async function probingOnce<T>(command: () => Promise<T>): Promise<T> {
  if (isFull) return command();
  const probeOnce: Spawn = (file, words, options) => {
    if (!isReusableProbe(words, options?.env)) return spawn(file, words, options);
    const { testPath } = expect.getState();
    return absence !== undefined && absence.in === testPath
      ? fakeProcess(absence.text)
      : recordAbsence(spawn(file, words, options), testPath);
  };
  Object.assign(childProcess, { spawn: probeOnce });
  syncBuiltinESMExports();
  try {
    return await command();
  } finally {
    Object.assign(childProcess, { spawn });
    syncBuiltinESMExports();
  }
}
