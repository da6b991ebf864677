// Columns that any text takes on a terminal. string-width is loaded when there is a text that needs it.
import { asciiWidth, type DisplayWidth, isAscii, visibleText } from "./visible-text.ts";

const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** For any text. */
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

/** Of a code unit: 0 not yet looked at, 1 and 2 its columns, 3 one that only string-width can measure, with its neighbours. */
const known = new Uint8Array(65_536);
const [narrow, wide, other] = [1, 2, 3] as const;

/**
 * @param unit of UTF-16
 * @param measure string-width
 * @returns 1 or 2; 0 if it depends on its neighbours, or must not be shown as it is
 */
function characterWidth(unit: number, measure: (text: string) => number): 0 | 1 | 2 {
  if (known[unit] === 0) known[unit] = kindOf(String.fromCharCode(unit), measure);
  const kind = known[unit];
  return kind === narrow || kind === wide ? kind : 0;
}

function kindOf(character: string, measure: (text: string) => number): number {
  if (visibleText(character) !== character || !/^[\p{L}\p{N}\p{P}\p{S}\p{Zs}]$/u.test(character)) return other;
  if (/\p{Emoji}/u.test(character) && character > "\x7f") return other;
  // Whatever joins the character before or after it, or one of its own kind, does not stand alone.
  if ([...segmenter.segment(`a${character}${character}a`)].length !== 4) return other;
  const width = measure(character);
  return width === narrow || width === wide ? width : other;
}

/** Columns of a text of such characters; nothing if another is among them. */
export function quickWidth(text: string, measure: (text: string) => number): number | undefined {
  let width = 0;
  for (let at = 0; at < text.length; at += 1) {
    const columns = characterWidth(text.charCodeAt(at), measure);
    if (columns === 0) return undefined;
    width += columns;
  }
  return width;
}
