// Rows as YAML out of the bytes of a page whose members are known. Anything else goes through yaml-text.ts.
import { ByteWriter } from "../byte-writer.ts";
import type { ChosenFields } from "../fields.ts";
import { type FieldSlot, type Layout, oncePerLayout, slotOf, textBelow } from "../row-members.ts";
import { type ReadPage, rowText } from "../row-page.ts";
import { areOwnMembers, valueKinds, type LeftRow, type RowFormat, type RowPart, writeRows } from "../row-writer.ts";
import { reserved, scalar, yamlEntry, yamlText } from "./yaml-text.ts";

const margin = "    ";
const [quote, space] = [0x22, 0x20];
/** 2: may be in a word that needs no quotes; 1: stands for itself in quotes; 0: neither. */
const kinds = new Uint8Array(256).map((_, byte) => {
  if (byte < space || byte > 0x7e || byte === quote || byte === 0x5c) return 0;
  return /[A-Za-z0-9_./@+-]/.test(String.fromCharCode(byte)) ? 2 : 1;
});
const longestReserved = 5;

interface Part extends FieldSlot {
  /** What is before the value's colon. */
  readonly key: Buffer;
  readonly found?: () => void;
}

export class YamlBytes {
  readonly #chosen: ChosenFields;
  readonly #out = new ByteWriter();
  readonly #partsOf = oncePerLayout((layout): readonly Part[] => {
    const before = (index: number): string => (index === 0 ? "  - " : `\n${margin}`);
    const chosen = this.#chosen.all?.map((field, index) => {
      const { slot, steps } = slotOf(layout, field);
      const found = (): void => this.#chosen.found(field);
      if (slot !== -1 && steps.length === 0) found();
      return { slot, steps, found, key: Buffer.from(before(index) + scalar(field.name)) };
    });
    return (
      chosen ?? layout.names.map((name, slot) => ({ slot, steps: [], key: Buffer.from(before(slot) + scalar(name)) }))
    );
  });

  readonly #format: RowFormat = {
    parts: oncePerLayout((layout) => (this.#isTree(layout) ? undefined : bulkOf(this.#partsOf(layout)))),
    row: (left) => this.#anyRow(left),
  };

  constructor(chosen: ChosenFields) {
    this.#chosen = chosen;
  }

  /** @param head what is before the rows. The bytes are overwritten by the next page. */
  of(page: ReadPage, head: string): Buffer {
    const out = this.#out;
    out.text(head);
    writeRows(page, out, this.#format);
    this.#chosen.count(page.spans.length / 2);
    return out.take();
  }

  /** Rows that are written from their text alone: YAML forbids a key twice. */
  #isTree(layout: Layout): boolean {
    return this.#partsOf(layout).length === 0 || (this.#chosen.all === undefined && layout.hasDuplicates);
  }

  #anyRow({ page, layout, first, row }: LeftRow): void {
    if (this.#isTree(layout)) this.#out.text(`  - ${yamlText(this.#chosen.of(rowText(page, row)), margin)}`);
    else this.#row(page, this.#partsOf(layout), first);
    this.#out.text("\n");
  }

  #row({ body, members: { places } }: ReadPage, parts: readonly Part[], first: number): void {
    const out = this.#out;
    for (const { key, slot, steps, found } of parts) {
      out.reserve(key.length);
      out.copy(key, 0, key.length);
      const at = first + slot * 4;
      const [start, end] = slot === -1 ? [0, 0] : [places[at + 2]!, places[at + 3]!];
      if (slot === -1) out.text(": null");
      else if (steps.length === 0) this.#value(body, start, end);
      else {
        const text = textBelow(body.toString("utf8", start, end), steps);
        if (text !== undefined) found?.();
        out.text(yamlEntry(text ?? "null", margin));
      }
    }
  }

  #value(body: Buffer, start: number, end: number): void {
    const out = this.#out;
    const byte = body[start]!;
    const kind = byte === quote ? kindOf(body, start + 1, end - 1) : byte === 0x7b || byte === 0x5b ? 0 : 1;
    if (kind === 0) return out.text(yamlEntry(body.toString("utf8", start, end), margin));
    out.reserve(end - start + 2);
    out.byte(0x3a);
    out.byte(space);
    if (kind === 2) out.copy(body, start + 1, end - 1);
    else out.copy(body, start, end);
  }
}

/** The same for many rows by one call. */
function bulkOf(parts: readonly Part[]): readonly RowPart[] | undefined {
  if (!areOwnMembers(parts)) return undefined;
  const bulk = parts.map(
    ({ key, slot }): RowPart =>
      slot === -1
        ? { before: Buffer.concat([key, Buffer.from(": null")]), slot: 0, kind: valueKinds.none }
        : { before: Buffer.concat([key, Buffer.from(": ")]), slot, kind: valueKinds.yaml },
  );
  return [...bulk, { before: Buffer.from("\n"), slot: 0, kind: valueKinds.none }];
}

/** 2: needs no quotes; 1: is in quotes as it is; 0: neither. As `scalar` has it. */
function kindOf(body: Buffer, start: number, end: number): 0 | 1 | 2 {
  let isWord = end > start && body[start]! >= 0x41 && kinds[body[start]!] === 2 && body[start] !== 0x5f;
  let isAfterSpace = false;
  for (let at = start; at < end; at += 1) {
    const byte = body[at]!;
    const kind = kinds[byte]!;
    if (kind === 0) return 0;
    if (kind === 1 && (byte !== space || isAfterSpace)) isWord = false;
    isAfterSpace = byte === space;
  }
  if (!isWord || isAfterSpace) return 1;
  return end - start <= longestReserved && reserved.test(body.toString("latin1", start, end)) ? 1 : 2;
}
