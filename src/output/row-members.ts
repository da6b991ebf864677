// Members of rows by name, where the page says where they stand: their bytes, without making objects of the rows.
import type { FieldPath } from "./fields.ts";
import { memberOf, parseJson, printNode } from "./json-text.ts";
import type { ReadPage } from "./row-page.ts";

const noMember = -1;

/**
 * The members of one row, by their number: what rows with the same names have in common is worked out once.
 */
export class Layout {
  /** Decoded, in the order of the row, duplicates included. */
  readonly names: readonly string[];
  readonly #slots: Map<string, number>;

  constructor(names: readonly string[]) {
    this.names = names;
    // Of duplicates the last counts.
    this.#slots = new Map(names.map((name, slot) => [name, slot]));
  }

  get hasDuplicates(): boolean {
    return this.#slots.size < this.names.length;
  }

  /** The number of the member within its row; -1 if there is none. */
  slotOf(name: string): number {
    return this.#slots.get(name) ?? noMember;
  }
}

/** Calls `each` for every row of the page in order, with its layout and the place of its first member in `places`. */
export function eachRow(page: ReadPage, each: (layout: Layout, first: number, row: number) => void): void {
  const { ranges } = page.members;
  eachRun(page, (layout, from, to) => {
    for (let row = from; row < to; row += 1) each(layout, (ranges[row * 2]! & 0x7fffffff) * 4, row);
  });
}

/** Calls `each` for all rows in turn that have one layout. @param each from the first to before the last */
export function eachRun(page: ReadPage, each: (layout: Layout, from: number, to: number) => void): void {
  const { ranges } = page.members;
  const rows = ranges.length / 2;
  for (let from = 0; from < rows; ) {
    const layout = layoutOf(page, ranges[from * 2]! & 0x7fffffff, ranges[from * 2 + 1]!);
    let to = from + 1;
    while (to < rows && ranges[to * 2]! < 0x80000000) to += 1;
    each(layout, from, to);
    from = to;
  }
}

let last: Layout | undefined;

/** Pages usually have the names of the page before. */
function layoutOf({ body, members: { places } }: ReadPage, first: number, after: number): Layout {
  const names: string[] = [];
  for (let at = first * 4; at < after * 4; at += 4) {
    const name = body.toString("utf8", places[at], places[at + 1]);
    names.push(name.includes("\\") ? String(JSON.parse(`"${name}"`)) : name);
  }
  if (last?.names.length !== names.length || last.names.some((name, slot) => name !== names[slot]))
    last = new Layout(names);
  return last;
}

/** Works out once what the rows of a layout have in common: most lists have one layout. */
export function oncePerLayout<T>(work: (layout: Layout) => T): (layout: Layout) => T {
  let known: { readonly layout: Layout; readonly result: T } | undefined;
  return (layout) => {
    if (known?.layout !== layout) known = { layout, result: work(layout) };
    return known.result;
  };
}

/** How a field is found in rows of one layout. */
export interface FieldSlot {
  /** The number of its member, or of the one that it is in; -1 if there is none. */
  readonly slot: number;
  /** The steps from the member's value on; empty if that is the field's. */
  readonly steps: readonly string[];
}

/** As `valueAt`: a key that has the whole path as its name, else step by step. */
export function slotOf(layout: Layout, { name, steps }: FieldPath): FieldSlot {
  const whole = layout.slotOf(name);
  if (whole !== noMember || steps.length === 1) return { slot: whole, steps: [] };
  return { slot: layout.slotOf(steps[0] ?? ""), steps: steps.slice(1) };
}

/** The compact text of what stands deeper in a value; nothing if it is not there. */
export function textBelow(value: string, steps: readonly string[]): string | undefined {
  const tree = parseJson(value);
  let node: typeof tree.root | undefined = tree.root;
  for (const step of steps) {
    if (node === undefined) return undefined;
    node = node.kind === "array" && /^\d+$/.test(step) ? node.items[Number(step)] : memberOf(node, step);
  }
  return node && printNode(tree, node, { indent: 0, level: 0 });
}
