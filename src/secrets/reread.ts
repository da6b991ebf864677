// Owns: reading back a secret that was delivered to a file, for a proof by token exchange after a crash.
// Must not know: the journal, the API. Design: cli.md §4 (rotate), journal.md `recover`.
import { closeSync, constants } from "node:fs";
import { openPrivateFile } from "../disk/private-file.ts";
import type { DestinationRecord, SecretFormat } from "./destination.ts";
import { contentOf, isSameFile } from "./reserved-file.ts";
import { isWhole } from "./secret-format.ts";

/**
 * @returns the secret, where the remembered file still is the one that was delivered and a person has not changed its form
 */
export function rereadSecret(record: DestinationRecord): string | undefined {
  if (record.kind !== "file" || record.inode === undefined || !isSameFile(record.path, record)) return undefined;
  const fd = openPrivateFile(record.path, constants.O_RDONLY);
  try {
    const text = contentOf(fd);
    return isWhole(text, record.format) ? parsed(text, record.format) : undefined;
  } finally {
    closeSync(fd);
  }
}

function parsed(text: string, format: SecretFormat): string | undefined {
  if (format === "raw") return text.slice(0, -1);
  if (format === "json") {
    const fields: { client_secret?: unknown; secret?: unknown } = JSON.parse(text);
    const found = fields.client_secret ?? fields.secret;
    return typeof found === "string" ? found : undefined;
  }
  const value = /^INTEG_(?:CLIENT_SECRET|API_KEY)=(.*)$/m.exec(text)?.[1];
  return value?.startsWith("'") ? value.slice(1, -1).replaceAll(`'\\''`, "'") : value;
}
