// Fetches a list's pages (§4.3, §2.1), each checked before its rows are used.
import { setImmediate as turn } from "node:timers/promises";
import { Failure } from "../errors.ts";
import { gerundPhrase } from "./call/attempt.ts";
import type { RawPage } from "./entities-and-cohorts.ts";
import { BrokenBody, openBrace, openBracket, Scanner, JsonText, Source } from "./json/json-text.ts";
import { shell } from "../next-step.ts";

export interface Page extends ScannedPage {
  readonly requestId: string | undefined;
}

export interface PageRequest {
  readonly pageToken: string | undefined;
  readonly limit: number | undefined;
  readonly signal: AbortSignal;
}

export type FetchPage = (request: PageRequest) => Promise<{ readonly value: RawPage }>;

export interface PagesOptions {
  readonly pageToken?: string;
  readonly limit?: number;
  /** Returns how many more rows the caller wants; 0 ends the list. */
  readonly left?: () => number;
  /** Aborts the current request with the same reason. */
  readonly interruption?: AbortSignal;
  readonly what: string;
  readonly where?: string;
}

/**
 * Reads pages until `has_more` is false or `left` returns 0. Short and empty pages do not end the list.
 * @returns checked pages; a page's rows are readable until the caller takes the next page
 * @throws Failure `unreachable` after the valid pages, if a page breaks §2.1 or repeats a token; errors of `fetchPage`
 */
export async function* readPages(fetchPage: FetchPage, options: PagesOptions): AsyncGenerator<Page, void, undefined> {
  const controller = new AbortController();
  // The controller's signal replaces the transport's signal, which reports interruptions.
  const onInterruption = (): void => controller.abort(options.interruption?.reason);
  options.interruption?.addEventListener("abort", onInterruption, { once: true });
  if (options.interruption?.aborted) onInterruption();
  const seen = new SeenTokens();
  if (options.pageToken !== undefined) seen.add(options.pageToken);
  const request = (pageToken: string | undefined, limit: number | undefined): Promise<RawPage> => {
    const page = fetchPage({ pageToken, limit, signal: controller.signal }).then(({ value }) => value);
    // If the caller stops early, nothing awaits this page.
    page.catch(() => {});
    return page;
  };
  try {
    let pending = request(options.pageToken, limitFor(options));
    for (;;) {
      const raw = await pending;
      const page = checkPage(raw, options);
      const token = page.nextPageToken;
      const early =
        token !== null && !seen.has(token) && isNextWanted(page, options) ? request(token, options.limit) : undefined;
      // Lets undici send the request before the consumer blocks the process.
      if (early) for (let turns = 0; turns < 3; turns += 1) await turn();
      yield page;
      release(raw.body);
      if (token === null || (options.left && options.left() <= 0)) return;
      if (!seen.add(token)) throw repeatedToken(options, page.requestId);
      pending = early ?? request(token, limitFor(options));
    }
  } finally {
    options.interruption?.removeEventListener("abort", onInterruption);
    controller.abort();
  }
}

/**
 * Frees a page's memory immediately, because the garbage collector would keep many pages. No effect in Node 20, or on a
 * short buffer, which may share memory.
 */
function release({ buffer }: Buffer): void {
  if (buffer.byteLength > Buffer.poolSize) (buffer as { transfer?(length: number): unknown }).transfer?.(0);
}

export async function onePage(
  fetchPage: FetchPage,
  { pageToken, limit, interruption, ...context }: Omit<PagesOptions, "left"> & { readonly interruption: AbortSignal },
): Promise<Page> {
  const { value } = await fetchPage({ limit, pageToken, signal: interruption });
  return checkPage(value, context);
}

function limitFor({ limit, left }: PagesOptions): number | undefined {
  return left && limit !== undefined ? Math.min(limit, left()) : limit;
}

/**
 * A page that may be used only in part is not requested early: it needs a smaller limit, because its token would skip
 * rows.
 */
function isNextWanted({ rows }: Page, { limit, left }: PagesOptions): boolean {
  return !left || (limit !== undefined && left() - rows.length >= limit);
}

export function checkPage({ body, requestId }: RawPage, context: Pick<PagesOptions, "what" | "where">): Page {
  try {
    return { requestId, ...scanPage(body) };
  } catch (error) {
    if (!(error instanceof BrokenBody)) throw error;
    throw broken(error.message, context, requestId);
  }
}

/** The message omits the token, because a list that continues with it repeats rows. */
function repeatedToken(context: Pick<PagesOptions, "what" | "where">, requestId?: string): Failure {
  const { kind, message, details } = broken(
    "the service repeated a page token: the list would never end",
    context,
    requestId,
  );
  return new Failure(kind, message, {
    ...details,
    endsList: true,
    hint: `Start again with the same command; ${report}`,
  });
}

