// Walking a list page by page (§4.3, §2.1): the next page is asked for while the last one is consumed, every page is
// checked before it is given, and no token is followed twice. Retries are `fetchPage`'s.
import { Failure } from "../errors.ts";
import { asSubject } from "./http/attempt.ts";
import { Ahead } from "./http/ahead.ts";
import { BodyBuffer, type Following } from "./http/exchange.ts";
import { BrokenBody, isObject } from "./json/json-body.ts";
import type { NextPage, RawPage } from "./entities-and-cohorts.ts";
import { type ScannedPage, scanPage } from "./json/page-scanner.ts";
import { shell } from "../next-step.ts";

/** A page that keeps the contract. In a walk its rows stand until the next page is taken. */
export interface Page extends ScannedPage {
  readonly requestId: string | undefined;
}

export interface PageRequest {
  readonly pageToken: string | undefined;
  readonly limit: number | undefined;
  /** Aborted if the page is not wanted any more. */
  readonly signal: AbortSignal;
  /** Where the page is received; handed in again for the page after the next. */
  readonly buffer?: BodyBuffer;
  /** The page after it: its request may leave in the moment in which this one came. */
  readonly next?: Following<NextPage>;
}

/** Gets one page, with whatever retries; throws `Failure`. */
export type FetchPage = (request: PageRequest) => Promise<{ readonly value: RawPage }>;

/**
 * Lets a request that was asked for leave over a connection that is kept: first all that it does in promises, then the two turns
 * of the event loop in which the connection waits for what should not come. It began to wait before this does.
 */
async function hasLeft(): Promise<void> {
  return new Promise((resolve) => process.nextTick(() => setImmediate(() => setImmediate(resolve))));
}

interface Coming {
  readonly request: PageRequest;
  /** Nothing if it left by itself, and has to be asked for anyway. */
  readonly page: Promise<RawPage | undefined>;
}

function asked(fetchPage: FetchPage, request: PageRequest): Coming {
  const page = fetchPage(request).then(({ value }) => value);
  // Anyone who leaves the walk early does not wait for this one; its failure is ignored.
  page.catch(() => {});
  return { request, page };
}

