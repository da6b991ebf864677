// The page of `integ status`: a headline, items that need a person, waiting items, credentials and slots.
import { maxClients } from "../../api/oauth-client-creation.ts";
import type { PageLine } from "../../output/output.ts";
import { roundedDuration } from "../../output/relative-time.ts";
import { type DisplayWidth, visibleText } from "../../output/visible-text.ts";

export interface StatusItem {
  readonly mark: "✗" | "!" | "·";
  readonly what: string;
  readonly state: string;
  readonly command?: string | null | undefined;
  /** Order within a severity, the lowest first. */
  readonly kind?: number;
  /** Order within a kind: time of the next step or last change, ISO 8601; undefined first. */
  readonly at?: string | null | undefined;
}

export interface LiveCredential {
  readonly id: string;
  readonly name?: string | undefined;
  /** ISO 8601; undefined if unknown. */
  readonly createdAt?: string | undefined;
  /** Null means never. Undefined means that the service does not show the time. */
  readonly lastUsedAt?: string | null | undefined;
  readonly expiresAt?: string | null | undefined;
}

export interface Status {
  readonly headline: readonly string[];
  readonly needed: readonly StatusItem[];
  readonly waiting: readonly StatusItem[];
  /** Why the profile cannot list access keys. */
  readonly unread?: string | undefined;
  readonly credentials: readonly LiveCredential[];
  /** Number of clients by service account, with creations that may have made one. */
  readonly slots: ReadonlyMap<string, number>;
  /** The commands that show all items and all credentials. */
  readonly commands: readonly string[];
  readonly nowMs: number;
  /** Credentials that expire within this time are marked. */
  readonly soonMs: number;
}

export interface Screen {
  readonly width: number;
  readonly measure: DisplayWidth;
  /** True if the page has sentences instead of drawings, for a screen reader. */
  readonly isPlain: boolean;
  readonly time: (iso: string, nowMs: number) => string;
}

const day = 86_400_000;
/** Maximum numbers of rows: `items` in a section, `credentials` in the table. One more line counts the rest. */
const maximum = { items: 10, credentials: 30 };
const scales = ["now ······ 30 ······ 60 ······ 90 days", "now ·· 30 ·· 60 ·· 90"];
const tones = { "✗": "red", "!": "yellow", "·": undefined } as const;
const blank: PageLine = { margin: 0, text: "" };

export function statusPage(status: Status, screen: Screen): PageLine[] {
  const { headline, slots, unread, commands } = status;
  const [needed = [], waiting = []] = [status.needed, status.waiting].map((items) =>
    items.toSorted((a, b) => orderOf(a) - orderOf(b) || dateOf(a) - dateOf(b)),
  );
  return [
    { margin: 0, text: headline.join(" · ") },
    blank,
    ...(needed.length > 0
      ? section("Needs you", needed, { ...screen, more: commands[0]! })
      : [{ margin: 0, text: unread === undefined ? "Nothing needs you." : `No change needs you. ${unread}` }]),
    ...(needed.length > 0 && unread !== undefined ? [blank, { margin: 0, text: unread }] : []),
    ...(waiting.length === 0 ? [] : [blank, ...section("Waiting", waiting, { ...screen, more: commands[0]! })]),
    blank,
    ...credentialLines(status, screen),
    ...(slots.size === 0 ? [] : [blank, ...slotLines(slots, screen)]),
  ];
}

function orderOf({ mark, kind = 0 }: StatusItem): number {
  return (mark === "✗" ? 0 : 10) + kind;
}

function dateOf({ at }: StatusItem): number {
  return Date.parse(at ?? "") || 0;
}

function section(
  title: string,
  all: readonly StatusItem[],
  { more, ...screen }: Screen & { readonly more: string },
): PageLine[] {
  const items = all.slice(0, maximum.items);
  const [whats, states] = [columnOf(items, ({ what }) => what, screen), columnOf(items, ({ state }) => state, screen)];
  const commands = Math.max(0, ...items.map(({ command }) => command?.length ?? 0));
  const isBeside = 4 + whats.width + 2 + states.width + 2 + commands <= screen.width;
  const lines = items.flatMap(({ mark, what, state, command }, index): PageLine[] => {
    const marked = { mark, tone: tones[mark], margin: 4 };
    if (isBeside)
      return [
        { ...marked, isWhole: true, text: `${whats.cells[index]}  ${states.cells[index]}  ${command ?? ""}`.trimEnd() },
      ];
    const next: PageLine[] = command ? [{ margin: 6, isWhole: true, text: command }] : [];
    const text = fitsBeside(what, screen.width) || state === "" ? `${what}: ${state}` : `${state}: ${what}`;
    return [{ ...marked, text }, ...next];
  });
  const { length: left } = all.slice(maximum.items);
  const rest = left === 0 ? [] : [{ margin: 4, text: `and ${left} more: ${more}` }];
  return [{ margin: 0, text: title }, ...lines, ...rest];
}

