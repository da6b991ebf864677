// Owns: how many columns of a terminal a text takes, and cutting it to fit. ASCII costs nothing; string-width is loaded
// when the first other character comes. Must not know: tables, streams. Source: quality.md Performance (string-width).

export interface DisplayWidth {
  /** Columns of a text that `visibleText` has been over. */
  of(text: string): number;
  /** At most `columns` wide, `…` at the end where something was cut. */
  fit(text: string, columns: number): string;
}

const ascii = /^[\x20-\x7e]*$/;

export function isAscii(text: string): boolean {
  return ascii.test(text);
}

/** For text of which it is known that it is ASCII. */
export const asciiWidth: DisplayWidth = {
  of: (text) => text.length,
  fit: (text, columns) => (text.length <= columns ? text : `${text.slice(0, Math.max(0, columns - 1))}…`),
};

/** For any text. */
export async function unicodeWidth(): Promise<DisplayWidth> {
  const { default: stringWidth } = await import("string-width");
  const of = (text: string): number => (isAscii(text) ? text.length : stringWidth(text));
  const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });
  const fit = (text: string, columns: number): string => {
    if (isAscii(text)) return asciiWidth.fit(text, columns);
    if (of(text) <= columns) return text;
    let cut = "";
    let left = columns - 1;
    for (const { segment } of segmenter.segment(text)) {
      left -= of(segment);
      if (left < 0) break;
      cut += segment;
    }
    return `${cut}…`;
  };
  return { of, fit };
}
