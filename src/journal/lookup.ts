// Owns: finding the entry that a person means by an id or the beginning of one. Pure.
// Must not know: files.
import { Failure } from "../errors.ts";
import type { Entry } from "./entry.ts";
import { normalizeId } from "./entry-id.ts";

/** @throws Failure `not_found`, or `usage` where the beginning fits several entries, which it names. */
export function findEntry(entries: readonly Entry[], typed: string): Entry {
  const wanted = normalizeId(typed);
  const fits = wanted === "" ? [] : entries.filter((entry) => entry.id.startsWith(wanted));
  const [first] = fits;
  const meant = fits.find((entry) => entry.id === wanted) ?? (fits.length === 1 ? first : undefined);
  if (meant) return meant;
  if (first === undefined) {
    throw new Failure("not_found", `No journal entry ${JSON.stringify(typed)}.`, { hint: "integ journal list --all" });
  }
  const named = fits.slice(0, 5).map((entry) => `${entry.id} (${entry.operation}, ${entry.state})`);
  const more = fits.length > named.length ? `, and ${fits.length - named.length} more` : "";
  throw new Failure("usage", `${JSON.stringify(typed)} fits ${fits.length} entries: ${named.join(", ")}${more}.`, {
    hint: "type more of the id",
  });
}
