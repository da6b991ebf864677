// One self-contained page for an auditor: the life of each credential as a picture, and every row in a table. A script sorts the
// table; without it the page reads the same. Nothing is loaded from elsewhere.
import { createHash } from "node:crypto";
import { JsonText } from "../../api/json/json-text.ts";
import { valuesAt } from "../fields.ts";
import { visibleText } from "../visible-text.ts";
import { type CellColumn, cellColumns, cellOf, personCell } from "./cells.ts";
import type { Formatter, ListTarget, ListView } from "./format.ts";

const style = `body{font:15px/1.5 system-ui,sans-serif;margin:1rem auto;max-width:90rem;padding:0 1rem;color:#1a1a1a;background:#fff}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}svg{width:100%;height:auto;display:block}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;border-bottom:1px solid #ddd;overflow-wrap:break-word}td:last-child{overflow-wrap:anywhere;min-width:16rem}
th button{font:inherit;font-weight:600;border:0;background:none;padding:0;cursor:pointer}thead{background:#f3f3f3}
@media(max-width:700px){thead{display:none}tr{display:block;border-bottom:2px solid #999;padding:.5rem 0}
td{display:grid;grid-template-columns:8rem 1fr;border:0;padding:.1rem 0;min-width:0;overflow-wrap:anywhere}td:last-child{min-width:0}td::before{content:attr(data-name);color:#555}}
@media print{body{max-width:none;margin:0;font-size:9px}tr{break-inside:avoid}.scroll{overflow:visible}th,td,td:last-child{min-width:0;padding:1px 3px;overflow-wrap:anywhere}th button{cursor:auto}}`;

const script = `for(const b of document.querySelectorAll("th button"))b.onclick=()=>{const t=b.closest("table"),i=b.parentNode.cellIndex,r=[...t.tBodies[0].rows],d=b.dataset.down=b.dataset.down==="1"?"0":"1";r.sort((x,y)=>x.cells[i].textContent.localeCompare(y.cells[i].textContent)*(d==="1"?1:-1));t.tBodies[0].append(...r)}`;

const policy = `default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-${createHash("sha256").update(script).digest("base64")}'`;

export const html: Formatter = {
  resource: (text, { view, target }) =>
    pageOf([JsonText.of(text)], { ...view, plural: view.title ?? "resource" }, target),
  list(view, target) {
    const rows: JsonText[] = [];
    return {
      async page(page) {
        rows.push(...page.map((row) => JsonText.of(row.text)));
      },
      end: async () => target.sink.write(pageOf(rows, view, target)),
    };
  },
};

type Shown = Pick<ListView, "columns" | "plural">;

function pageOf(rows: readonly JsonText[], { columns, plural }: Shown, target: ListTarget): string {
  const shown = cellColumns(columns, target.fields);
  const title = `integ: ${plural}`;
  const head = shown.map(({ heading }) => `<th scope="col"><button type="button">${escaped(heading)}</button></th>`);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<title>${escaped(title)}</title><style>${style}</style></head><body>
<h1>${escaped(title)}</h1>
${timeline(rows, target.now())}
<div class="scroll"><table><thead><tr>${head.join("")}</tr></thead><tbody>
${rows.map((row) => rowOf(row, shown)).join("\n")}
</tbody></table></div>
<script>${script}</script></body></html>
`;
}

function rowOf(row: JsonText, columns: readonly CellColumn[]): string {
  const fields = columns.map(({ field }) => field);
  const cells = valuesAt(row.parts(), fields).map((value, index) => {
    const { heading, kind } = columns[index]!;
    const text = personCell(cellOf(value), { kind, time: (iso) => iso });
    return `<td data-name="${escaped(heading)}">${escaped(text)}</td>`;
  });
  return `<tr>${cells.join("")}</tr>`;
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escaped(text: string): string {
  return visibleText(text).replaceAll(/[&<>"']/g, (sign) => entities[sign]!);
}

const [width, left, lineHeight] = [1000, 220, 18];
const longestName = 28;

/** Bars from creation to expiry; one without an expiry reaches the edge. Rows without a creation have none. */
function timeline(rows: readonly JsonText[], nowMs: number): string {
  const lives = rows.flatMap((row) => {
    const parts = row.parts();
    const text = (key: string): string => {
      const value = parts.get(key);
      return value?.isString ? value.string : "";
    };
    const [from, until] = [Date.parse(text("created_at")), Date.parse(text("expires_at"))];
    return ["change", "report"].includes(text("kind")) || Number.isNaN(from)
      ? []
      : [{ name: text("name") || text("id"), from, until }];
  });
  if (lives.length === 0) return "";
  const first = Math.min(...lives.map(({ from }) => from), nowMs);
  const last = Math.max(...lives.map(({ until }) => (Number.isNaN(until) ? 0 : until)), nowMs + 30 * 86_400_000);
  const at = (ms: number): number => left + ((ms - first) / (last - first)) * (width - left);
  const bars = lives.map(({ name, from, until }, index) => {
    const [x, end, y] = [at(from), Number.isNaN(until) ? width : at(until), index * lineHeight + 24];
    const colour = until <= nowMs ? "#b3261e" : Number.isNaN(until) ? "#8a6d00" : "#2e6f40";
    const label = name.length > longestName ? `${name.slice(0, longestName - 1)}…` : name;
    const words = Number.isNaN(until) ? "without an expiry" : `until ${day(until)}`;
    return `<text x="0" y="${y + 10}">${escaped(label)}</text><rect x="${x.toFixed(1)}" y="${y}" width="${Math.max(2, end - x).toFixed(1)}" height="10" fill="${colour}"><title>${escaped(name)}: from ${day(from)}, ${words}</title></rect>`;
  });
  const height = lives.length * lineHeight + 30;
  const now = at(nowMs).toFixed(1);
  return `<h2>Timeline</h2><svg viewBox="0 0 ${width} ${height}" role="img" aria-label="When each credential was created and when it expires" font-size="11"><line x1="${now}" x2="${now}" y1="16" y2="${height}" stroke="#555" stroke-dasharray="3"/><text x="${left}" y="11">${day(first)}</text><text x="${now}" y="11" text-anchor="middle">now</text><text x="${width}" y="11" text-anchor="end">${day(last)}</text>${bars.join("")}</svg>`;
}

function day(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
