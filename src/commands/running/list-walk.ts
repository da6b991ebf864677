// Fetches a list's pages, prints or stores them, and notes if more rows exist (§4.3).
import { resolve, extname } from "node:path";
import type { Service } from "../../api/connect.ts";
import type { Attempt } from "../../api/call/attempt.ts";
import type { ListRequest, RawPage } from "../../api/entities-and-cohorts.ts";
import type { FetchPage, Page } from "../../api/pages.ts";
import { readAnswer, whereOf } from "./read.ts";
import type { Context } from "../../context.ts";
import { Failure, invalidValue } from "../../errors.ts";
import type { Format, ListView, ListWriter } from "../../output/formats/format.ts";
import type { OutFile, ResumePoint } from "../../output/out-file.ts";
import { type SameCommand, type Advice, quotedWord } from "../../next-step.ts";
import { JsonText } from "../../api/json/json-text.ts";
import { type RowPage, UniqueRows } from "../../output/row-page.ts";
import { type FlagsOf, sharedOptions } from "../verb.ts";

type ReadPage = (request: ListRequest) => Promise<Attempt<RawPage>>;

export interface List {
  readonly flags: ListFlags;
  /** Part of the identity that `--resume` compares. */
  readonly name: string;
  readonly pagesOf: (service: Service) => ReadPage;
}

interface Walk {
  readonly context: Context;
  readonly view: ListView;
  readonly plan: ListPlan;
  readonly writer: ListWriter;
  readonly out: OutFile | undefined;
  last: { readonly nextPageToken: string | null; readonly hasMore: boolean } | undefined;
}

export async function printList(context: Context, view: ListView, list: List): Promise<void> {
  const plan = planOf(list.flags);
  const readPage = list.pagesOf(await context.connect());
  const out = await outFileOf(context, plan, list);
  const before = out?.file.before;
  const to = out && { sink: out.file, rowsBefore: before?.rows ?? 0, format: out.format };
  const walk: Walk = { context, view, plan, out: out?.file, writer: context.output.list(view, to), last: before };
  if (before && isWhole(before, plan)) await finish(walk);
  else await printPages(walk, await pagesOf(walk, readPage));
  noteMore(walk);
}

/** True if all requested rows are in the file, even if the format's closing text is missing. */
function isWhole({ hasMore, rows }: ResumePoint, { max }: ListPlan): boolean {
  return !hasMore || rows >= (max ?? Infinity);
}

function sizeOf({ rows, bytes }: { rows: number; bytes: number }, view: ListView): string {
  const what = rows === 1 ? view.singular : view.plural;
  return `${rows} ${what}, ${bytes === 1 ? "1 byte" : `${bytes} bytes`}`;
}

async function outFileOf(
  context: Context,
  plan: ListPlan,
  list: List,
): Promise<{ readonly file: OutFile; readonly format: Format } | undefined> {
  if (!plan.out) return undefined;
  const { fields } = context.output;
  const format = formatOfFile(plan.out.path, context.output);
  const profile = await context.profiles.active();
  const file = await context.output.file(resolve(context.settings.cwd, plan.out.path), {
    force: plan.out.force,
    resume: plan.out.resume,
    from: plan.pageToken,
    own: context.settings.ownPlaces,
    identity: {
      list: list.name,
      filters: JSON.stringify(plan.filters),
      profile: profile.id,
      base_url: profile.baseUrl,
      organization: profile.organizationId ?? null,
      service_version: context.settings.serviceVersion ?? profile.serviceVersion ?? null,
      format,
      fields: fields?.join(",") ?? null,
    },
  });
  return { file, format };
}

