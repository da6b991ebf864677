// Shows where untrusted entries send requests and secrets, and asks before integ signs them.
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import type { Journal } from "../../journal/journal.ts";
import { entryIn, type EntryRecords } from "../../journal/record.ts";
import { describeDestination, placesOf } from "../../secrets/destination.ts";
import type { DryStep } from "../running/dry-run.ts";
import { creationOf } from "./deliveries.ts";

interface TrustQuestion {
  readonly steps: readonly DryStep[];
  /** Asks once for all entries. @throws Failure `usage` if the user declines, or integ cannot ask */
  ask(): Promise<void>;
}

/**
 * @param journal is searched for the creations of rotations, which record the destinations of the new secrets
 * @throws Failure `usage` if an entry's records are invalid
 */
export async function showTrust(
  { output }: Context,
  journal: Journal,
  entries: readonly EntryRecords[],
): Promise<TrustQuestion> {
  for (const { id, records } of entries) {
    const entry = entryIn(records.at(-1)?.content ?? "");
    if (entry?.id !== id)
      throw new Failure("usage", `The records of entry ${id} are invalid.`, { meaning: "Nothing was changed." });
    const { proof, exchange } = entry.detail;
    const endpoint = proof?.token_endpoint ?? (exchange?.kind === "endpoint" ? exchange.url : undefined);
    const places = [entry, await creationOf(journal, entry)].flatMap((one) => placesOf(one?.destination ?? null));
    output.note(`${id} (${entry.operation}, ${entry.state}): requests go to ${entry.base_url}`);
    for (const name of new Set(places.map((place) => describeDestination(place).name)))
      output.note(`${id}: its secret goes to ${name}`);
    if (endpoint !== undefined) output.note(`${id}: its secret is sent to ${endpoint} for a token`);
  }
  const named = entries.length > 5 ? `these ${entries.length} entries` : entries.map(({ id }) => id).join(", ");
  return {
    steps: entries.length === 0 ? [] : [{ what: `sign the records of ${named}` }],
    async ask() {
      if (entries.length > 0 && !(await output.confirm(`Trust ${named}?`, { destructive: true })))
        throw new Failure("usage", "Nothing was signed: the answer was no.");
    },
  };
}
