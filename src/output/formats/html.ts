// A self-contained page for auditors: a timeline of credentials and a table of all rows, which a script can sort.
import { createHash } from "node:crypto";
import { JsonText } from "../../api/json/json-text.ts";
import { valuesAt } from "../fields.ts";
import { visibleText } from "../visible-text.ts";
import { type CellColumn, cellColumns, cellOf, personCell } from "./cells.ts";
import type { Formatter, ListTarget, ListView } from "./format.ts";

const style = `body{font:15px/1.5 system-ui,sans-serif;margin:1rem auto;max-width:90rem;padding:0 1rem;color:#1a1a1a;background:#fff}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}svg{width:100%;min-width:1000px;height:auto;display:block}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:13px}
th,td{text-align:left;vertical-align:top;padding:.3rem .4rem;border-bottom:1px solid #ddd;overflow-wrap:anywhere;min-width:6em}td:last-child{min-width:13em}th,td.short{overflow-wrap:normal;min-width:0}
th button{font:inherit;font-weight:600;border:0;background:none;padding:0;cursor:pointer}thead{background:#f3f3f3}td span{display:inline-block;white-space:nowrap}
@media screen and (max-width:700px){thead{display:none}tr{display:block;border-bottom:2px solid #999;padding:.5rem 0}
table{font-size:15px}td{display:grid;grid-template-columns:8rem 1fr;border:0;padding:.1rem 0}td:last-child{min-width:0}td span{grid-column:2}td::before{content:attr(data-name);color:#555}}
@page{size:A4 landscape;margin:10mm}
@media print{body{max-width:none;margin:0;padding:0;font-size:8px}svg{min-width:0}tr,svg{break-inside:avoid}h2{break-after:avoid}.scroll{overflow:visible}
table{font-size:8px}th,td,td:last-child{padding:1px 3px}th,td.short{white-space:nowrap}th button{display:none}th::before{content:attr(data-name)}}`;

const script = `for(const b of document.querySelectorAll("th button"))b.onclick=()=>{const t=b.closest("table"),i=b.parentNode.cellIndex,r=[...t.tBodies[0].rows],d=b.dataset.down=b.dataset.down==="1"?"0":"1";r.sort((x,y)=>x.cells[i].textContent.localeCompare(y.cells[i].textContent)*(d==="1"?1:-1));t.tBodies[0].append(...r)}`;

const contentSecurity = `default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-${createHash("sha256").update(script).digest("base64")}'`;

export const html: Formatter = {
  resource: (text, { view, target }) => {
    const page = emptyPage({ ...view, plural: view.title ?? "resource" }, target);
    page.add(JsonText.of(text));
    return page.pieces().join("");
  },
  list(view, target) {
    const document = emptyPage(view, target);
    return {
      page: async (page) => {
        for (const row of page) document.add(JsonText.of(row.text));
      },
      end: async () => {
        for (const piece of document.pieces()) await target.sink.write(piece);
      },
    };
  },
};

type Shown = Pick<ListView, "columns" | "plural">;

function emptyPage({ columns, plural }: Shown, target: ListTarget) {
  const shown = cellColumns(columns, target.fields);
  const [rows, lifetimes]: [string[], Lifetime[]] = [[], []];
  const add = (row: JsonText): void => {
    rows.push(rowOf(row, shown));
    lifetimes.push(...lifetimesIn(row));
  };
  const title = `integ: ${plural}`;
  // In print, the style sheet shows `data-name` in place of the buttons.
  const head = shown.map(({ heading }) => {
    const name = escaped(heading);
    return `<th scope="col" data-name="${name}"><button type="button">${name}</button></th>`;
  });
  const pieces = () => [
    `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${contentSecurity}">
<title>${escaped(title)}</title><style>${style}</style></head><body>
<h1>${escaped(title)}</h1>
${timeline(lifetimes, target.now())}
<div class="scroll"><table><thead><tr>${head.join("")}</tr></thead><tbody>
`,
    ...rows,
    `</tbody></table></div>
<script>${script}</script></body></html>
`,
  ];
  return { add, pieces };
}

