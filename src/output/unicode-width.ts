// Columns that any text takes on a terminal. string-width is loaded when there is a text that needs it.
import { characterWidth, quickWidth } from "./character-width.ts";
import { asciiWidth, type DisplayWidth, isAscii } from "./visible-text.ts";

/** For any text. */
export async function unicodeWidth(): Promise<DisplayWidth> {
  const { default: stringWidth } = await import("string-width");
  const of = (text: string): number =>
    isAscii(text) ? text.length : (quickWidth(text, stringWidth) ?? stringWidth(text));
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
  return { of, fit, ofCharacter: (unit) => characterWidth(unit, stringWidth) };
}
