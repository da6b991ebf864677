// Reads or creates the machine's own key in its state folder, which signs the records of the machine's journal.
import { dirname, join } from "node:path";
import { createNamed } from "../../disk/atomic-write.ts";
import { alreadyExists } from "../../disk/error-words.ts";
import { makeFolders, readPrivateFile } from "../../disk/private-file.ts";
import { type KeySource, newKey, parseKeys } from "../keys.ts";

export function machineKey(stateDir: string): KeySource {
  const path = join(stateDir, "journal.key");
  const read = (): string[] => {
    const text = readPrivateFile(path);
    return text === undefined ? [] : parseKeys(text.trim(), path);
  };
  return {
    read,
    make() {
      const key = newKey();
      makeFolders(dirname(path));
      try {
        createNamed(path, Buffer.from(`${key}\n`));
        return key;
      } catch (error) {
        // Another process created the file first.
        if (alreadyExists(error)) return read()[0]!;
        throw error;
      }
    },
  };
}
