// Splits the paragraphs and table rows of the API document into sentences and clauses, in order.

export interface Sentence {
  readonly section: string;
  readonly says: string;
}

const clause = /(?<=[.;])\s+(?=[A-Za-z`])/;

export function sentencesOf(document: string): Sentence[] {
  const lines = document.split("\n");
  const result: Sentence[] = [];
  let section = "0";
  lines.forEach((line, index) => {
    const heading = /^##+ ([\d.]*\d)/.exec(line);
    if (heading) section = heading[1]!;
    else if (line.startsWith("#") || line.trim() === "" || isTableHead(line, lines[index + 1])) return;
    else if (line.startsWith("|")) result.push(...ofRow(section, line));
    else {
      const rule = /^(\d+)\. /.exec(line)?.[1];
      const of = rule === undefined ? section : `${section} rule ${rule}`;
      const text = line.replace(/^\s*(?:- |\d+\. )/, "");
      result.push(...text.split(clause).map((says) => ({ section: of, says })));
    }
  });
  return result;
}

function isTableHead(line: string, next = ""): boolean {
  return /^\|[-|]+\|$/.test(line) || (line.startsWith("|") && /^\|[-|]+\|$/.test(next));
}

/** Clauses of the last column are prefixed with the row's subject: `limit | 1 to 500`. */
function ofRow(section: string, row: string): Sentence[] {
  const cells = row.slice(2, -2).split(" | ");
  const [about, last] = [cells.slice(0, -1).join(" | "), cells.at(-1)!];
  return last.split(clause).map((says) => ({ section, says: `${about} | ${says}` }));
}
