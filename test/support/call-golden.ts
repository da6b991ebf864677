// What a work asks of the disk as text that stays the same: names that are random or tell the time are cut.
import { constants, existsSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { DiskCall } from "./disk-calls.ts";

const { O_APPEND, O_CREAT, O_EXCL, O_RDWR, O_WRONLY, O_NOFOLLOW } = constants;
const flagNames = {
  append: O_APPEND,
  create: O_CREAT,
  new: O_EXCL,
  change: O_RDWR,
  write: O_WRONLY,
  plain: O_NOFOLLOW,
};

function flagsOf(flags: unknown): string {
  if (typeof flags !== "number") return "";
  return Object.entries(flagNames)
    .filter(([, bit]) => (flags & bit) !== 0)
    .map(([name]) => name)
    .join(" ");
}

const isNumber = (arg: unknown): boolean => typeof arg === "number";

/** A file by a name of its own: what is random or a time in it is left out. */
function shortName(name: string): string {
  return name.replace(/^journal\.ndjson/, "J").replace(/(\.torn|\.new)-.*$|(index)-[0-9a-f]+$/, "$1$2");
}

/** @param folder in which the work is done */
export function wordsOfCall({ call, file, args }: DiskCall, folder: string): string {
  const places: Readonly<Record<string, string>> = {
    [basename(folder)]: "folder",
    [basename(dirname(folder))]: "above",
  };
  // The second argument of a read and a write is what they fill or empty: how much, and where.
  const about = call === "open" ? [flagsOf(args[1])] : args.slice(call === "ftruncate" ? 1 : 2).filter(isNumber);
  return [call, places[file] ?? shortName(file), ...about].filter((word) => word !== "").join(" ");
}

/** Calls that stand beside each other several times stand once. */
export function shortened(words: readonly string[]): string {
  const short: string[] = [];
  for (const [at, word] of words.entries()) {
    if (word === words[at - 1]) continue;
    const end = words.slice(at).findIndex((other) => other !== word);
    const times = end < 0 ? words.length - at : end;
    short.push(times > 1 ? `${word} ×${times}` : word);
  }
  return short.join(", ");
}

/** What is in a folder and the folders below it: names, sizes, modes. */
export function filesIn(folder: string): string {
  if (!existsSync(folder)) return "no folder";
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => {
      const stats = statSync(join(folder, name), { throwIfNoEntry: false });
      const about = stats === undefined ? "leads nowhere" : stats.isDirectory() ? "folder" : String(stats.size);
      return `${shortName(name)} ${about} ${((stats?.mode ?? 0) & 0o7777).toString(8)}`;
    })
    .sort()
    .join("; ");
}