const report = "if it happens again, report it with its request id to the service's operator.";

function broken(detail: string, { what, where }: Pick<PagesOptions, "what" | "where">, requestId?: string): Failure {
  return new Failure("unreachable", `${gerundPhrase(what)} failed: ${detail}.`, {
    where,
    hint: `Check which program responds at the address of the profile; ${report}`,
    nextCommand: shell`integ doctor`,
    problem: requestId === undefined ? undefined : { request_id: requestId },
  });
}

const maxRecent = 10_000;

/** Finds repeated tokens: immediately in a cycle of up to 10,000 pages, later in a longer one (Brent's algorithm). */
export class SeenTokens {
  readonly #recent = new Set<string>();
  /** Later tokens are compared with this one. Replaced after 1, 2, 4, 8, … tokens. */
  #anchor: string | undefined;
  #count = 0;
  #next = 1;

  has(token: string): boolean {
    return this.#recent.has(token) || this.#anchor === token;
  }

  add(token: string): boolean {
    if (this.has(token)) return false;
    this.#recent.add(token);
    if (this.#recent.size > maxRecent) this.#recent.delete(this.#recent.values().next().value!);
    if (++this.#count === this.#next) {
      this.#anchor = token;
      this.#next *= 2;
    }
    return true;
  }
}

export interface ScannedPage {
  readonly rows: readonly JsonText[];
  readonly nextPageToken: string | null;
  readonly hasMore: boolean;
}

/** @throws BrokenBody unless the body is one list envelope; keys may be in any order, and unknown keys are allowed */
export function scanPage(body: Buffer): ScannedPage {
  const scanner = new Scanner(body, "page");
  const start = scanner.begin();
  if (body[start] !== openBrace) throw new BrokenBody("the page is not a list envelope");
  const envelope = new Map<string, unknown>();
  let rows: readonly JsonText[] = [];
  const end = scanner.object(start, 1, (name, nameEnd, value) => {
    const key = String(JSON.parse(body.toString("utf8", name, nameEnd)));
    if (envelope.has(key)) throw new BrokenBody(`the page's envelope has "${key.slice(0, 40)}" twice`);
    envelope.set(key, undefined);
    if (key === "data") {
      const found = scanRows(body, value, scanner);
      ({ rows } = found);
      return found.end;
    }
    const valueEnd = scanner.value(value, 1);
    if (envelopeKeys.has(key)) envelope.set(key, JSON.parse(body.toString("utf8", value, valueEnd)));
    return valueEnd;
  });
  scanner.end(end);
  return { rows, ...checkEnvelope(envelope) };
}

const envelopeKeys: ReadonlySet<string> = new Set(["object", "next_page_token", "has_more"]);

function scanRows(
  body: Buffer,
  from: number,
  scanner: Scanner,
): { readonly rows: readonly JsonText[]; readonly end: number } {
  if (body[from] !== openBracket) throw new BrokenBody('"data" of the page is not an array');
  const source = new Source(body);
  const rows: JsonText[] = [];
  const end = scanner.array(from, 2, (start) => {
    if (body[start] !== openBrace) throw new BrokenBody(`row ${rows.length + 1} of the page is not an object`);
    const spacesBefore = scanner.spaces;
    const rowEnd = scanner.object(start, 3);
    rows.push(new JsonText(source, start, rowEnd, scanner.spaces === spacesBefore));
    return rowEnd;
  });
  return { rows, end };
}

/** §2.1: a page has a token if and only if more rows exist. */
function checkEnvelope(envelope: ReadonlyMap<string, unknown>): Omit<ScannedPage, "rows"> {
  const nextPageToken = envelope.get("next_page_token");
  const hasMore = envelope.get("has_more");
  if (envelope.get("object") !== "list") throw new BrokenBody('"object" of the page is not "list"');
  if (!envelope.has("data")) throw new BrokenBody('the page has no "data"');
  if (nextPageToken === undefined) throw new BrokenBody('the page has no "next_page_token"');
  if (hasMore === true && typeof nextPageToken === "string" && nextPageToken !== "") return { nextPageToken, hasMore };
  if (hasMore === false && nextPageToken === null) return { nextPageToken, hasMore };
  if (typeof hasMore !== "boolean") throw new BrokenBody('"has_more" of the page is neither true nor false');
  throw new BrokenBody(
    hasMore
      ? "the page says that more rows exist, and has no token for them"
      : "the page says that no more rows exist, and has a token for more",
  );
}
