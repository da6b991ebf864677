import { revokeAccessKey } from "../../changes/access-key/revoke.ts";
import { Failure } from "../../errors.ts";
import { showMade, mentionUnsettled, workbenchOf } from "../running/change.ts";
import { defineVerb } from "../verb.ts";
import { askKey, revokedKeyView } from "./keys.ts";

export const command = defineVerb({
  configure: (command) => command.argument("<id>", "The key's id"),
  examples: [
    { line: "integ keys revoke ak_123", does: "asks first" },
    { line: "integ keys revoke ak_123 --yes", does: "without the question; safe to repeat" },
  ],
  asks: askKey("Which key is to be revoked?"),
  async run(context, { args: [id] }) {
    if (id.trim() === "") throw new Failure("usage", "The key's id is empty.", { hint: "integ keys revoke <id>" });
    await (await context.profiles.active()).legacy();
    const bench = await workbenchOf(context);
    const { profile, region, keyId } = bench.account;
    const own = keyId === id ? " It is the key that this profile lives on: the profile can do nothing afterwards." : "";
    const agreed = await context.output.confirm(`Revoke key ${id} as profile ${profile} (${region})?${own}`, {
      destructive: true,
    });
    if (!agreed) throw new Failure("usage", "Not revoked: the answer was no.");
    await mentionUnsettled(context);
    const { receipt, seen } = await revokeAccessKey(bench, id);
    await showMade(() => context.output.resource(receipt, revokedKeyView));
    if (!seen)
      context.output.note(
        "The service accepted the revocation; neither its answer nor its list tells the key's status.",
      );
  },
});
