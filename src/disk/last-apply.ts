// Stores when `apply` of a whole policy last succeeded on this machine. integ only shows the time.
import { createHash } from "node:crypto";
import { join } from "node:path";
import { replaceFile } from "./atomic-write.ts";
import { systemWords } from "./error-words.ts";
import { makeFolders, readPrivateFile } from "./private-file.ts";

export type LastApply = ReturnType<typeof lastApplyIn>;

/** The methods' `scope` identifies the account, because a policy can have items in several. */
export function lastApplyIn(stateDir: string) {
  const folder = join(stateDir, "applied");
  const pathOf = (policy: string, scope: object): string =>
    join(folder, `${policy}.${createHash("sha256").update(JSON.stringify(scope)).digest("hex").slice(0, 8)}`);
  return {
    find(policy: string, scope: object): string | undefined {
      try {
        return readPrivateFile(pathOf(policy, scope))?.trim();
      } catch {
        return undefined;
      }
    },
    /** @returns the reason if the time could not be stored */
    write(policy: string, scope: object, nowMs: number): string | undefined {
      try {
        makeFolders(folder, { synced: false });
        replaceFile(pathOf(policy, scope), `${new Date(nowMs).toISOString()}\n`, { durable: "content" });
        return undefined;
      } catch (error) {
        return systemWords(error);
      }
    },
  };
}
