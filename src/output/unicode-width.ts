import { asciiWidth, type DisplayWidth, isAscii, visibleText } from "./visible-text.ts";

const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** Loads string-width on demand, because ASCII text does not need it. */
export async function unicodeWidth(): Promise<DisplayWidth> {
  const { default: stringWidth } = await import("string-width");
  const of = (text: string): number =>
    isAscii(text) ? text.length : (quickWidth(text, stringWidth) ?? stringWidth(text));
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

/** By code unit: 0 for not measured yet, 1 or 2 for the number of columns, 3 for a character without a fixed width. */
const widths = new Uint8Array(65_536);
const [narrow, wide, other] = [1, 2, 3] as const;

/** @returns 0 if the character has no fixed width or must be escaped. @param measure string-width */
function characterWidth(unit: number, measure: (text: string) => number): 0 | 1 | 2 {
  if (widths[unit] === 0) widths[unit] = kindOf(String.fromCharCode(unit), measure);
  const kind = widths[unit];
  return kind === narrow || kind === wide ? kind : 0;
}

function kindOf(character: string, measure: (text: string) => number): number {
  if (visibleText(character) !== character || !/^[\p{L}\p{N}\p{P}\p{S}\p{Zs}]$/u.test(character)) return other;
  if (/\p{Emoji}/u.test(character) && character > "\x7f") return other;
  // A character that combines with a neighbor has no fixed width.
  if ([...segmenter.segment(`a${character}${character}a`)].length !== 4) return other;
  const width = measure(character);
  return width === narrow || width === wide ? width : other;
}

export function quickWidth(text: string, measure: (text: string) => number): number | undefined {
  let width = 0;
  for (let at = 0; at < text.length; at += 1) {
    const columns = characterWidth(text.charCodeAt(at), measure);
    if (columns === 0) return undefined;
    width += columns;
  }
  return width;
}
