// Walking a list page by page (§4.3, §2.1): every page is checked before it is given, the next one is requested while it is
// consumed, and no token is followed twice. `fetchPage` retries.
import { setImmediate as turn } from "node:timers/promises";
import { Failure } from "../errors.ts";
import { asSubject } from "./call/attempt.ts";
import type { RawPage } from "./entities-and-cohorts.ts";
import { BrokenBody, openBrace, openBracket, Scanner, JsonText, Source } from "./json/json-text.ts";
import { shell } from "../next-step.ts";

/** A page that keeps the contract. */
export interface Page extends ScannedPage {
  readonly requestId: string | undefined;
}

export interface PageRequest {
  readonly pageToken: string | undefined;
  readonly limit: number | undefined;
  /** Aborted if the page is not wanted any more. */
  readonly signal: AbortSignal;
}

/** Gets one page, with whatever retries; throws `Failure`. */
export type FetchPage = (request: PageRequest) => Promise<{ readonly value: RawPage }>;

export interface WalkOptions {
  /** Where to begin; omitted for the first page. */
  readonly pageToken?: string;
  /** Rows per page, asked for with each page. */
  readonly limit?: number;
  /**
   * How many rows are still wanted after every page given so far was consumed; the walk ends at 0, and never asks for
   * more than that. The next page is then requested early only if all of it is certain to be wanted, so that the token
   * of the last page is exact.
   */
  readonly left?: () => number;
  /** Ends the request under way, with its reason. */
  readonly interruption?: AbortSignal;
  /** `list entities`, for the words of a failure. */
  readonly what: string;
  readonly where?: string;
}

/**
 * Walks to the end, or as far as wanted. Short and empty pages are not the end; only `has_more` is.
 * @returns each page once it is checked; its rows are readable until the next page is requested
 * @throws Failure `unreachable` after the good pages, if a page breaks §2.1 or a token comes a second time;
 * what `fetchPage` throws
 */
export async function* walk(fetchPage: FetchPage, options: WalkOptions): AsyncGenerator<Page, void, undefined> {
  const abandoned = new AbortController();
  // A request's own signal replaces the connection's.
  const onInterruption = (): void => abandoned.abort(options.interruption?.reason);
  options.interruption?.addEventListener("abort", onInterruption, { once: true });
  if (options.interruption?.aborted) onInterruption();
  const seen = new SeenTokens();
  if (options.pageToken !== undefined) seen.add(options.pageToken);
  const request = (pageToken: string | undefined, limit: number | undefined): Promise<RawPage> => {
    const page = fetchPage({ pageToken, limit, signal: abandoned.signal }).then(({ value }) => value);
    // A caller that leaves the walk early does not wait for this one; its failure is ignored.
    page.catch(() => {});
    return page;
  };
  try {
    let coming = request(options.pageToken, limitFor(options));
    for (;;) {
      const raw = await coming;
      const page = checkPage(raw, options);
      const token = page.nextPageToken;
      const early =
        token !== null && !seen.has(token) && isNextWanted(page, options) ? request(token, options.limit) : undefined;
      // The consumer may keep the processor, so the request leaves first: undici takes two turns of the event loop for that.
      if (early) for (let turns = 0; turns < 3; turns += 1) await turn();
      yield page;
      release(raw.body);
      if (token === null || (options.left && options.left() <= 0)) return;
      if (!seen.add(token)) throw circle(options, page.requestId);
      coming = early ?? request(token, limitFor(options));
    }
  } finally {
    options.interruption?.removeEventListener("abort", onInterruption);
    abandoned.abort();
  }
}

/**
 * Gives back the memory of a page immediately; Node 20 cannot. The collector would let the bodies of many pages come together. A
 * short body may be a part of memory that others use.
 */
function release({ buffer }: Buffer): void {
  if (buffer.byteLength > Buffer.poolSize) (buffer as { transfer?(length: number): unknown }).transfer?.(0);
}