export interface WalkOptions {
  /** Where to begin; omitted for the first page. */
  readonly pageToken?: string;
  /** Rows per page, asked for with each page. */
  readonly limit?: number;
  /**
   * How many rows are still wanted after every page given so far was consumed; the walk ends at 0, and never asks for
   * more than that. Then the next page is asked for early only if it is certain that all of it is wanted, so that the
   * token of the last page is exact.
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
 * @returns each page as soon as it is checked
 * @throws Failure `unreachable` after the good pages, if a page breaks §2.1 or a token comes a second time;
 * what `fetchPage` throws
 */
export async function* walk(fetchPage: FetchPage, options: WalkOptions): AsyncGenerator<Page, void, undefined> {
  const abandoned = new AbortController();
  // A request's own signal stands instead of the connection's.
  const onInterruption = (): void => abandoned.abort(options.interruption?.reason);
  options.interruption?.addEventListener("abort", onInterruption, { once: true });
  if (options.interruption?.aborted) onInterruption();
  const seen = new SeenTokens();
  if (options.pageToken !== undefined) seen.add(options.pageToken);
  let buffers = twoBuffers();
  let ahead = new Ahead<RawPage>();
  /** Nothing is done but to wait for the page that is asked for: the other buffer is free. */
  let isWaiting = false;
  /** The token in a page that came, if the transport asked for it: the request has left before the page is here. */
  let told: { readonly body: Buffer; readonly pageToken: string } | undefined;
  const following = (body: Buffer): NextPage | undefined => {
    const [buffer, awaited] = buffers;
    const pageToken = isWaiting && awaited.holds(body) ? tokenAhead(body) : undefined;
    if (pageToken === undefined) return undefined;
    told = { body, pageToken };
    return { pageToken, limit: options.limit, buffer };
  };
  const tokenAhead = (body: Buffer): string | undefined => {
    const guess = mayAskAhead(options) ? peekNextToken(body) : undefined;
    return guess !== undefined && !seen.has(guess) ? guess : undefined;
  };
  const requestFor = (pageToken: string | undefined, limit: number | undefined): PageRequest => {
    const [buffer, other] = buffers;
    buffers = [other, buffer];
    return { pageToken, limit, signal: abandoned.signal, buffer, next: { ahead, of: following } };
  };
  try {
    let coming = asked(fetchPage, requestFor(options.pageToken, limitFor(options)));
    for (;;) {
      isWaiting = true;
      const raw = (await coming.page) ?? (await fetchPage(coming.request)).value;
      isWaiting = false;
      const left = told?.body === raw.body ? told.pageToken : undefined;
      const guess: string | undefined = left ?? tokenAhead(raw.body);
      // A token that the page turns out not to have costs a read, and its response is thrown away.
      let early: Coming | undefined;
      if (left !== undefined) early = { request: requestFor(left, options.limit), page: ahead.usual() };
      else if (guess !== undefined) {
        early = asked(fetchPage, requestFor(guess, options.limit));
        await hasLeft();
      }
      const page = checkPage(raw, options);
      yield page;
      const token = page.nextPageToken;
      if (token === null || (options.left && options.left() <= 0)) return;
      if (!seen.add(token)) throw circle(options, page.requestId);
      // What is thrown away may still be coming: into buffers that are not used any more.
      if (early && token !== guess) [buffers, ahead] = [twoBuffers(), new Ahead()];
      coming = early && token === guess ? early : asked(fetchPage, requestFor(token, limitFor(options)));
    }
  } finally {
    options.interruption?.removeEventListener("abort", onInterruption);
    abandoned.abort();
  }
}

/**
 * One page alone.
 * @throws Failure `unreachable` if it breaks §2.1; what `fetchPage` throws
 */
export async function onePage(
  fetchPage: FetchPage,
  { pageToken, limit, interruption, ...context }: Omit<WalkOptions, "left"> & { readonly interruption: AbortSignal },
): Promise<Page> {
  const { value } = await fetchPage({ limit, pageToken, signal: interruption, buffer: new BodyBuffer() });
  return checkPage(value, context);
}

/** One for the page that is read, one for the page that is coming. */
function twoBuffers(): readonly [BodyBuffer, BodyBuffer] {
  return [new BodyBuffer(), new BodyBuffer()];
}

function limitFor({ limit, left }: WalkOptions): number | undefined {
  return left && limit !== undefined ? Math.min(limit, left()) : limit;
}

/** True if all of the next page is wanted, however many rows the one just received has. */
function mayAskAhead({ limit, left }: WalkOptions): boolean {
  return !left || (limit !== undefined && left() >= 2 * limit);
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

/** The token that came again leads to rows that were given before: it is not shown. */
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

/** What helps if the service itself is at fault. */
const report = "if it happens again, report it with its request id to the service's operator.";

function broken(detail: string, { what, where }: Pick<WalkOptions, "what" | "where">, requestId?: string): Failure {
  return new Failure("unreachable", `${asSubject(what)} failed: ${detail}.`, {
    where,
    hint: `Check which program responds at the address of the profile; ${report}`,
    nextCommand: shell`integ doctor`,
    problem: requestId === undefined ? undefined : { request_id: requestId },
  });
}

/**
 * The next page's token, read from the end of the body alone: what is after the last `]` is the rest of the envelope
 * if it has the usual order. Only a guess until the page is checked.
 */
export function peekNextToken(body: Buffer): string | undefined {
  const end = body.lastIndexOf(0x5d);
  // The rest of an envelope is short; a body without `]` near its end is not a usual one.
  if (end === -1 || body.length - end > 16_384) return undefined;
  const rest = body.toString("utf8", end + 1).trimStart();
  if (!rest.startsWith(",")) return undefined;
  try {
    const tail: unknown = JSON.parse(`{${rest.slice(1)}`);
    // A page that says, or does not say here, that it is the last may be refused for its token: that one is not sent.
    const token = isObject(tail) && tail.has_more === true ? tail.next_page_token : undefined;
    return typeof token === "string" && token !== "" ? token : undefined;
  } catch {
    return undefined;
  }
}

/** So many of the last tokens are remembered one by one: a repetition among them is noticed immediately. */
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
