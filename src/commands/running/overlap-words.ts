// Shared by the commands that rotate: words about the old credential, and the printing of receipts.
import { JsonText } from "../../api/json/json-text.ts";
import type { Context } from "../../context.ts";
import { shell } from "../../next-step.ts";
import { isShortOverlap, type Overlap, type RotationResult } from "../../operations/rotation.ts";
import type { ResourceView } from "../../output/formats/format.ts";
import { timeAhead } from "../../output/relative-time.ts";
import type { Destination } from "../../secrets/destination.ts";
import { printReceipt, reportDelivered } from "./change.ts";

export function oldCredentialWords(old: string, { overlapMs, unusedMs }: Overlap): string {
  if (unusedMs !== undefined)
    return `leave ${old} working until it was not used for ${durationWords(unusedMs)}, for ${durationWords(overlapMs)} at most: then integ journal recover revokes it`;
  if (overlapMs === 0) return `revoke ${old} once the new one works`;
  if (isShortOverlap(overlapMs)) return `revoke ${old} ${durationWords(overlapMs)} after the new one works`;
  return `leave ${old} working for ${durationWords(overlapMs)}, until integ journal recover revokes it`;
}

const units = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1000],
] as const;

/** @returns an exact duration, such as `24 hours`, `2 days` or `90 minutes` */
function durationWords(ms: number): string {
  const [name, unit] = units.find(([, size]) => ms % size === 0 && (size < 86_400_000 || ms > size)) ?? [
    "millisecond",
    1,
  ];
  const count = ms / unit;
  return `${count} ${name}${count === 1 ? "" : "s"}`;
}

/**
 * Prints a rotation's receipt before the rotation ends, because a script needs the new client or key even if the rest
 * fails. After the change, `throwPrintError` reports a failed print.
 */
export function receiptPrinter(context: Context, destination: Destination, view: ResourceView) {
  let failed: Error | undefined;
  return {
    async showReceipt(receipt: string, dueAt?: string): Promise<void> {
      if (destination.isStdout) return;
      try {
        await printReceipt(() => context.output.resource(withDueTime(receipt, dueAt), view));
      } catch (error) {
        if (!(error instanceof Error)) throw error;
        failed = error;
      }
      reportDelivered(context, destination);
    },
    throwPrintError(): void {
      if (failed !== undefined) throw failed;
    },
  };
}

function withDueTime(receipt: string, dueAt: string | undefined): string {
  return dueAt === undefined ? receipt : `${receipt.trimEnd().slice(0, -1)},"due_at":${JSON.stringify(dueAt)}}`;
}

export function rotatedRow(
  { output }: Context,
  { oldId, newId, dueAt, entry, receipt = "{}" }: RotationResult,
  secretField: "client_secret" | "secret",
): string {
  if (dueAt !== undefined)
    output.note(`${oldId} can be revoked ${output.when(dueAt)}. Next: ${shell`integ journal recover ${entry}`}`);
  const shown = JSON.parse(JsonText.of(receipt).withNulls([secretField])) as object;
  return withDueTime(JSON.stringify({ ...shown, id: newId, [secretField]: null }), dueAt);
}

/** @param nowMs the service's time */
export function overlapNote(
  about: Pick<Overlap, "unusedMs"> & { readonly entry: string; readonly old: string; readonly dueAt: string },
  nowMs: number,
): string {
  const { entry, old, dueAt, unusedMs } = about;
  const at = timeAhead(dueAt, nowMs);
  const when =
    unusedMs === undefined
      ? `after the overlap, which ends ${at}`
      : `once it was not used for ${durationWords(unusedMs)}, at the latest ${at}`;
  return `The old and the new one work. To revoke ${old}, run integ journal recover ${entry} ${when}; to revoke it immediately, add --now.`;
}
