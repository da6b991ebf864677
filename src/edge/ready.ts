// What is ready at a start: help screens as the program printed them once, when it was built (scripts/ready-help.mts), and its
// parts as V8 compiled them at an earlier start.
import { closeSync, constants, fstatSync, openSync, readFileSync, readSync, writeSync } from "node:fs";
import { basename, dirname, isAbsolute, join, sep } from "node:path";
import type Module from "node:module";
import type { Script } from "node:vm";

/** The file beside the built program that holds the tree of commands, for completion. */
export const readyTreeFile = "commands.json";

/** Help screens by the words of the command, `""` for `integ` itself, and by the topic. */
export interface ReadyHelp {
  readonly commands: Readonly<Record<string, string>>;
  readonly topics: Readonly<Record<string, string>>;
}

/**
 * @param folder where the built program is
 * @returns the answer, if these words have one and it needs nothing that is not at hand
 */
export function readyAnswer(process: NodeJS.Process, folder: string): string | undefined {
  const words = process.argv.slice(2);
  const isTopic = words[0] === "help";
  const isFlag = words.at(-1) === "--help" || words.at(-1) === "-h";
  if (words.length > 0 && isTopic === isFlag) return undefined;
  const screens = readBeside(folder, readyHelpFile(helpWidth(process)));
  if (screens === undefined) return undefined;
  const path = (isTopic ? words.slice(1) : words.slice(0, -1)).join(" ");
  const topicsAt = screens.indexOf('\n"topics":');
  return screenAt(screens.slice(0, topicsAt), path) ?? (isTopic ? screenAt(screens.slice(topicsAt), path) : undefined);
}

/** Of a hundred screens one is read: each is one line, and reading all of them takes longer than printing it. */
function screenAt(screens: string, path: string): string | undefined {
  const name = `\n ${JSON.stringify(path)}: `;
  const at = screens.indexOf(name);
  if (at < 0) return undefined;
  const from = at + name.length;
  return JSON.parse(screens.slice(from, screens.indexOf("\n", from)).replace(/,$/, "")) as string;
}

/** The tree of commands as JSON, for completion. @returns nothing if it is not ready */
export function readyTree(folder: string): string | undefined {
  return readBeside(folder, readyTreeFile);
}

function readBeside(folder: string, file: string): string | undefined {
  try {
    return readFileSync(join(folder, file), "utf8");
  } catch {
    // A width that nothing is ready for.
    return undefined;
  }
}

/** Columns of a help screen: the terminal's, as many as are read with ease. */
export function helpWidth({ stdout, stderr }: Pick<NodeJS.Process, "stdout" | "stderr">): number {
  const columns = stdout.columns ?? stderr.columns ?? 0;
  return columns > 0 ? Math.min(columns, 100) : 80;
}

/** The file beside the built program that holds the help screens at a width. */
export function readyHelpFile(width: number): string {
  return `help-${width}.json`;
}

/**
 * Writes past the streams, which cost a start more than the answer.
 * @returns the exit code; nothing if writing failed, which the slow way then finds and says
 */
export function printReady(process: NodeJS.Process, answer: string): number | undefined {
  const bytes = Buffer.from(answer);
  let done = 0;
  try {
    while (done < bytes.length) done += writeSync(1, bytes, done);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    // A reader that no longer exists wanted no more; one that is slow is waited for by the stream.
    if (code === "EPIPE") return 0;
    if (code !== "EAGAIN") return undefined;
    process.stdout.on("error", () => {});
    process.stdout.write(bytes.subarray(done));
  }
  return 0;
}

// The parts of the program compiled, which is a third of the time of a start, kept in the folder for caches.

/** A part that was not found compiled. */
export interface NewPart {
  /** Where it will be kept. */
  readonly path: string;
  /** The source, as the function that Node makes of a module. */
  readonly text: Buffer;
  readonly script: Script;
}

interface Program {
  /** Where the built program is. */
  readonly folder: string;
  readonly version: string;
  /** The part that was loaded first, as Node knows it: it asks for the others. */
  readonly first: NodeJS.Module;
}

/**
 * Loads the parts of this program compiled from now on.
 * @returns what was compiled again, filled while parts are loaded; nothing if this process keeps no compiled code
 */
