/**
 * What a reader cannot see or a terminal may act on: C0, C1, DEL, format and bidi controls, line separators, lone
 * surrogates, and everything Unicode says may be ignored in display (zero-width characters, tags, variation selectors,
 * fillers). Compiled when a text is not plain: looking up what Unicode says takes longer than many a command's own work.
 */
function unsafeCharacters(): RegExp {
  return /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
}

const plain = /^[\x20-\x7e]*$/;
/** The same without what JSON escapes. */
const unescaped = /^[ !#-[\]-~]*$/;

/**
 * Text with every invisible or controlling character written out as `\u{1b}`, new lines included: one line, whatever
 * came. Printable text comes back unchanged. Idempotent.
 */
export function visibleText(text: string): string {
  return plain.test(text) ? text : text.replace(unsafeCharacters(), spell);
}

/** As {@link visibleText}, line by line: new lines stay, everything else that is invisible is spelt out. */
export function visibleLines(text: string): string {
  return text.includes("\n") ? text.split("\n").map(visibleText).join("\n") : visibleText(text);
}

/**
 * JSON text with the same characters as `\u` escapes, which change nothing in its meaning: for a terminal, where the
 * service's own bytes must not act. Outside of strings JSON is ASCII, so only strings change.
 * @param json valid JSON text, its own new lines are kept
 */
export function visibleJson(json: string): string {
  return json.replace(unsafeCharacters(), (character) => (character === "\n" ? character : escapeJson(character)));
}

/** A text in double quotes as YAML reads it: JSON's escapes, and `\U` if JSON needs two. */
export function visibleYaml(text: string): string {
  if (unescaped.test(text)) return `"${text}"`;
  return JSON.stringify(text).replace(unsafeCharacters(), (character) =>
    character.length === 1
      ? escapeJson(character)
      : `\\U${(character.codePointAt(0) ?? 0).toString(16).padStart(8, "0")}`,
  );
}

/** At most `limit` characters, cut between characters with `…` at the end. */
export function shortened(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const cut = text.slice(0, limit - 1);
  return `${/[\uD800-\uDBFF]$/.test(cut) ? cut.slice(0, -1) : cut}…`;
}

function spell(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}

function escapeJson(character: string): string {
  let escaped = "";
  for (let unit = 0; unit < character.length; unit += 1) {
    escaped += `\\u${character.charCodeAt(unit).toString(16).padStart(4, "0")}`;
  }
  return escaped;
}

export interface DisplayWidth {
  /** Columns of a text that `visibleText` has been over. */
  of(text: string): number;
  /** At most `columns` wide, `…` at the end if something was cut. */
  fit(text: string, columns: number): string;
}

export function isAscii(text: string): boolean {
  return plain.test(text);
}

/** For text of which it is known that it is ASCII. */
export const asciiWidth: DisplayWidth = {
  of: (text) => text.length,
  fit: (text, columns) => (text.length <= columns ? text : `${text.slice(0, Math.max(0, columns - 1))}…`),
};
