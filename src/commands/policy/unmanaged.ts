import type { Workbench } from "../../operations/workbench.ts";
import type { Context } from "../../context.ts";
import type { Unmanaged } from "../../policy/plan.ts";
import { isTrustedClient } from "../oauth-clients/clients.ts";
import { actingAs } from "../running/change.ts";

export async function revokeUnmanaged(
  { output }: Context,
  bench: Workbench,
  {
    unmanaged,
    entriesAtPlan,
  }: { readonly unmanaged: readonly Unmanaged[]; readonly entriesAtPlan: ReadonlySet<string> },
): Promise<void> {
  for (const { kind, id, name, created_at, ownership } of unmanaged) {
    const noun = kind === "oauth_client" ? "client" : "key";
    if (ownership !== "other") {
      output.note(`The ${noun} ${id} stays: the profile ${ownership === "own" ? "uses" : "may use"} it.`);
      continue;
    }
    if (noun === "client" && !(await isTrustedClient(bench.journal, id))) {
      output.warn(`The client ${id} stays: only an untrusted entry names it.`);
      continue;
    }
    const facts = [name, created_at && `created ${created_at}`].filter((fact) => fact).join(", ");
    const question = `${actingAs(bench)}: revoke the ${noun} ${id}${facts === "" ? "" : ` (${facts})`}? It is in no item of the policy.`;
    if (!(await output.confirm(question, { destructive: true }))) continue;
    const since = (await bench.journal.select({ all: true, resource: id })).find((one) => !entriesAtPlan.has(one.id));
    if (since !== undefined) {
      output.note(`The ${noun} ${id} stays: since the plan, the journal entry ${since.id} is about it.`);
      continue;
    }
    const { revokeNamed } = await import("../../operations/revocation.ts");
    await revokeNamed(bench, noun, id);
    output.note(`The ${noun} ${id} is revoked.`);
  }
}
