// The folder of test servers' databases: in memory if possible. A caller that kills runs can name a folder that it removes.
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";

export function databasesFolder(): string {
  return process.env.INTEG_TEST_DATABASES ?? (existsSync("/dev/shm") ? "/dev/shm" : tmpdir());
}
