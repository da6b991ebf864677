import { revokeAccessKey } from "../../changes/access-key/revoke.ts";
import { Failure } from "../../errors.ts";
import { actingAs, showMade, mentionUnsettled, workbenchOf } from "../running/change.ts";
import { defineVerb } from "../verb.ts";
import { tellIfLockedOut } from "./own-key.ts";
import { askKey, revokedKeyView } from "./keys.ts";
import { shell } from "../../next-step.ts";

export const command = defineVerb({
  configure: (command) => command.argument("<id>", "The key's id"),
  examples: [
    { line: "integ keys revoke ak_123", does: "asks first" },
    { line: "integ keys revoke ak_123 --yes", does: "skip the question; safe to repeat" },
  ],
  asks: askKey("Which key should be revoked?"),
  async run(context, { args: [id] }) {
    if (id.trim() === "") throw new Failure("usage", "The key's id is empty.", { nextCommand: shell`integ keys list` });
    const profile = await context.profiles.active();
    await profile.legacy();
    const bench = await workbenchOf(context);
    const own = profile.keyId === id ? " This profile uses it and would be locked out." : "";
    const agreed = await context.output.confirm(`${actingAs(bench)}: revoke key ${id}?${own}`, {
      destructive: true,
    });
    if (!agreed) throw new Failure("usage", "Not revoked: the answer was no.");
    await mentionUnsettled(context);
    const { receipt, seen } = await revokeAccessKey(bench, id);
    await showMade(() => context.output.resource(receipt, revokedKeyView));
    if (!seen)
      context.output.note(
        "The service accepted the revocation; neither its response nor its list shows the key's status.",
      );
    await tellIfLockedOut(context, profile, { id });
  },
});
