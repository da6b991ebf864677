// `--dry-run` of every command that changes something: it does everything up to the change and prints what the real run then
// sends and changes on this machine.
import { sharedOptions } from "../verb.ts";

export const addDryRun = sharedOptions((command) =>
  command.option("--dry-run", "Show what would be sent and changed, and change nothing"),
);
