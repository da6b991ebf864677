// Words broken into lines at the width of a terminal.

export interface Wrapping {
  /** Columns; without them nothing is broken. */
  readonly width?: number | undefined;
  /** What stands before each line. */
  readonly margin?: string;
}

/** Narrower than this a terminal breaks lines as well as we do. */
const narrowest = 20;

/**
 * A text in lines that fit the width, each behind the margin. It is broken between words alone, and a word that is
 * longer than a line stays whole: it may be an id or an address. So does a command at its end.
 */
export function wrapped(text: string, { width, margin = "" }: Wrapping): string {
  if (width === undefined || width < narrowest) return margin + text;
  const lines: string[] = [];
  let line = "";
  for (const word of wordsOf(text)) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (line !== "" && margin.length + longer.length > width) {
      lines.push(margin + line);
      line = word;
    } else line = longer;
  }
  lines.push(margin + line);
  return lines.join("\n");
}

/** A command is one word: broken in two it could not be copied. */
function wordsOf(text: string): string[] {
  const [, prose = text, command] = /^(.*:) (integ .*)$/.exec(text) ?? [];
  return command === undefined ? text.split(" ") : [...prose.split(" "), command];
}
