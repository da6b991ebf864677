// The folder of test servers' databases: in memory if possible. A caller that kills test runs sets INTEG_TEST_DATABASES to its
// own folder, and removes that folder.
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";

export function databasesFolder(): string {
  return process.env.INTEG_TEST_DATABASES ?? (existsSync("/dev/shm") ? "/dev/shm" : tmpdir());
}
