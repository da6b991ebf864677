// What is in a journal that is written again: every record of each entry that stays, behind a digest of them all.
import { createHash } from "node:crypto";
import type { Fold } from "../fold.ts";
import { brokenStep, type KeptPart } from "../record.ts";

const lineEnd = Buffer.from("\n");
const writtenAtOnce = 1024 * 1024;

/**
 * In pieces: a long journal is never in memory as a whole.
 * @param about.going ids of the entries that are left out
 */
export function* writtenAnew(
  fold: Fold,
  about: { readonly going: ReadonlySet<string>; readonly header: (kept: KeptPart) => string },
): Iterable<Buffer> {
  const staying = [...fold.ids()].filter((id) => !about.going.has(id)).reverse();
  let pieces: Uint8Array[] = [Buffer.from(about.header(keptPart(fold, staying)))];
  let size = 0;
  for (const id of staying) {
    for (const { bytes, start, end } of fold.lines(id)) {
      pieces.push(bytes.subarray(start, end), lineEnd);
      size += end - start;
    }
    if (size < writtenAtOnce) continue;
    yield Buffer.concat(pieces);
    [pieces, size] = [[], 0];
  }
  yield Buffer.concat(pieces);
}

function keptPart(fold: Fold, staying: readonly string[]): KeptPart {
  const digest = createHash("sha256");
  const gaps: string[] = [];
  let records = 0;
  for (const id of staying) {
    const own = fold.records(id).map(({ record }) => record);
    records += own.length;
    for (const { sum } of own) digest.update(sum);
    if (brokenStep(own) !== undefined) gaps.push(id);
  }
  return { records, digest: digest.digest("hex"), gaps };
}
