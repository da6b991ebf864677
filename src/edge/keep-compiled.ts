// Keeps what V8 compiled for the next start. It holds the program's own text in another form, and nothing that was typed,
// read or received.
import { lstatSync, readdirSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { replaceFile } from "../disk/atomic-write.ts";
import { ensurePrivateFolder } from "../disk/private-file.ts";
import type { NewPart } from "./ready.ts";

/** Other versions' code is removed once nothing was added to it for so long. */
const oldAfterMs = 30 * 24 * 60 * 60 * 1000;

/**
 * Without it the next start takes longer, and that is all: no failure is reported.
 * @param keptForm a part as it is kept
 */
export function keepCompiled(parts: readonly NewPart[], keptForm: (text: Buffer, code: Buffer) => Buffer[]): void {
  const folder = parts[0] && dirname(parts[0].path);
  if (folder === undefined) return;
  try {
    if (isOfSomeoneElse(dirname(folder))) return;
    const isNew = lstatSync(folder, { throwIfNoEntry: false }) === undefined;
    ensurePrivateFolder(dirname(folder));
    ensurePrivateFolder(folder);
    if (isNew) removeOld(dirname(folder));
    for (const { path, text, script } of parts) {
      replaceFile(path, keptForm(text, script.createCachedData()), { durable: "content" });
    }
  } catch {
    // A full disk, a folder of someone else, a home that is read only.
  }
}

/** Whether the folder, or the one in which it would be made, is another user's: what root leaves there is in that user's way. */
function isOfSomeoneElse(folder: string): boolean {
  const stats = statSync(folder, { throwIfNoEntry: false });
  if (stats === undefined) return dirname(folder) !== folder && isOfSomeoneElse(dirname(folder));
  return process.geteuid !== undefined && stats.uid !== process.geteuid();
}

function removeOld(folder: string): void {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (Date.now() - lstatSync(path).mtimeMs > oldAfterMs) rmSync(path, { recursive: true, force: true });
  }
}
