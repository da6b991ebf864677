// Repeats a change for several ids. A failed change does not stop the others; an interruption does.
import type { Context } from "../../context.ts";
import { Failure, isInterruption } from "../../errors.ts";
import { needsForce, type NextCommand, type NextStep } from "../../next-step.ts";
import type { ResourceView } from "../../output/formats/format.ts";
import { printReceipt } from "./change.ts";

interface Changes {
  readonly ids: readonly string[];
  readonly view: ResourceView;
  readonly change: (id: string) => Promise<string>;
  readonly states: readonly [doing: string, done: string];
  /** The next step if the destination already has other content. */
  readonly ifOccupied?: (id: string) => NextStep;
}

/**
 * Prints one result as a resource, several as a list. @throws an unknown outcome, else the first failure; the others
 * are warnings
 */
export async function changeEach(context: Context, { ids, view, states, ...how }: Changes): Promise<void> {
  const { output } = context;
  const change = (id: string): Promise<string> =>
    how.change(id).catch((error: unknown) => {
      throw error instanceof Failure && how.ifOccupied ? withoutForce(error, how.ifOccupied(id)) : error;
    });
  const [only, ...more] = ids;
  if (only !== undefined && more.length === 0) {
    const receipt = await change(only);
    return printReceipt(() => output.resource(receipt, view));
  }
  const receipts: string[] = [];
  const failures: { id: string; failure: Failure }[] = [];
  const [doing, done] = states;
  const table = output.liveTable(`${doing.charAt(0).toUpperCase()}${doing.slice(1)}`, ids);
  try {
    for (const id of ids) {
      table.set(id, doing);
      try {
        receipts.push(await change(id));
        table.end(id, done);
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        failures.push({ id, failure: error });
        table.end(id, error.kind === "outcome_unknown" ? "unknown" : "failed");
        if (isInterruption(error)) break;
      }
    }
  } finally {
    table.done();
  }
  await printReceipt(async () => {
    const { list } = output.report({ columns: view.columns, singular: "resource", plural: "resources" });
    await list.whole(receipts);
  });
  const failed = failures.length === 0 ? "" : `, ${failures.length} failed`;
  output.ending(`Changed: ${receipts.length} ${done}${failed}.`);
  const worst = failures.find(({ failure }) => failure.kind === "outcome_unknown") ?? failures[0];
  for (const one of failures) if (one !== worst) output.warn(`${one.id}: ${one.failure.message}`);
  if (worst !== undefined) throw worst.failure;
}

/** The command has no `--force`, so advice to use it is replaced. */
export function withoutForce(failure: Failure, step: NextStep): Failure {
  if (!needsForce(failure.details)) return failure;
  return new Failure(failure.kind, failure.message, { ...failure.details, nextCommand: undefined, ...step });
}

export function eachOnce(typed: readonly string[], nextCommand: NextCommand): string[] {
  if (typed.some((id) => id.trim() === ""))
    throw new Failure("usage", "An id is empty.", { meaning: "Nothing was sent.", nextCommand });
  return [...new Set(typed)];
}
