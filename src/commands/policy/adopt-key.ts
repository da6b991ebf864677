import { addDryRun, defineVerb } from "../verb.ts";
import { actingFor } from "./acting.ts";
import { adoptAsItem, namedItem } from "./adoption.ts";
import { addPolicyFile, loadPolicy } from "./policy-file.ts";
import { askKey } from "../keys/keys.ts";
import { findKey } from "../keys/find-key.ts";
import { workbenchOf } from "../running/change.ts";

export const command = defineVerb({
  configure: (command) =>
    addDryRun(addPolicyFile(command))
      .argument("<id>", "The key's id or name")
      .option("--name <name>", "Name of the item in the policy (default: the key's own)"),
  examples: [
    { line: "integ adopt access-key ak_123 --name deploy", does: "an existing key, under the name of a policy item" },
    { line: "integ adopt access-key deploy", does: "by its name, if the item has the same one" },
  ],
  more: "integ only reads from the API. The key keeps its secret; the first rotation creates another key and delivers its secret to the destination in the policy. integ does not adopt a key of another policy.",
  asks: askKey("Which key?"),
  async run(given, { args: [typed], options }) {
    const { policy } = await loadPolicy(given, options.file);
    const context = actingFor(given, policy);
    const bench = await workbenchOf(context);
    const { key } = await findKey(context, bench.account.service, typed);
    const item = namedItem(given, policy, "access_key", options.name ?? key.name ?? "");
    const { id, status, name: called, keyType: type, scopes, expiresAt } = key;
    await adoptAsItem(context, {
      bench,
      isTrial: options.dryRun === true,
      adoption: { item, status, credential: { id, name: called, type, scopes, expiresAt } },
    });
  },
});
