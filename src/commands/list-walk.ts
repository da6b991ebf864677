// Owns: how a list command walks and prints: one page, or all of them, and what it says when more exists (§4.3).
// Must not know: which list it is.
import type { Command } from "@commander-js/extra-typings";
import type { Attempt } from "../api/attempt.ts";
import type { Service } from "../api/connect.ts";
import type { RawPage } from "../api/list-request.ts";
import type { FetchPage, Page } from "../api/pages.ts";
import type { Context } from "../context.ts";
import { Failure } from "../errors.ts";
import type { ListView } from "../output/output.ts";
import { readAnswer, whereOf } from "./read.ts";

export type ListFlags = {
  limit?: string;
  pageToken?: string;
  all?: true;
};

export interface ListRequest {
  readonly limit: number | undefined;
  readonly pageToken: string | undefined;
}

/** Declares the options that every list has. */
export function addListOptions<Args extends unknown[], Options extends Record<string, unknown>>(
  command: Command<Args, Options>,
): Command<Args, Options & ListFlags> {
  return command
    .option("--limit <n>", "rows a page, 1 to 500 (25; with --all 500)")
    .option("--page-token <token>", "go on from here: the next_page_token of an earlier page")
    .option("--all", "walk to the end") as unknown as Command<Args, Options & ListFlags>;
}

/** @throws Failure `usage` for a limit outside 1 to 500 (§8) */
export function parseLimit(flags: ListFlags): number | undefined {
  if (flags.limit === undefined) return flags.all ? 500 : undefined;
  const limit = /^\d{1,4}$/.test(flags.limit) ? Number(flags.limit) : Number.NaN;
  if (!(limit >= 1 && limit <= 500))
    throw new Failure("usage", `--limit: "${flags.limit}" is not a whole number from 1 to 500.`, {
      hint: "Write --limit 500 for the largest page, or --all for every row.",
    });
  return limit;
}

/** One page of one list, one attempt. */
export type ReadPage = (request: ListRequest & { readonly signal: AbortSignal }) => Promise<Attempt<RawPage>>;

/** Prints one page, or every page to the end. */
export async function printList(
  context: Context,
  view: ListView,
  { flags, pagesOf }: { flags: ListFlags; pagesOf: (service: Service) => ReadPage },
): Promise<void> {
  const { output } = context;
  const what = `list ${view.plural}`;
  const limit = parseLimit(flags);
  const readPage = pagesOf(await context.connect());
  const where = await whereOf(context);
  const { checkPage, walk } = await import("../api/pages.ts");
  const fetchPage: FetchPage = (request) => readAnswer(context, { what, where }, () => readPage(request));
  async function* onePage(): AsyncGenerator<Page> {
    const { value } = await fetchPage({ limit, pageToken: flags.pageToken, signal: context.clock.interruption });
    yield checkPage(value, { what, where });
  }
  const pages = flags.all ? walk(fetchPage, { limit, pageToken: flags.pageToken, what, where }) : onePage();
  const writer = output.list(view);
  const progress = output.progress(`Reading ${view.plural}`);
  let last: Page | undefined;
  try {
    for await (const page of pages) {
      await writer.page(page);
      last = page;
      progress.update(`Reading ${view.plural}: ${writer.rowsWritten}`);
    }
    await writer.end({ nextPageToken: last?.nextPageToken ?? null, hasMore: last?.hasMore ?? false });
  } catch (error) {
    await writer.abandon();
    throw broken(error, { rows: writer.rowsWritten, token: last?.nextPageToken, view });
  } finally {
    progress.done();
  }
  if (last?.hasMore)
    output.note(
      `More ${view.plural} exist: --all walks to the end, --page-token ${last.nextPageToken} goes on from here.`,
    );
}

function broken(error: unknown, at: { rows: number; token?: string | null; view: ListView }): unknown {
  if (!(error instanceof Failure) || !at.token) return error;
  return new Failure(error.kind, error.message, {
    ...error.details,
    meaning: `The walk broke after ${at.rows} ${at.view.plural}; what was printed is good, and it is not all.`,
    hint: `Go on from there with --page-token ${at.token}`,
  });
}
