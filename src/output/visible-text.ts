/**
 * Matches characters that are invisible, or that a terminal may act on: C0, C1, DEL, format and bidi controls, line
 * separators, lone surrogates, and default-ignorable characters (zero-width, tags, variation selectors, fillers). A
 * function, because the expression is slow to compile and most texts do not need it.
 */
function unsafeCharacters(): RegExp {
  return /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
}

const plain = /^[\x20-\x7e]*$/;
/** Matches texts in which JSON escapes nothing. */
const unescaped = /^[ !#-[\]-~]*$/;

/**
 * @returns one line, in which invisible characters, controls and line breaks have a form such as `\u{1b}`. Escaping
 * twice changes nothing.
 */
export function visibleText(text: string): string {
  return plain.test(text) ? text : text.replace(unsafeCharacters(), spell);
}

const letters = "[\\u0590-\\u08ff\\ufb1d-\\ufdff\\ufe70-\\ufefc\\u{10800}-\\u{10fff}\\u{1e800}-\\u{1efff}]+";
/** Matches runs of right-to-left words, and commands with a quoted word, which stay unchanged because users copy them. */
const rightToLeft = new RegExp(`integ (?:[^'\\n]*'[^'\\n]*')+|${letters}(?:[ .,"_-]?${letters})*`, "gu");

/** Isolates right-to-left names in visible text, so that a terminal does not reorder the text around them. */
export function isolated(text: string, isTerminal = true): string {
  return !isTerminal || plain.test(text)
    ? text
    : text.replace(rightToLeft, (found) => (found.startsWith("integ ") ? found : `\u2068${found}\u2069`));
}

const wide = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60]/g;

/** A width that is exact enough to wrap a text. A surrogate pair counts as two columns. */
export function roughWidth(text: string): number {
  return plain.test(text) ? text.length : text.length + (text.match(wide)?.length ?? 0);
}

/** Cuts by `roughWidth`. A cut text ends with `…`. */
export function roughFit(text: string, columns: number): string {
  if (roughWidth(text) <= columns) return text;
  let [cut, left] = ["", columns - 1];
  for (const character of text) {
    left -= roughWidth(character);
    if (left < 0) break;
    cut += character;
  }
  return `${cut}…`;
}

export function visibleLines(text: string): string {
  return text.includes("\n") ? text.split("\n").map(visibleText).join("\n") : visibleText(text);
}

/** Escapes as JSON does, and keeps line breaks. @param json valid JSON, which is ASCII outside its strings */
export function visibleJson(json: string): string {
  return json.replace(unsafeCharacters(), (character) => (character === "\n" ? character : escapeJson(character)));
}

/** YAML has JSON's escapes, and `\U` for characters that JSON writes as two escapes. */
export function visibleYaml(text: string): string {
  if (unescaped.test(text)) return `"${text}"`;
  return JSON.stringify(text).replace(unsafeCharacters(), (character) =>
    character.length === 1
      ? escapeJson(character)
      : `\\U${(character.codePointAt(0) ?? 0).toString(16).padStart(8, "0")}`,
  );
}

/** @returns at most `limit` UTF-16 code units, with `…` at a cut */
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
  /** `text` must come from `visibleText`. */
  of(text: string): number;
  /** A cut text ends with `…`. */
  fit(text: string, columns: number): string;
}

export function isAscii(text: string): boolean {
  return plain.test(text);
}

export const asciiWidth: DisplayWidth = {
  of: (text) => text.length,
  fit: (text, columns) => (text.length <= columns ? text : `${text.slice(0, Math.max(0, columns - 1))}…`),
};
