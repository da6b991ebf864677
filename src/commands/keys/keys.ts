import type { Context } from "../../context.ts";
import type { Column, ResourceView } from "../../output/formats/format.ts";

export const accessKeyColumns: readonly Column[] = [
  { path: "id", heading: "id" },
  { path: "name", heading: "name" },
  { path: "keyType", heading: "type" },
  { path: "boundEmail", heading: "bound to" },
  { path: "status", heading: "status", kind: "status", expiry: "expiresAt" },
  { path: "lastUsedAt", heading: "last used", kind: "time", none: "never" },
  { path: "expiresAt", heading: "expires", kind: "time", none: "never" },
  { path: "createdAt", heading: "created", kind: "time" },
  { path: "createdByUserId", heading: "created by", kind: "word" },
  { path: "scopes", heading: "scopes", kind: "list" },
];

export const accessKeyView: ResourceView = {
  columns: [...accessKeyColumns, { path: "secret", heading: "secret" }],
  secretField: "secret",
};

export const deliveredKeyView: ResourceView = { ...accessKeyView, nulls: ["secret"] };

/** The view of any key without its secret, not only of a revoked one. */
export const revokedKeyView: ResourceView = { columns: accessKeyColumns };

export const findingColumns: readonly Column[] = [
  { path: "severity", heading: "severity", kind: "status" },
  { path: "rule", heading: "rule", kind: "id" },
  { path: "key_id", heading: "key" },
  { path: "key_name", heading: "name" },
  { path: "message", heading: "finding", kind: "sentence" },
  { path: "remedy", heading: "next step", kind: "command" },
];

export function askKey(question: string): (context: Context) => Promise<string | undefined> {
  return async (context) => (await import("./pick-key.ts")).pickKey(context, question);
}
