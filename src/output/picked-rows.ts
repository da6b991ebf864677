// The fields of `--fields`, copied byte for byte out of pages whose members are known.
import { ByteWriter } from "./byte-writer.ts";
import type { ChosenFields, FieldPath } from "./fields.ts";
import { type FieldSlot, oncePerLayout, slotOf, textBelow } from "./row-members.ts";
import { areOwnMembers, valueKinds, type RowFormat, type RowPart, writeRows } from "./row-writer.ts";
import { hasMembers, type ReadPage, type RowPage, rowTexts } from "./row-page.ts";

const nothing = Buffer.from("null");

/** What is before a field's value, and where the value is. */
interface Part extends FieldSlot {
  readonly field: FieldPath;
  readonly before: Buffer;
}

/** Rows with only the fields asked for, as JSON text. */
export class PickedRows {
  readonly #chosen: ChosenFields;
  readonly #before: readonly { readonly field: FieldPath; readonly before: Buffer }[];
  readonly #out = new ByteWriter();
  readonly #partsOf = oncePerLayout((layout): readonly Part[] => {
    const parts = this.#before.map((part) => ({ ...part, ...slotOf(layout, part.field) }));
    for (const { field, slot, steps } of parts) if (slot !== -1 && steps.length === 0) this.#chosen.found(field);
    return parts;
  });
  readonly #separator: "," | "\n";
  readonly #format: RowFormat = {
    parts: oncePerLayout((layout) => this.#bulkOf(this.#partsOf(layout))),
    row: ({ page, layout, first }) => this.#row(page, this.#partsOf(layout), first),
  };

  /** @param separator what is between two rows; a new line is behind the last too */
  constructor(chosen: ChosenFields, separator: "," | "\n") {
    this.#chosen = chosen;
    this.#separator = separator;
    this.#before = (chosen.all ?? []).map((field, index) => ({
      field,
      before: Buffer.from(`${index === 0 ? "{" : ","}${JSON.stringify(field.name)}:`),
    }));
  }

  /** All rows. The bytes are overwritten by the next page. */
  of(page: RowPage): Buffer {
    const out = this.#out;
    const separator = this.#separator;
    if (!hasMembers(page)) {
      const rows = rowTexts(page).map((text) => this.#chosen.of(text));
      out.text(rows.join(separator) + (separator === "\n" ? separator : ""));
      return out.take();
    }
    writeRows(page, out, this.#format);
    this.#chosen.count(page.spans.length / 2);
    if (separator === "," && out.length > 0) out.cut(out.length - 1);
    return out.take();
  }

  #row(page: ReadPage, parts: readonly Part[], first: number): void {
    const { body, members } = page;
    const { places } = members;
    const out = this.#out;
    for (const { before, slot, steps, field } of parts) {
      const at = first + slot * 4;
      const [start, end] = slot === -1 ? [0, 0] : [places[at + 2]!, places[at + 3]!];
      out.reserve(before.length + nothing.length + end - start + 2);
      out.copy(before, 0, before.length);
      if (slot === -1) out.copy(nothing, 0, nothing.length);
      else if (steps.length === 0) out.copy(body, start, end);
      else {
        const text = textBelow(body.toString("utf8", start, end), steps);
        if (text !== undefined) this.#chosen.found(field);
        out.text(text ?? "null");
      }
    }
    out.text(`${parts.length > 0 ? "}" : "{}"}${this.#separator}`);
  }

  /** The same for many rows by one call, if no field is deeper in a member, and no two are of one member. */
  #bulkOf(parts: readonly Part[]): readonly RowPart[] | undefined {
    if (parts.length === 0 || !areOwnMembers(parts)) return undefined;
    const bulk = parts.map(
      ({ before, slot }): RowPart =>
        slot === -1
          ? { before: Buffer.concat([before, nothing]), slot: 0, kind: valueKinds.none }
          : { before, slot, kind: valueKinds.json },
    );
    return [...bulk, { before: Buffer.from(`}${this.#separator}`), slot: 0, kind: valueKinds.none }];
  }
}