/**
 * One page alone.
 * @throws Failure `unreachable` if it breaks §2.1; what `fetchPage` throws
 */
export async function onePage(
  fetchPage: FetchPage,
  { pageToken, limit, interruption, ...context }: Omit<WalkOptions, "left"> & { readonly interruption: AbortSignal },
): Promise<Page> {
  const { value } = await fetchPage({ limit, pageToken, signal: interruption });
  return checkPage(value, context);
}

function limitFor({ limit, left }: WalkOptions): number | undefined {
  return left && limit !== undefined ? Math.min(limit, left()) : limit;
}

/** True if all rows of the next page are wanted, even if every row of this one is counted. */
function isNextWanted({ rows }: Page, { limit, left }: WalkOptions): boolean {
  return !left || (limit !== undefined && left() - rows.length >= limit);
}

/**
 * Checks a page and finds its rows.
 * @throws Failure `unreachable` if it breaks the contract
 */
export function checkPage({ body, requestId }: RawPage, context: Pick<WalkOptions, "what" | "where">): Page {
  try {
    return { requestId, ...scanPage(body) };
  } catch (error) {
    if (!(error instanceof BrokenBody)) throw error;
    throw broken(error.message, context, requestId);
  }
}

/** The repeated token is not shown: it leads to rows that were already printed. */
function circle(context: Pick<WalkOptions, "what" | "where">, requestId?: string): Failure {
  const { kind, message, details } = broken(
    "the service repeated a page token: the list would never end",
    context,
    requestId,
  );
  return new Failure(kind, message, {
    ...details,
    endsWalk: true,
    hint: `Start again with the same command; ${report}`,
  });
}

const report = "if it happens again, report it with its request id to the service's operator.";

function broken(detail: string, { what, where }: Pick<WalkOptions, "what" | "where">, requestId?: string): Failure {
  return new Failure("unreachable", `${asSubject(what)} failed: ${detail}.`, {
    where,
    hint: `Check which program responds at the address of the profile; ${report}`,
    nextCommand: shell`integ doctor`,
    problem: requestId === undefined ? undefined : { request_id: requestId },
  });
}

/** The number of latest tokens that are remembered: a repetition among them is noticed immediately. */
const remembered = 10_000;

/**
 * The tokens of a walk. A circle of up to 10,000 pages is noticed when it closes; a longer one by Brent's method, at the
 * latest when it was followed three times.
 */
export class SeenTokens {
  readonly #recent = new Set<string>();
  /** A token that is compared with all later ones, replaced at each power of two. */
  #anchor: string | undefined;
  #count = 0;
  #next = 1;

  has(token: string): boolean {
    return this.#recent.has(token) || this.#anchor === token;
  }

  /** @returns false if the token was there before */
  add(token: string): boolean {
    if (this.has(token)) return false;
    this.#recent.add(token);
    if (this.#recent.size > remembered) this.#recent.delete(this.#recent.values().next().value!);
    if (++this.#count === this.#next) {
      this.#anchor = token;
      this.#next *= 2;
    }
    return true;
  }
}

/** A page that keeps the envelope rule (§2.1). */
export interface ScannedPage {
  readonly rows: readonly JsonText[];
  readonly nextPageToken: string | null;
  readonly hasMore: boolean;
}

/**
 * Checks a page and finds its rows.
 * @throws BrokenBody if the body is not exactly one list envelope, in any order of keys, with any unknown keys
 */
export function scanPage(body: Buffer): ScannedPage {
  const scanner = new Scanner(body, "page");
  const start = scanner.begin();
  if (body[start] !== openBrace) throw new BrokenBody("the page is not a list envelope");
  const envelope = new Map<string, unknown>();
  let rows: readonly JsonText[] = [];
  const end = scanner.object(start, 1, (name, nameEnd, value) => {
    const key = String(JSON.parse(body.toString("utf8", name, nameEnd)));
    // Of two it is unknown which is meant.
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

/** All but `data`. */
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

/** The consistency rule of §2.1. */
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