/** With `--all` or `--max`, the next page is usually fetched while the current one is printed. */
async function pagesOf(walk: Walk, readPage: ReadPage): Promise<AsyncIterable<Page>> {
  const { context, plan, view, writer, last } = walk;
  const what = `list ${view.plural}`;
  const where = await whereOf(context);
  const pages = await import("../../api/pages.ts");
  const { filters } = plan;
  const fetchPage: FetchPage = ({ pageToken, limit, signal }) =>
    readAnswer(context, { what, where }, () => readPage({ pageToken, limit, filters, signal }));
  const pageToken = last?.nextPageToken ?? plan.pageToken;
  const { max } = plan;
  const signal = context.clock.interruption;
  if (plan.walks) {
    const left = max === undefined ? undefined : () => max - writer.rowsWritten;
    return pages.readPages(fetchPage, { limit: plan.limit, pageToken, left, what, where, interruption: signal });
  }
  return (async function* () {
    yield await pages.onePage(fetchPage, { limit: plan.limit, pageToken, interruption: signal, what, where });
  })();
}

async function printPages(walk: Walk, pages: AsyncIterable<Page>): Promise<void> {
  const { context, view, plan, writer, out } = walk;
  const began = context.clock.elapsed();
  const rowsBefore = writer.rowsWritten;
  const progress = context.output.progress(`Reading ${view.plural}`);
  const unique = plan.unique ? new UniqueRows() : undefined;
  const overlaps = new Overlaps();
  try {
    for await (const page of pages) {
      refuseSurplus(walk, page);
      const { nextPageToken, hasMore } = page;
      overlaps.add(page.rows);
      await writer.page(unique ? unique.of(page.rows) : page.rows);
      walk.last = { nextPageToken, hasMore };
      out?.mark({ rows: writer.rowsWritten, nextPageToken, hasMore });
      progress.update(progressWords(walk, { rowsBefore, ms: context.clock.elapsed() - began }));
    }
    await finish(walk);
    if (unique === undefined) overlaps.report(context);
  } catch (error) {
    await writer.abandon();
    out?.abandon({ forGood: error instanceof Failure && error.details.endsList === true });
    throw withResumeStep(walk, error);
  } finally {
    progress.done();
  }
}

/** Counts pages that repeat the previous page's last row, because the list changed meanwhile (§4.3 rule 4). */
class Overlaps {
  /** The id of the last row, as JSON text. */
  #last: string | undefined;
  #pages = 0;

