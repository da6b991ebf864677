import { warnOfUsers } from "../running/users.ts";
import { revocationIntent, revokeNamed } from "../../operations/revocation.ts";
import { Failure } from "../../errors.ts";
import { addDryRun, defineVerb } from "../verb.ts";
import { actingAs, noteUnfinished, workbenchOf } from "../running/change.ts";
import { changeEach, eachOnce } from "../running/several.ts";
import { shell } from "../../next-step.ts";
import { warnIfLockedOut } from "./own-key.ts";
import { askKey, revokedKeyView } from "./keys.ts";

export const command = defineVerb({
  contract: "legacy",
  fields: revokedKeyView.columns.map(({ path }) => path),
  result: revokedKeyView.columns,
  configure: (command) => addDryRun(command.argument("<id...>", "Ids of the keys")),
  examples: [
    { line: "integ keys revoke ak_123", does: "confirm first" },
    { line: "integ keys revoke ak_123 ak_124 --yes", does: "several; skip the question; safe to repeat" },
  ],
  asks: askKey("Which key should be revoked?"),
  async run(context, { args: [typed], options }) {
    // For a prompted argument, `typed` is one id and not a list.
    const ids = eachOnce([typed].flat(), shell`integ keys list`);
    const profile = await context.profiles.active();
    await profile.legacy();
    const bench = await workbenchOf(context);
    if (options.dryRun) {
      const { requestStep, showSteps } = await import("../running/dry-run.ts");
      const steps = ids.map((id) => requestStep(`revoke ${id}`, revocationIntent(bench, "key", id)));
      return showSteps(context, steps);
    }
    await warnOfUsers(context, ids);
    const own = ids.find((id) => id === profile.keyId);
    const warning = own === undefined ? "" : ` This profile uses ${own} and would be locked out.`;
    const what = ids.length === 1 ? `key ${ids[0]}` : `${ids.length} keys (${ids.join(", ")})`;
    const agreed = await context.output.confirm(`${actingAs(bench)}: revoke ${what}?${warning}`, { destructive: true });
    if (!agreed) throw new Failure("usage", "Not revoked: the answer was no.");
    await noteUnfinished(context);
    // The caller's own key is revoked last, because its revocation locks the caller out.
    const inOrder = [...ids].sort((a, b) => Number(a === own) - Number(b === own));
    const change = async (id: string): Promise<string> => {
      const { receipt, isConfirmed } = await revokeNamed(bench, "key", id);
      if (!isConfirmed)
        context.output.note(
          `The service accepted the revocation of ${id}; neither its response nor its list shows the key's status.`,
        );
      return receipt;
    };
    await changeEach(context, { ids: inOrder, view: revokedKeyView, change, states: ["revoking", "revoked"] });
    for (const id of inOrder) await warnIfLockedOut(context, profile, { id });
  },
});
