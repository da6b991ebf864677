// Stores a random id of this machine in its state folder, created on first use.
import { createHash, randomBytes } from "node:crypto";
import { statSync } from "node:fs";
import { join } from "node:path";
import { createNamed } from "./atomic-write.ts";
import { fileFailure, alreadyExists } from "./error-words.ts";
import { makeFolders, readPrivateFile } from "./private-file.ts";

/** Distinguishes this machine's paths, profiles and keychains from those of other machines. */
export interface MachineId {
  find(): string | undefined;
  make(): string;
  /** Identifies this copy of the state folder: a restored backup, which lacks later changes, has another value. */
  copy(): string;
}

export function machineIdIn(stateDir: string): MachineId {
  const path = join(stateDir, "machine");
  const find = (): string | undefined => readPrivateFile(path)?.trim() || undefined;
  const make = (): string => {
    const id = randomBytes(8).toString("hex");
    try {
      makeFolders(stateDir);
      createNamed(path, Buffer.from(`${id}\n`));
      return id;
    } catch (error) {
      const other = alreadyExists(error) ? find() : undefined;
      if (other !== undefined) return other;
      throw fileFailure(error, "write", { path });
    }
  };
  const copy = (): string => {
    const id = find() ?? make();
    const { ino, birthtimeNs } = statSync(path, { bigint: true });
    return `${id}.${createHash("sha256").update(`${ino} ${birthtimeNs}`).digest("hex").slice(0, 8)}`;
  };
  return { find, make: () => find() ?? make(), copy };
}
