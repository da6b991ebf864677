// A folder for what the PostgreSQL servers of a run begin as: to initialize one takes longer than most tests. The first that
// starts one makes it (postgres.ts), whatever process it is in.
import { chmodSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Before the first test. @returns what is done after the last */
export default function keepTemplate(): () => void {
  const folder = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "integ-pg-template-"));
  chmodSync(folder, 0o755);
  process.env.INTEG_TEST_POSTGRES = folder;
  return () => rmSync(folder, { recursive: true, force: true });
}
