// `keys audit --fix`: the remedies that revoke, as one plan that is asked about. A key that something uses is left to a person.
import { keyRevocationIntent, revokeAccessKey } from "../../changes/revocation.ts";
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import { shell } from "../../next-step.ts";
import { actingAs, mentionUnsettled, workbenchOf } from "../running/change.ts";
import { changeEach } from "../running/several.ts";
import type { Finding, RuleName } from "./audit-rules.ts";
import { revokedKeyView } from "./keys.ts";

/** Rules that find a key which nothing uses. One that is new and was not used yet may be about to be. */
const ofUnused: ReadonlySet<RuleName> = new Set(["expired_active", "idle", "never_used"]);

/** @returns what is left to a person */
export async function fixKeys(
  context: Context,
  findings: readonly Finding[],
  { isTrial }: { readonly isTrial: boolean },
): Promise<readonly Finding[]> {
  const { output } = context;
  const ids = [...new Set(findings.filter(isRevocable).map(({ key_id }) => key_id!))];
  for (const { key_id, key_name, message, remedy } of findings) {
    const step = ids.includes(key_id ?? "")
      ? "--fix revokes it."
      : remedy.startsWith("integ ")
        ? `Next: ${remedy}`
        : remedy;
    output.note(`${key_id ?? key_name ?? "a key without id"}: ${message}. ${step}`);
  }
  const left = findings.filter(({ key_id }) => key_id === null || !ids.includes(key_id));
  const bench = await workbenchOf(context);
  if (isTrial) {
    const { requestStep, showSteps } = await import("../running/dry-run.ts");
    await showSteps(
      context,
      ids.map((id) => requestStep(`revoke ${id}`, keyRevocationIntent(bench, id), { body: "" })),
    );
    return [];
  }
  if (ids.length === 0) return left;
  const question = `${actingAs(bench)}: revoke ${ids.join(", ")}? Nothing uses them as far as the API shows.`;
  if (!(await output.confirm(question, { destructive: true })))
    throw new Failure("usage", "Nothing was revoked: the answer was no.");
  await mentionUnsettled(context);
  const change = async (id: string): Promise<string> => (await revokeAccessKey(bench, id)).receipt;
  await changeEach(context, { ids, view: revokedKeyView, change });
  return left;
}

/** The remedy of a key that the caller may authenticate with is never to revoke it. */
function isRevocable({ rule, severity, key_id, remedy }: Finding): boolean {
  return key_id !== null && ofUnused.has(rule) && severity !== "low" && remedy === shell`integ keys revoke ${key_id}`;
}