function rowOf(row: JsonText, columns: readonly CellColumn[]): string {
  const fields = columns.map(({ field }) => field);
  const cells = valuesAt(row.parts(), fields).map((value, index) => {
    const { heading, kind } = columns[index]!;
    const text = escaped(personCell(cellOf(value), { kind, time: (iso) => iso }));
    const short = kind === "word" || kind === "status" ? ` class="short"` : "";
    // Allows a line break between date and time.
    const shown = text.replace(/^(\d{4}-\d\d-\d\d)(T[\w:.+-]+)$/, "<span>$1</span><span>$2</span>");
    return `<td data-name="${escaped(heading)}"${short}>${shown}</td>`;
  });
  return ["<tr>", ...cells, "</tr>\n"].join("");
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
const maxNameLength = 28;
/** A picture with more bars would not fit on a printed page. */
const barsOfPicture = 30;

interface Lifetime {
  readonly name: string;
  readonly status: string;
  readonly from: number;
  /** NaN without an expiry. */
  readonly until: number;
}

const colors = { valid: "#2e6f40", "without an expiry": "#8a6d00", expired: "#b3261e", "not active": "#8c8c8c" };

// Colored characters, because browsers do not print backgrounds by default.
const legend = `<p>${Object.entries(colors)
  .map(([words, color]) => `<b style="color:${color}">■</b> ${words}`)
  .join(" &nbsp; ")}</p>`;

function stateOf({ status, until }: Lifetime, nowMs: number): keyof typeof colors {
  if (!["", "active", "expired"].includes(status)) return "not active";
  if (status === "expired" || until <= nowMs) return "expired";
  return Number.isNaN(until) ? "without an expiry" : "valid";
}

function lifetimesIn(row: JsonText): Lifetime[] {
  const parts = row.parts();
  const text = (key: string): string => {
    const value = parts.get(key);
    return value?.isString ? value.string : "";
  };
  const [from, until] = [Date.parse(text("created_at")), Date.parse(text("expires_at"))];
  const hasNone = ["change", "report"].includes(text("kind")) || Number.isNaN(from);
  return hasNone ? [] : [{ name: text("name") || text("id"), status: text("status"), from, until }];
}

function timeline(lifetimes: readonly Lifetime[], nowMs: number): string {
  if (lifetimes.length === 0) return "";
  const first = Math.min(...lifetimes.map(({ from }) => from), nowMs);
  const last = Math.max(...lifetimes.map(({ until }) => (Number.isNaN(until) ? 0 : until)), nowMs + 30 * 86_400_000);
  const at = (ms: number): number => left + ((ms - first) / (last - first)) * (width - left);
  const bars = lifetimes.map((lifetime, index) => {
    const { name, status, from, until } = lifetime;
    const [x, end] = [at(from), Number.isNaN(until) ? width : at(until)];
    const y = (index % barsOfPicture) * lineHeight + 24;
    const color = colors[stateOf(lifetime, nowMs)];
    const letters = [...name];
    const label = letters.length > maxNameLength ? `${letters.slice(0, maxNameLength - 1).join("")}…` : name;
    const words = Number.isNaN(until) ? "without an expiry" : `until ${day(until)}`;
    return `<text x="0" y="${y + 10}">${escaped(label)}</text><rect x="${x.toFixed(1)}" y="${y}" width="${Math.max(2, end - x).toFixed(1)}" height="10" fill="${color}"><title>${escaped(name)}: from ${day(from)}, ${words}${status && `, ${escaped(status)}`}</title></rect>`;
  });
  const now = at(nowMs).toFixed(1);
  const pictureOf = (some: readonly string[]): string => {
    const height = some.length * lineHeight + 30;
    return `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="When each credential was created and when it expires" font-size="12"><line x1="${now}" x2="${now}" y1="16" y2="${height}" stroke="#555" stroke-dasharray="3"/><text x="${left}" y="11">${day(first)}</text><text x="${now}" y="11" text-anchor="middle">now</text><text x="${width}" y="11" text-anchor="end">${day(last)}</text>${some.join("")}</svg>`;
  };
  const pictures = bars.flatMap((_, from) =>
    from % barsOfPicture === 0 ? [pictureOf(bars.slice(from, from + barsOfPicture))] : [],
  );
  return `<h2>Timeline</h2>${legend}<div class="scroll">${pictures.join("\n")}</div>`;
}

function day(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
