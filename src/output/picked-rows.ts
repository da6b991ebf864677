// The fields of `--fields`, copied byte for byte out of pages whose members are known.
import { ByteWriter } from "./byte-writer.ts";
import type { ChosenFields, FieldPath } from "./fields.ts";
import { eachRow, type FieldSlot, oncePerLayout, slotOf, textBelow } from "./row-members.ts";
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

  constructor(chosen: ChosenFields) {
    this.#chosen = chosen;
    this.#before = (chosen.all ?? []).map((field, index) => ({
      field,
      before: Buffer.from(`${index === 0 ? "{" : ","}${JSON.stringify(field.name)}:`),
    }));
  }

  /** All rows, with a comma between each and the next, or a new line after each. The bytes are overwritten by the next page. */
  of(page: RowPage, separator: "," | "\n"): Buffer {
    const out = this.#out;
    if (!hasMembers(page)) {
      const rows = rowTexts(page).map((text) => this.#chosen.of(text));
      out.text(rows.join(separator) + (separator === "\n" ? separator : ""));
      return out.take();
    }
    const between = separator.charCodeAt(0);
    eachRow(page, (layout, first, row) => {
      out.reserve(2);
      if (row > 0) out.byte(between);
      this.#row(page, this.#partsOf(layout), first);
    });
    this.#chosen.count(page.spans.length / 2);
    if (separator === "\n") out.text(separator);
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
    out.reserve(2);
    if (parts.length > 0) out.byte(0x7d);
    else out.text("{}");
  }
}
