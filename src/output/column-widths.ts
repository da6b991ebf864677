// Owns: how wide each column of a table is, and which ones a narrow terminal has room for. Pure.
// Must not know: what stands in them, how width is measured.

/** Between two columns. */
export const gap = 2;
/** A column is not cut below this, or below what it needs. */
const narrowest = 8;

/** What a column would like, and how it may be cut. */
export interface Wish {
  readonly width: number;
  /** Cut only when no other column can give any more: what a person copies, or what is short anyway. */
  readonly isKept: boolean;
}

/**
 * Widths that fit into `room` columns of a terminal: the widest column gives first. Where not even the narrowest widths
 * fit, columns are left out from the right; the first one always stays.
 * @returns a width for each column that is shown
 */
export function fittedWidths(wishes: readonly Wish[], room: number): number[] {
  const least = wishes.map(({ width }) => Math.min(width, narrowest));
  let shown = wishes.length;
  while (shown > 1 && total(least.slice(0, shown)) > room) shown -= 1;
  const widths = wishes.slice(0, shown).map(({ width }) => Math.min(width, room));
  for (const isKept of [false, true]) {
    const givers = [...widths.keys()].filter((index) => wishes[index]?.isKept === isKept);
    shrink(widths, { givers, least, room });
  }
  if (total(widths) > room) widths[0] = Math.max(1, room);
  return widths;
}

function shrink(widths: number[], options: { givers: number[]; least: readonly number[]; room: number }): void {
  const { givers, least, room } = options;
  for (let excess = total(widths) - room; excess > 0; excess -= 1) {
    const able = givers.filter((index) => (widths[index] ?? 0) > (least[index] ?? 0));
    const widest = able.sort((a, b) => (widths[b] ?? 0) - (widths[a] ?? 0))[0];
    if (widest === undefined) return;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
}

function total(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, 0) + gap * Math.max(0, widths.length - 1);
}
