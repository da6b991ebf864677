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

/** `integ`, and behind it names of commands, ids, flags and their values, up to what ends a clause. */
const command = /integ(?: (?:'[^']*'|[\w./:<>@*+=-]*[\w/>*=-]))+/g;
const joint = "\u0000";

/** A command is one word: broken in two it could not be copied. */
function wordsOf(text: string): string[] {
  const [, prose = text, last] = /^(.*:) (integ .*)$/.exec(text) ?? [];
  const joined = prose.replaceAll(command, (found) => found.replaceAll(" ", joint));
  const words = joined.split(" ").map((word) => word.replaceAll(joint, " "));
  return last === undefined ? words : [...words, last];
}
