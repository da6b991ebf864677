// Reads from the API for a command, and prints the rows of responses without pages.
import type { Answered, Attempt } from "../../api/call/attempt.ts";
import { retryRead } from "../../api/call/retry.ts";
import type { Service } from "../../api/connect.ts";
import type { Row, Rows } from "../../api/json/unknown-list.ts";
import type { Context } from "../../context.ts";
import type { Column, ListView } from "../../output/formats/format.ts";
import type { Progress } from "../../output/live-view.ts";
import { inPages, pageOf } from "../../output/row-page.ts";

/**
 * @param what the action in a message, such as `get the OAuth client`
 * @param attempt one exchange, repeated if that can help
 */
export async function read<T>(
  context: Context,
  what: string,
  attempt: () => Promise<Attempt<T>>,
): Promise<Answered<T>> {
  const progress = context.output.progress(what);
  try {
    return await readAnswer(context, { what, where: await whereOf(context) }, attempt);
  } finally {
    progress.done();
  }
}

/** Shows progress only while integ waits for another attempt. */
export async function readAnswer<T>(
  context: Context,
  { what, where, change }: { what: string; where: string; change?: boolean },
  attempt: () => Promise<Attempt<T>>,
): Promise<Answered<T>> {
  let wait: Progress | undefined;
  try {
    return await retryRead(
      () => {
        wait?.done();
        return attempt();
      },
      {
        what,
        where,
        change,
        retryForMs: context.settings.retryForMs,
        clock: context.clock,
        random: () => context.clock.random(),
        signal: context.clock.interruption,
        onWait: ({ delayMs, failure }) => {
          wait = context.output.countdown(`${failure.message} Trying again`, delayMs);
        },
      },
    );
  } finally {
    wait?.done();
  }
}

export async function whereOf(context: Context): Promise<string> {
  const profile = await context.profiles.active();
  return `profile ${profile.name} (${profile.region})`;
}

const sampleSize = 200;
const maxColumns = 10;

/** @param view its columns are the documented fields in order */
export async function printRows(
  context: Context,
  rows: Pick<Rows, "saysMore"> & { readonly rows: Iterable<Row> },
  view: {
    readonly columns: readonly Column[];
    readonly singular: string;
    readonly plural: string;
    readonly nowMs?: number;
  },
): Promise<void> {
  const first: Value[] = [];
  for (const { value } of rows.rows) if (first.push(value) === sampleSize) break;
  const columns = columnsFor(first, view.columns);
  const writer = context.output.list({
    ...view,
    columns,
    extraColumns: view.columns,
    isWhole: first.length < sampleSize,
  });
  for await (const page of inPages(rows.rows)) await writer.page(pageOf(page.map(({ text }) => text)));
  await writer.end({ nextPageToken: null, hasMore: rows.saysMore });
  if (rows.saysMore)
    context.output.warn(
      `The response says that more ${view.plural} exist: the API document shows no way to fetch them.`,
    );
}

type Value = Readonly<Record<string, unknown>>;

/** If no row has a documented field, up to ten of the rows' own fields become columns, in order of appearance. */
export function columnsFor(rows: readonly Value[], documented: readonly Column[]): Column[] {
  const sample = rows.slice(0, sampleSize);
  const present = documented.filter(({ path }) => sample.some((row) => Object.hasOwn(row, path)));
  if (present.length > 0) return present;
  if (sample.length === 0) return [...documented];
  // A name with a dot would be read as a path.
  const names = [...new Set(sample.flatMap((row) => Object.keys(row)))].filter((name) => !name.includes("."));
  const plain = names.filter((name) => sample.some((row) => typeof row[name] !== "object" || row[name] === null));
  return (plain.length > 0 ? plain : names).slice(0, maxColumns).map((name) => columnOf(name, sample));
}

function columnOf(name: string, rows: readonly Value[]): Column {
  const values = rows.map((row) => row[name]).filter((value) => value !== null && value !== undefined);
  const isTime = values.length > 0 && values.every((value) => typeof value === "string" && time.test(value));
  return { path: name, heading: name, kind: isTime ? "time" : undefined, isDetail: true };
}

const time = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}/;

export async function printFindings(
  context: Context,
  findings: readonly object[],
  { columns, empty }: Pick<ListView, "columns" | "empty">,
): Promise<void> {
  await context.output.list({ columns, empty, singular: "finding", plural: "findings" }).whole(findings);
}

/** @returns the time by the service's clock if known, in milliseconds since 1970, to compare with times in its rows */
export function serviceNow({ clock }: Pick<Context, "clock">, service: Pick<Service, "clockOffset">): number {
  return clock.now() + (service.clockOffset() ?? 0);
}
