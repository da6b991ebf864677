// The folder of test servers' databases: in memory if possible. To find what a killed test run leaves, set
// INTEG_TEST_DATABASES to a folder of your own.
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";

export function databasesFolder(): string {
  return process.env.INTEG_TEST_DATABASES ?? (existsSync("/dev/shm") ? "/dev/shm" : tmpdir());
}
