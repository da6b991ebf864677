// The folder of test servers' databases: in memory if possible. A caller that kills runs sets and removes a folder of its own.
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";

export function databasesFolder(): string {
  return process.env.INTEG_TEST_DATABASES ?? (existsSync("/dev/shm") ? "/dev/shm" : tmpdir());
}