function columnOf<T>(
  rows: readonly T[],
  text: (row: T) => string,
  { measure }: Screen,
  least = 0,
): { readonly cells: readonly string[]; readonly width: number } {
  const texts = rows.map((row) => visibleText(text(row)));
  const width = Math.max(least, ...texts.map((one) => measure.of(one)));
  return { cells: texts.map((one) => one + " ".repeat(width - measure.of(one))), width };
}

function credentialLines({ credentials: all, nowMs, soonMs, commands }: Status, screen: Screen): PageLine[] {
  if (all.length === 0)
    return [{ margin: 0, text: "No credential is known: integ lists access keys, and clients of its journal." }];
  const timed = { nowMs, time: screen.time };
  const end = (one: LiveCredential): number => Math.min(validFor(one, nowMs), Number.MAX_VALUE);
  const start = ({ createdAt = "" }: LiveCredential): number => Date.parse(createdAt) || nowMs;
  const sorted = all.toSorted((a, b) => end(a) - end(b) || start(a) - start(b));
  const shown = sorted.slice(0, maximum.credentials);
  const left = sorted.slice(maximum.credentials);
  const soon = left.filter((one) => validFor(one, nowMs) <= soonMs).length;
  const valid = soon === 0 ? "valid for longer" : `${soon} of them expired or expire within ${roundedDuration(soonMs)}`;
  const rest: PageLine[] =
    left.length === 0 ? [] : [{ margin: 4, text: `and ${left.length} more, ${valid}: ${commands[1]}` }];
  const column = (heading: string, text: (one: LiveCredential) => string): ReturnType<typeof columnOf> =>
    columnOf(["", ...shown], (one) => (typeof one === "string" ? heading : text(one)), screen);
  const names = (most: number): ReturnType<typeof columnOf> =>
    column("", ({ name = "" }) => screen.measure.fit(visibleText(name), most));
  const ids = column("Credentials", ({ id }) => `    ${id}`);
  const shortIds = column("Credentials", ({ id }) => (isLong(id) ? "" : `    ${id}`));
  const expiries = column("expires", (one) => expiryWords(one, timed));
  const used = column("last used", (one) => lastUseWords(one, timed));
  const ages = column("age", (one) => ageWords(one, nowMs));
  const widthOf = (columns: readonly { readonly width: number }[]): number =>
    columns.reduce((sum, { width }) => sum + width + 2, 0);
  const allNames = names(24);
  // Cuts names, puts long ids above their rows and drops columns until a line fits; else each credential is a sentence.
  const tables = [[ages, used], [ages], []].flatMap((facts) =>
    [ids, ...(shown.some(({ id }) => isLong(id)) ? [shortIds] : [])].flatMap((first) => {
      const left = screen.width - widthOf([first, ...facts, expiries]) - scales.at(-1)!.length - 2;
      if (left < Math.min(10, allNames.width)) return [];
      return [[first, left < allNames.width ? names(left) : allNames, ...facts, expiries]];
    }),
  );
  const [table] = tables.flatMap((columns) => {
    const scale = scales.find(({ length }) => widthOf(columns) + length <= screen.width);
    return scale === undefined ? [] : [{ columns, scale }];
  });
  if (screen.isPlain || table === undefined)
    return [
      { margin: 0, text: "Credentials" },
      ...shown.map(
        (one): PageLine => ({ ...markOf(one, { nowMs, soonMs }), text: sentenceOf(one, { ...timed, ...screen }) }),
      ),
      ...rest,
    ];
  const { columns, scale } = table;
  const lineOf = (index: number): string => columns.map(({ cells }) => cells[index]).join("  ");
  return [
    { margin: 0, isWhole: true, text: `${lineOf(0)}  ${scale}` },
    ...shown.flatMap((one, index): PageLine[] => {
      const text = `${lineOf(index + 1)}  ${barOf(one, { nowMs, columns: scale.length })}`.trimEnd();
      const marked = { ...markOf(one, { nowMs, soonMs }), isWhole: true };
      // The mark replaces the first column's four spaces.
      if (columns[0] === ids || !isLong(one.id)) return [{ ...marked, text: text.slice(4) }];
      return [{ ...marked, text: one.id }, ...(text === "" ? [] : [{ margin: 0, isWhole: true, text }])];
    }),
    ...rest,
  ];
}

