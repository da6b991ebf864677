// Reads or creates the key in the state folder that signs the records of this machine's journal.
import { dirname, join } from "node:path";
import { createNamed } from "../../disk/atomic-write.ts";
import { alreadyExists, fileFailure } from "../../disk/error-words.ts";
import { makeFolders, readPrivateFile } from "../../disk/private-file.ts";
import { Failure } from "../../errors.ts";
import { keyList, type KeySource, newKey } from "../keys.ts";

export function machineKey(stateDir: string): KeySource {
  const path = join(stateDir, "journal.key");
  const read = (): string[] => {
    const text = readPrivateFile(path);
    const keys = text === undefined ? [] : keyList(text);
    if (keys !== undefined) return keys;
    throw new Failure("usage", `The key of this machine's journal, ${path}, is damaged.`, {
      meaning: "Nothing was sent and nothing changed.",
      hint: "Restore the file from a backup. Without a backup, remove it: integ makes another key, and each entry stays untrusted until you check it with integ journal trust.",
    });
  };
  return {
    read,
    make() {
      const key = newKey();
      try {
        makeFolders(dirname(path));
        createNamed(path, Buffer.from(`${key}\n`));
        return key;
      } catch (error) {
        if (alreadyExists(error)) return read()[0]!;
        throw fileFailure(error, "write", { path });
      }
    },
  };
}
