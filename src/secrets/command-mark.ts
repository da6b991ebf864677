// Owns: telling whether a `--secret-command` is the one that an entry was made with, without remembering it. Pure.
// Must not know: how it is run. Design: cli.md §4 «Secret options»; journal.md promise 6 (no credential in the journal).
import { createHash } from "node:crypto";
import type { SecretFormat } from "./destination.ts";

/**
 * Eight hexadecimal digits of a digest of the command and its format. A command may hold a credential, so that its text is
 * not kept: this tells another one apart, and is far too short to tell which it was.
 */
export function commandMark({ command, format }: { readonly command: string; readonly format: SecretFormat }): string {
  return createHash("sha256").update(`${format}\0${command.trim()}`).digest("hex").slice(0, 8);
}