const isLong = (id: string): boolean => id.length > 20;

function fitsBeside(text: string, width: number): boolean {
  return 4 + text.split(" ", 1)[0]!.length + 1 <= width;
}

type Timed = Pick<Status, "nowMs"> & Pick<Screen, "time">;

function validFor({ expiresAt }: LiveCredential, nowMs: number): number {
  const end = Date.parse(expiresAt ?? "");
  return Number.isNaN(end) ? Number.POSITIVE_INFINITY : end - nowMs;
}

function markOf(
  one: LiveCredential,
  { nowMs, soonMs }: Pick<Status, "nowMs" | "soonMs">,
): Pick<PageLine, "mark" | "tone" | "margin"> {
  const validMs = validFor(one, nowMs);
  const mark = validMs <= 0 ? "✗" : validMs <= soonMs ? "!" : "·";
  return { mark, tone: tones[mark], margin: 4 };
}

function ageWords({ createdAt }: LiveCredential, nowMs: number): string {
  const created = Date.parse(createdAt ?? "");
  return Number.isNaN(created) ? "" : roundedDuration(Math.max(0, nowMs - created));
}

function lastUseWords({ lastUsedAt }: LiveCredential, { nowMs, time }: Timed): string {
  if (lastUsedAt === null) return "never";
  return lastUsedAt === undefined ? "-" : time(lastUsedAt, nowMs);
}

function expiryWords({ expiresAt }: LiveCredential, { nowMs, time }: Timed): string {
  if (expiresAt === null) return "never";
  if (expiresAt === undefined) return "-";
  return Date.parse(expiresAt) <= nowMs ? `expired ${time(expiresAt, nowMs)}` : time(expiresAt, nowMs);
}

function sentenceOf(one: LiveCredential, { width, ...timed }: Timed & Pick<Screen, "width">): string {
  const { id, name } = one;
  const [age, used, expiry] = [ageWords(one, timed.nowMs), lastUseWords(one, timed), expiryWords(one, timed)];
  const parts = [
    age === "" ? "" : `${age} old`,
    used === "-" ? "" : used === "never" ? "never used" : `used ${used}`,
    expiry === "-"
      ? ""
      : expiry === "never"
        ? "does not expire"
        : expiry.startsWith("expired")
          ? expiry
          : `expires ${expiry}`,
  ].filter((part) => part !== "");
  if (!fitsBeside(id, width) && parts.length > 0) return `${parts.join(", ")}: ${id}${name ? ` ${name}` : ""}`;
  return `${id}${name ? ` ${name}` : ""}${parts.length === 0 ? "" : `: ${parts.join(", ")}`}`;
}

/** A bar of the full width means 90 days or more. */
function barOf(one: LiveCredential, { nowMs, columns }: { readonly nowMs: number; readonly columns: number }): string {
  if (one.expiresAt === undefined) return "";
  const validMs = validFor(one, nowMs);
  if (validMs === Number.POSITIVE_INFINITY) return "∞";
  const blocks = Math.ceil((Math.min(validMs, 90 * day) / (90 * day)) * columns);
  return "█".repeat(Math.max(0, blocks));
}

function slotLines(slots: ReadonlyMap<string, number>, screen: Screen): PageLine[] {
  const accounts = [...slots];
  const names = columnOf(accounts, ([name]) => name, screen);
  const isDrawn = !screen.isPlain && names.width + 45 <= screen.width;
  return accounts.map(([name, count], index): PageLine => {
    const bar = "█".repeat(Math.min(maxClients, count)).padEnd(maxClients, "·");
    const text = isDrawn
      ? `Slots  ${names.cells[index]}  ${bar}  at least ${count} of ${maxClients} used`
      : `Slots of ${name}: at least ${count} of ${maxClients} used`;
    return { margin: 0, isWhole: isDrawn, text };
  });
}
