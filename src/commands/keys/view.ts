// Owns: how access keys and findings are laid out for a person: fields in the document's order (§2.4).
import type { Column, ResourceView } from "../../output/output.ts";

export const accessKeyColumns: readonly Column[] = [
  { path: "id", heading: "id" },
  { path: "name", heading: "name" },
  { path: "keyType", heading: "type" },
  { path: "boundEmail", heading: "bound to" },
  { path: "status", heading: "status", kind: "status" },
  { path: "lastUsedAt", heading: "last used", kind: "time" },
  { path: "expiresAt", heading: "expires", kind: "time" },
  { path: "createdAt", heading: "created", kind: "time" },
  { path: "createdByUserId", heading: "created by" },
  { path: "scopes", heading: "scopes", kind: "list" },
];

export const accessKeyView: ResourceView = {
  columns: [...accessKeyColumns, { path: "secret", heading: "secret" }],
  secretField: "secret",
};

/** The same for a secret that went elsewhere. */
export const deliveredKeyView: ResourceView = { ...accessKeyView, nulls: ["secret"] };

/** A key without a secret: after a revocation. */
export const revokedKeyView: ResourceView = { columns: accessKeyColumns };

export const findingColumns: readonly Column[] = [
  { path: "severity", heading: "severity" },
  { path: "rule", heading: "rule" },
  { path: "key_id", heading: "key" },
  { path: "key_name", heading: "name" },
  { path: "message", heading: "what was seen" },
  { path: "remedy", heading: "what to do" },
];
