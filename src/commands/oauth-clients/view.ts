// Owns: how an OAuth client is laid out for a person: its fields in the document's order (§2.3).
import type { ResourceView } from "../../output/output.ts";

export const oauthClientView: ResourceView = {
  columns: [
    { path: "id", heading: "id" },
    { path: "service_account_id", heading: "service account" },
    { path: "client_id", heading: "client id" },
    { path: "client_secret", heading: "client secret" },
    { path: "scopes", heading: "scopes", kind: "list" },
    { path: "status", heading: "status", kind: "status" },
    { path: "created_at", heading: "created", kind: "time" },
  ],
  secretField: "client_secret",
};
