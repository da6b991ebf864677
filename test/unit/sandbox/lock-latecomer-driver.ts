// Takes the lock once and prints when it was let in.
import { withLock } from "../../../src/sandbox/lock.ts";

void withLock(process.argv[2]!, () => process.stdout.write(String(Date.now())));
