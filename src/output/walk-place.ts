// Owns: the place up to which a list's file is whole, noted beside it, and whether another walk may go on from it.
// Must not know: the list, the API, the file's own bytes. Source: cli.md §6 (`--out`, `--resume`).
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { Failure } from "../errors.ts";
import type { ListEnd } from "./list.ts";

/** What makes a walk the same walk: another value of any of them is another list. Shown in messages. */
export type WalkIdentity = Readonly<Record<string, string | number | boolean | null>>;

/** How far a file is whole. `rows` and `bytes` count from its beginning. */
export interface Place extends ListEnd {
  readonly rows: number;
  readonly bytes: number;
}

/** The file beside a list's file that says how far it is whole. */
export function placePath(path: string): string {
  return `${path}.resume`;
}

/** The code of a system error. */
export function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? "unknown error";
}

/** @throws Failure `usage` where the file belongs to another walk or is shorter than what was noted */
export function placeIn(path: string, known: { exists: boolean; identity: WalkIdentity }): Place | undefined {
  const noted = readPlace(placePath(path));
  if (noted === undefined || !known.exists) return undefined;
  const differs = Object.keys({ ...noted.identity, ...known.identity }).filter(
    (name) => noted.identity[name] !== known.identity[name],
  );
  if (differs.length > 0)
    throw new Failure(
      "usage",
      `--resume: ${path} belongs to another walk (${differs.map((name) => name.replaceAll("_", " ")).join(", ")}).`,
      {
        meaning: differs
          .map((name) => `${name}: ${noted.identity[name] ?? "none"} then, ${known.identity[name] ?? "none"} now`)
          .join("; "),
        hint: "The same command as then, with --resume; or --force to begin anew.",
      },
    );
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    if (fstatSync(fd).size >= noted.bytes) return noted;
  } finally {
    closeSync(fd);
  }
  throw new Failure("usage", `--resume: ${path} is shorter than when its walk stopped.`, {
    hint: "--force begins anew.",
  });
}

function readPlace(path: string): (Place & { readonly identity: WalkIdentity }) | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw new Failure("usage", `--resume: ${path} cannot be read (${codeOf(error)}).`);
  }
  const place = parsed(text);
  if (place) return place;
  throw new Failure("usage", `--resume: ${path} is damaged.`, { hint: "--force begins anew." });
}

function parsed(text: string): (Place & { readonly identity: WalkIdentity }) | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null || !("object" in value) || value.object !== "integ_walk")
    return undefined;
  const { version, identity, rows, bytes, nextPageToken, hasMore } = value as Record<string, unknown>;
  const isPlace =
    version === 1 &&
    typeof identity === "object" &&
    identity !== null &&
    isCount(rows) &&
    isCount(bytes) &&
    (nextPageToken === null || typeof nextPageToken === "string") &&
    typeof hasMore === "boolean";
  return isPlace ? (value as unknown as Place & { identity: WalkIdentity }) : undefined;
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Old or new, never half: a crash between the calls leaves the old place, from which the walk goes on as well. */
function replaceFile(path: string, text: string): void {
  const temporary = `${path}.tmp`;
  removeIfThere(temporary);
  const fd = openSync(
    temporary,
    constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
    0o600,
  );
  try {
    const bytes = Buffer.from(text);
    for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done, bytes.length - done, done);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(temporary, path);
}

export function removeIfThere(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
  }
}

/** Notes how far a list's file is whole. */
export function notePlace(path: string, place: Place & { readonly identity: WalkIdentity }): void {
  replaceFile(placePath(path), `${JSON.stringify({ object: "integ_walk", version: 1, ...place })}\n`);
}