export function useCompiledCode(process: NodeJS.Process, program: Program): readonly NewPart[] | undefined {
  const { env } = process;
  // Other flags of V8 make other code. Coverage is counted in what was compiled here.
  if (env.NODE_DISABLE_COMPILE_CACHE || env.NODE_V8_COVERAGE || env.NODE_OPTIONS || process.execArgv.length > 0)
    return undefined;
  const { Script, constants: how } = process.getBuiltinModule("node:vm");
  const { version, first } = program;
  const folder = dirname(join(program.folder, "main.cjs"));
  const kept = join(cacheFolder(process), `${version}-node-${process.versions.node}-${process.arch}`);
  const parts = new Map<string, { exports: unknown }>();
  const compiledAnew: NewPart[] = [];
  const space = new Space();
  /** What makes a function of a module's source. */
  const [before = "", after = ""] = (first.constructor as typeof Module).wrap("\0").split("\0");
  const outside = first.require.bind(first);

  const load = (part: { exports: unknown }, file: string): void => {
    const name = basename(file);
    parts.set(`./${name}`, part);
    space.clear();
    space.write(before);
    space.readAll(openSync(file, constants.O_RDONLY));
    space.write(after);
    const length = space.length;
    // Not joined: V8 would optimize Node's own normalization of so many paths, which takes 3 ms.
    const path = `${kept}${sep}${name}.compiled`;
    readOwn(process, path, space);
    const text = space.bytes(0, length);
    const cachedData = keptCode(space.bytes(length), text);
    // ASCII, as the build sees to: as UTF-8 it would be looked through first, which takes ten times as long.
    const script = new Script(text.toString("latin1"), {
      filename: file,
      ...(cachedData && { cachedData }),
      importModuleDynamically: how.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    });
    if (!cachedData || script.cachedDataRejected) compiledAnew.push({ path, text: Buffer.from(text), script });
    (script.runInThisContext() as Wrapped).call(part.exports, part.exports, need, part, file, folder);
  };
  /** As `require` of a part: Node would look for each one through the folders first. */
  const need = (name: string): unknown => {
    let part = parts.get(name);
    if (part === undefined) {
      if (!name.startsWith("./")) return outside(name) as unknown;
      part = { exports: {} };
      load(part, `${folder}${sep}${name.slice(2)}`);
    }
    return part.exports;
  };
  first.require = need as NodeJS.Require;
  return compiledAnew;
}

/** Memory that files are read into, one part's after the other's: to be given new memory takes as long as the reading. */
class Space {
  #memory = Buffer.allocUnsafeSlow(1024 * 1024);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  clear(): void {
    this.#length = 0;
  }

  /** What was read from `start` on: overwritten after `clear`. */
  bytes(start: number, end = this.#length): Buffer {
    return this.#memory.subarray(start, end);
  }

  /** @param text ASCII, short */
  write(text: string): void {
    this.#length += this.#memory.write(text, this.#length, "latin1");
  }

  /** Reads a file to its end, and closes it. */
  readAll(fd: number): void {
    try {
      for (let count = -1; count !== 0; this.#length += count) {
        if (this.#memory.length - this.#length < 1024) this.#memory = Buffer.concat([this.#memory], 2 * this.#length);
        count = readSync(fd, this.#memory, this.#length, this.#memory.length - this.#length, null);
      }
    } finally {
      closeSync(fd);
    }
  }
}

type Wrapped = (
  exports: unknown,
  require: (name: string) => unknown,
  module: { exports: unknown },
  file: string,
  folder: string,
) => void;

/** The folder for caches: XDG (Linux), Caches (macOS), %LOCALAPPDATA% (Windows). */
function cacheFolder(process: NodeJS.Process): string {
  const { env, platform } = process;
  const home = env.HOME || process.getBuiltinModule("node:os").homedir();
  if (platform === "darwin") return join(home, "Library", "Caches", "integ");
  if (platform === "win32") return join(env.LOCALAPPDATA || join(home, "AppData", "Local"), "integ", "cache");
  const given = env.XDG_CACHE_HOME;
  return join(given && isAbsolute(given) ? given : join(home, ".cache"), "integ");
}

const headBytes = 16;

/** A part as it is kept: the lengths of code and text, the code twice, and the text that it was made of. */
export function keptForm(text: Buffer, code: Buffer): Buffer[] {
  const head = Buffer.alloc(headBytes);
  head.writeDoubleLE(code.length);
  head.writeDoubleLE(text.length, headBytes / 2);
  return [head, code, code, text];
}

/**
 * V8 believes what it is given: damaged code ends the process, or does something else than its source. It is taken only as
 * this user left it, if both copies are the same and it was made of these very bytes of source. Comparing costs less than the
 * part of Node that has checksums.
 */
function keptCode(bytes: Buffer, text: Buffer): Buffer | undefined {
  if (bytes.length < headBytes) return undefined;
  const length = bytes.readDoubleLE();
  const end = headBytes + 2 * length;
  if (bytes.readDoubleLE(headBytes / 2) !== text.length || bytes.length !== end + text.length) return undefined;
  const code = bytes.subarray(headBytes, headBytes + length);
  const isWhole = code.equals(bytes.subarray(headBytes + length, end));
  return isWhole && text.equals(bytes.subarray(end)) ? code : undefined;
}

/** Reads a file that no one else could have written; nothing if there is none, or if it cannot be read. */
function readOwn(process: NodeJS.Process, path: string, into: Space): void {
  try {
    const fd = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
    const stats = fstatSync(fd);
    const isOwn = process.geteuid === undefined || (stats.uid === process.geteuid() && (stats.mode & 0o022) === 0);
    if (stats.isFile() && isOwn) into.readAll(fd);
    else closeSync(fd);
  } catch {
    // What of it was read is not whole.
  }
}
