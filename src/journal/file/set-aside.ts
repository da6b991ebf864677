// Owns: copies of bytes that are no sound records, beside the journal: never thrown away, each kept once.
// Must not know: records, locks.
import { hash } from "node:crypto";
import * as fs from "node:fs";
import { dirname } from "node:path";
import { createFile } from "./file-bytes.ts";
import { syncFolder } from "./file-safety.ts";
import type { Damage } from "./scan.ts";

export class SetAside {
  readonly #path: string;
  readonly #kept = new Set<string>();

  /** @param path the journal's. */
  constructor(path: string) {
    this.#path = path;
  }

  /** Copies a damaged place to `<journal>.damaged-<offset>-<hash>`, synced; it stays where it is too. */
  keepDamage(damage: Damage): void {
    const suffix = `damaged-${damage.offset}-${hash("sha256", damage.bytes, "hex").slice(0, 12)}`;
    if (this.#kept.has(suffix)) return;
    this.#keep(suffix, damage.bytes);
    this.#kept.add(suffix);
  }

  /** Copies the end of an append that was cut short to `<journal>.torn-<time>`, synced. */
  keepTorn(torn: Damage, nowMs: number): void {
    this.#keep(`torn-${new Date(nowMs).toISOString().replaceAll(/[-:.]/g, "")}`, torn.bytes);
  }

  #keep(suffix: string, bytes: Buffer): void {
    for (let number = 1; ; number += 1) {
      const path = `${this.#path}.${suffix}${number === 1 ? "" : `-${number}`}`;
      const there = fs.lstatSync(path, { throwIfNoEntry: false });
      if (there?.isFile() && fs.readFileSync(path).equals(bytes)) return;
      if (there !== undefined) continue;
      createFile(path, bytes);
      syncFolder(dirname(this.#path));
      return;
    }
  }
}
