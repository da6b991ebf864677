import { Failure } from "../../errors.ts";
import { askEntry } from "../options/known-names.ts";
import { addDryRun, defineVerb } from "../verb.ts";
import { deliveriesOf } from "./deliveries.ts";

export const command = defineVerb({
  configure: (command) => addDryRun(command).argument("<id...>", "The entries to trust"),
  examples: [
    { line: "integ journal trust 6k2f9", does: "show where its requests and its secret go, then confirm" },
    { line: "integ journal trust 6k2f9 --yes", does: "skip the question" },
  ],
  more: "An entry is untrusted if a record of it was not signed with a key of this machine: it was imported, or its key was lost or replaced. Trusting it signs its records again. Look at its destinations and addresses first: the writer of the entry chose them.",
  asks: (context) => askEntry(context, { question: "Which entry should be trusted?" }),
  async run(context, { args: [ids], options }) {
    const { output } = context;
    const journal = await context.journal();
    const entries = await Promise.all(ids.map((id) => journal.find(id)));
    for (const entry of entries) {
      const { proof, exchange } = entry.detail;
      const endpoint = proof?.token_endpoint ?? (exchange?.kind === "endpoint" ? exchange.url : undefined);
      output.note(`${entry.id} (${entry.operation}, ${entry.state}): requests go to ${entry.base_url}`);
      for (const { address } of await deliveriesOf(journal, entry))
        output.note(`${entry.id}: its secret goes to ${address}`);
      if (endpoint !== undefined) output.note(`${entry.id}: its secret is sent to ${endpoint} for a token`);
    }
    const named = entries.map(({ id }) => id).join(", ");
    if (options.dryRun) {
      const { showSteps } = await import("../running/dry-run.ts");
      return showSteps(context, [{ what: `sign the records of ${named}` }]);
    }
    if (!(await output.confirm(`Trust ${named}?`, { destructive: true })))
      throw new Failure("usage", "Nothing was signed: the answer was no.");
    for (const { id } of entries) await journal.trust(id);
    await output.document({ object: "journal_trust", entries: entries.map(({ id }) => id) });
  },
});
