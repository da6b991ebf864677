// Which machine this is, as far as what it wrote is concerned: an id in the state folder, made when it is first needed.
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { createNamed } from "./atomic-write.ts";
import { fileFailure, isThereAlready } from "./error-words.ts";
import { makeFolders, readPrivateFile } from "./private-file.ts";

/** The random id of a machine's state folder: a path, a profile or a keychain of another machine is another one. */
export interface MachineId {
  /** undefined: this machine has made none yet. */
  find(): string | undefined;
  make(): string;
}

export function machineIdIn(stateDir: string): MachineId {
  const path = join(stateDir, "machine");
  const find = (): string | undefined => readPrivateFile(path)?.trim() || undefined;
  const make = (): string => {
    const id = randomBytes(8).toString("hex");
    makeFolders(stateDir);
    try {
      createNamed(path, Buffer.from(`${id}\n`));
      return id;
    } catch (error) {
      const other = isThereAlready(error) ? find() : undefined;
      if (other !== undefined) return other;
      throw fileFailure(error, "write", { path });
    }
  };
  return { find, make: () => find() ?? make() };
}
