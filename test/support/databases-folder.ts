// Where test servers keep their databases: in memory, where there is such a folder. Who kills a run names one that it removes.
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";

export function databasesFolder(): string {
  return process.env.INTEG_TEST_DATABASES ?? (existsSync("/dev/shm") ? "/dev/shm" : tmpdir());
}
