// Owns: what may be sent to the control address.
// Must not know: what is done with it.
import * as z from "zod/mini";
import { invalidRequest } from "./problem.ts";
import { clientStatuses } from "./state.ts";

const time = z.optional(z.nullable(z.int()));

/** Times are epoch milliseconds. A field that is left out stays as it is. */
export const controlBodies = {
  fault: z.strictObject({ fault: z.string() }),
  oauthClient: z.strictObject({
    status: z.optional(z.enum(clientStatuses)),
    cleanup: z.optional(z.enum(["open", "confirmed"])),
  }),
  serviceAccount: z.strictObject({
    status: z.optional(z.enum(["active", "disabled"])),
    permissions: z.optional(z.array(z.string())),
    assignedVersion: z.optional(z.string()),
  }),
  organization: z.strictObject({ oauth_enabled: z.boolean() }),
  apiKey: z.strictObject({
    status: z.optional(z.enum(["active", "revoked", "disabled"])),
    scopes: z.optional(z.nullable(z.array(z.string()))),
    expiresAt: time,
  }),
  accessKey: z.strictObject({
    status: z.optional(z.enum(["active", "revoked"])),
    createdAt: z.optional(z.int()),
    lastUsedAt: time,
    expiresAt: time,
  }),
  contractVersion: z.strictObject({ version: z.string().check(z.regex(/^[0-9]{4}-[0-9]{2}-[0-9]{2}$/)) }),
};

/** @throws Problem 400 */
export function readControl<Schema extends z.ZodMiniType>(schema: Schema, body: unknown): z.output<Schema> {
  const read = schema.safeParse(body);
  if (read.success) return read.data;
  const issue = read.error.issues[0]!;
  throw invalidRequest(`${issue.path.join(".") || "The body"}: ${issue.message}`);
}

export function cleanupOf(word: "open" | "confirmed", now: number): number | "open" {
  return word === "open" ? "open" : now;
}
