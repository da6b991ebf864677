// Owns: which of the fields asked for no row ever had: most likely a typing mistake, and never told by a row of nulls.
// Must not know: formats, terminals. Source: cli.md §1 (`--fields`).
import { type FieldPath, valueAt } from "./json-text.ts";
import type { JsonTree } from "./json-tree.ts";
import { visibleText } from "./visible-text.ts";

export class FieldWatch {
  private readonly unseen: Set<FieldPath>;
  private rows = 0;

  constructor(fields: readonly FieldPath[] = []) {
    this.unseen = new Set(fields);
  }

  /** Takes note of a row; costs nothing once every field was seen. @param tree the row, read when needed */
  look(tree: () => JsonTree): void {
    this.rows += 1;
    if (this.unseen.size === 0) return;
    const { root } = tree();
    for (const field of this.unseen) if (valueAt(root, field) !== undefined) this.unseen.delete(field);
  }

  /** What to tell the person at the end, if anything. @param singular what a row is called */
  verdict(singular: string): string | undefined {
    if (this.rows === 0 || this.unseen.size === 0) return undefined;
    const names = [...this.unseen].map(({ name }) => `"${visibleText(name)}"`).join(", ");
    return `no ${singular} here has the field ${names}`;
  }
}
