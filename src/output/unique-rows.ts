// Leaves out rows whose id was there before.
import { eachRow } from "./row-members.ts";
import { hasMembers, type ReadPage, type RowPage, rowCount, rowText } from "./row-page.ts";

/** In `ranges`: the names of a row differ from those of the row before. */
const differs = 0x80000000;

export class UniqueRows {
  readonly #seen = new Set<string>();

  /** The page without repeated rows. A row without an id is no one's repeat. */
  of(page: RowPage): RowPage {
    const isNew = new Uint8Array(rowCount(page));
    const count = hasMembers(page) ? this.#mark(page, isNew) : this.#markTexts(page, isNew);
    return count === isNew.length ? page : keptRows(page, { isNew, count });
  }

  #markTexts(page: RowPage, isNew: Uint8Array): number {
    let count = 0;
    for (let row = 0; row < isNew.length; row += 1)
      count += isNew[row] = this.#isNew((JSON.parse(rowText(page, row)) as { readonly id?: unknown }).id);
    return count;
  }

  #mark(page: ReadPage, isNew: Uint8Array): number {
    const { body, members } = page;
    let count = 0;
    eachRow(page, (layout, first, row) => {
      const at = first + layout.slotOf("id") * 4;
      const id = at < first ? undefined : stringOf(body, members.places[at + 2]!, members.places[at + 3]!);
      count += isNew[row] = this.#isNew(id);
    });
    return count;
  }

  /** §2.2: an id is a string. A number may have lost digits on the way here, and is no one's repeat. */
  #isNew(id: unknown): 0 | 1 {
    if (typeof id !== "string") return 1;
    const before = this.#seen.size;
    return this.#seen.add(id).size > before ? 1 : 0;
  }
}

/** A string among the bytes of a body; nothing if it is not a string. */
function stringOf(body: Buffer, start: number, end: number): string | undefined {
  if (body[start] !== 0x22) return undefined;
  for (let at = start + 1; at < end - 1; at += 1)
    if (body[at]! >= 0x80 || body[at] === 0x5c) return String(JSON.parse(body.toString("utf8", start, end)));
  return body.toString("latin1", start + 1, end - 1);
}

function keptRows(page: RowPage, { isNew, count }: { isNew: Uint8Array; count: number }): RowPage {
  const { body, spans, members } = page;
  const kept = new Uint32Array(count * 2);
  const ranges = new Uint32Array(count * 2);
  let [at, change] = [0, 0];
  for (let row = 0; row < isNew.length; row += 1) {
    const [first = 0, after = 0] = members?.ranges.subarray(row * 2, row * 2 + 2) ?? [];
    change |= first & differs;
    if (isNew[row] === 0) continue;
    kept.set([spans[row * 2]!, spans[row * 2 + 1]!], at);
    ranges.set([(first | change) >>> 0, after], at);
    change = 0;
    at += 2;
  }
  return { body, spans: kept, members: members && { ranges, places: members.places } };
}