  /** The rows must not be printed yet, because printing may overwrite the bytes between them. */
  add(rows: RowPage): void {
    const end = rows.at(-1);
    if (end === undefined) return;
    if (this.#last !== undefined && hasId(rows, this.#last)) this.#pages += 1;
    this.#last = idOf(end);
  }

  report({ output }: Pick<Context, "output">): void {
    if (this.#pages === 0) return;
    const pages = this.#pages === 1 ? "1 page has" : `${this.#pages} pages have`;
    output.note(`${pages} rows of the page before again: the list changed meanwhile. --unique skips repeated rows.`);
  }
}

/** Only rows that contain the id's bytes are parsed. @param id JSON text */
function hasId(rows: RowPage, id: string): boolean {
  const { bytes } = rows[0]!.source;
  let at = bytes.indexOf(id, rows[0]!.start);
  for (const row of rows) {
    if (at === -1) return false;
    if (at >= row.end) continue;
    if (idOf(row) === id) return true;
    at = bytes.indexOf(id, row.end);
  }
  return false;
}

/** The row is copied, because its id would otherwise keep the whole page in memory. */
function idOf({ source, start, end }: JsonText): string | undefined {
  const id = JsonText.of(Buffer.from(source.bytes.subarray(start, end)))
    .parts()
    .get("id");
  return id?.isString ? id.text : undefined;
}

/** @param rowsBefore the number of rows that an earlier run wrote */
function progressWords(
  { view, writer: { rowsWritten: rows } }: Walk,
  { rowsBefore, ms }: { readonly rowsBefore: number; readonly ms: number },
): string {
  const seconds = Math.floor(ms / 1000);
  const rate = ms < 1000 ? "" : ` (${Math.round(((rows - rowsBefore) * 1000) / ms)} rows/s, ${seconds} s)`;
  return `Reading ${view.plural}: ${rows}${rate}`;
}

/** Refuses a page with too many rows: a list that continues with the page's token would skip the surplus rows. */
function refuseSurplus({ plan, writer, view }: Walk, page: Page): void {
  if (plan.max === undefined || page.rows.length <= plan.max - writer.rowsWritten) return;
  throw new Failure("unreachable", `The service gave ${page.rows.length} ${view.plural}, more than were requested.`, {
    hint: "Report it to the service's operator, or leave --max out.",
  });
}

async function finish({ context, view, plan, writer, last, out }: Walk): Promise<void> {
  await writer.end({ nextPageToken: last?.nextPageToken ?? null, hasMore: last?.hasMore ?? false });
  if (!out) return;
  const size = sizeOf({ rows: writer.rowsWritten, bytes: out.finish() }, view);
  context.output.note(`Wrote ${plan.out?.path}: ${size}.`);
}

/** The printed rows are correct, so the failure names a command that continues after them, if the list can continue. */
function withResumeStep(walk: Walk, error: unknown): unknown {
  const { plan, writer, last } = walk;
  if (!(error instanceof Failure) || writer.rowsWritten === 0) return error;
  const token = last?.nextPageToken;
  const { out } = plan;
  if (error.details.endsList) return unresumableFailure(walk, error);
  const resumeCommand: SameCommand | undefined =
    out && !plan.unique
      ? { add: ["--resume"], without: ["--force"] }
      : token
        ? { add: ["--page-token", token] }
        : undefined;
  // With a refused credential, the command to continue would fail too.
  const mustFixFirst = error.kind === "auth" || resumeCommand === undefined;
  return new Failure(error.kind, error.message, {
    ...error.details,
    meaning: incompleteWords(walk),
    hint: mustFixFirst ? error.details.hint : "Continue from there.",
    ...(resumeCommand && { nextCommand: resumeCommand }),
  });
}

function incompleteWords({ writer, view }: Walk): string {
  return `The list stopped after ${writer.rowsWritten} ${view.plural}, and the output is incomplete.`;
}

function unresumableFailure(walk: Walk, { kind, message, details }: Failure): Failure {
  const { out } = walk.plan;
  return new Failure(kind, message, {
    ...details,
    meaning: `${incompleteWords(walk)} It cannot continue from there: the token leads back to earlier rows.`,
    hint: "Start again; if it breaks again, report the request id to the service's operator.",
    nextCommand: { add: out ? ["--force"] : [], without: ["--resume"] },
  });
}

/** A script gets a warning, because it must not mistake one page for the whole list. */
function noteMore({ context: { output }, plan, view, writer: { rowsWritten: rows }, last }: Walk): void {
  if (!last?.hasMore) return;
  const onward = `--page-token ${last.nextPageToken} continues from here.`;
  if (plan.walks) return output.note(`More ${view.plural} exist: ${onward}`);
  const all = `--all fetches every page, ${onward}`;
  if (output.isScreen && plan.out === undefined) return output.note(`More ${view.plural} exist: ${all}`);
  output.warn(`This is one page, ${rows} ${rows === 1 ? view.singular : view.plural}. More exist: ${all}`);
}

interface ListPlan {
  /** Rows per page; default: the service's (25). */
  readonly limit: number | undefined;
  readonly pageToken: string | undefined;
  /** True with `--all` or `--max`, which request further pages. */
  readonly walks: boolean;
  readonly max: number | undefined;
  readonly filters: readonly (readonly [name: string, value: string])[];
  readonly unique: boolean;
  readonly out: { readonly path: string; readonly resume: boolean; readonly force: boolean } | undefined;
}

const formatOfSuffix: Readonly<Record<string, Format>> = {
  ".ndjson": "ndjson",
  ".jsonl": "ndjson",
  ".json": "json",
  ".csv": "csv",
  ".yaml": "yaml",
  ".yml": "yaml",
};

/**
 * Precedence: typed format, suffix, environment or default.
 * @throws Failure `usage` for a table, whose columns depend on its first rows: it cannot be resumed
 */
function formatOfFile(
  path: string,
  { format, typedFormat }: { readonly format: Format; readonly typedFormat?: Format },
): Format {
  const fileFormat = typedFormat ?? formatOfSuffix[extname(path).toLowerCase()] ?? format;
  if (fileFormat !== "table") return fileFormat;
  throw new Failure("usage", `--out: ${path} would be a table, which cannot be resumed.`, {
    hint: `Choose -o ndjson, json, csv or yaml${typedFormat ? "" : `, or use a file name that ends in .ndjson, .json, .csv or .yaml: --out ${quotedWord(`${path}.ndjson`)}`}.`,
  });
}

/** Maximum rows per page (§8). */
const largestPage = 500;

export const addListOptions = sharedOptions((command) =>
  command
    .option("--limit <n>", "Rows per page, 1 to 500 (default: 25; with --all or --max: 500)")
    .option("--page-token <token>", "Continue after an earlier page: its next_page_token")
    .option("--all", "Fetch every page")
    .option("--max <n>", "Fetch at most this many rows, over several pages")
    .option("--filter <name=value...>", "Additional filter of the endpoint; repeatable")
    .option("--unique", "Skip rows whose id was already printed")
    .option("--out <file>", "Write to a new file; its suffix chooses the format (.ndjson, .json, .csv, .yaml)")
    .option("--resume", "Continue the --out file of an interrupted list")
    .option("--force", "Let --out replace a file"),
);
export type ListFlags = FlagsOf<typeof addListOptions>;

function planOf(flags: ListFlags): ListPlan {
  const max = flags.max === undefined ? undefined : wholeNumber("--max", flags.max, Number.MAX_SAFE_INTEGER);
  const walks = flags.all === true || max !== undefined;
  const limit = flags.limit === undefined ? undefined : wholeNumber("--limit", flags.limit, largestPage);
  refuseContradictions(flags);
  return {
    limit: limit ?? (walks ? largestPage : undefined),
    pageToken: flags.pageToken,
    walks,
    max,
    filters: (flags.filter ?? []).map(filterOf),
    unique: flags.unique === true,
    out:
      flags.out === undefined
        ? undefined
        : { path: flags.out, resume: flags.resume === true, force: flags.force === true },
  };
}

function wholeNumber(flag: string, text: string, most: number): number {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= 1 && value <= most) return value;
  const range = most === Number.MAX_SAFE_INTEGER ? "from 1" : `from 1 to ${most}`;
  throw invalidValue(flag, text, {
    why: `it is not a whole number ${range}`,
    hint:
      flag === "--limit"
        ? "Use --limit 500 for the largest page, or --all for every row."
        : `Write it like ${flag} 1000.`,
  });
}

function filterOf(text: string): readonly [string, string] {
  const at = text.indexOf("=");
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
  throw invalidValue("--filter", text, {
    why: "it is not name=value",
    hint: "Write it like --filter status=active.",
  });
}

function refuseContradictions({ out, resume, force, unique, pageToken }: ListFlags): void {
  const refuse = (what: string, hint: Advice): never => {
    throw new Failure("usage", what, { hint });
  };
  if (out === "") refuse("--out names no file.", "Write it like --out entities.ndjson.");
  if (out === undefined && resume)
    refuse("--resume is for a list that is written with --out.", "Add --out <file>, or leave --resume out.");
  if (out === undefined && force) refuse("--force is for --out.", "Add --out <file>, or leave --force out.");
  if (resume && force) refuse("--resume and --force contradict each other.", "Keep one of them.");
  if (resume && pageToken !== undefined)
    refuse("--resume and --page-token contradict each other.", "Keep one of them.");
  if (resume && unique)
    refuse(
      "--unique cannot be resumed: the ids printed before are not stored.",
      "Leave --unique out, and drop repeats afterwards.",
    );
}
