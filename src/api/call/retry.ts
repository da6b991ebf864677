// Decides when a request may be repeated (§8, §4.2), and repeats reads and the changes of `integ api`.
// `operations/sending.ts` repeats journaled changes.
import { Failure } from "../../errors.ts";
import { type Answered, type Attempt, failureOf, retryAfterOf } from "./attempt.ts";

/** The longest random wait before the second attempt; doubled for each later attempt. */
const firstCapMs = 500;
/** The longest random wait; `Retry-After` may be longer. */
const capMs = 30_000;

export interface RetryState {
  readonly attempt: number;
  readonly elapsedMs: number;
  /** The last retry starts within this time after the first attempt's start; 0 means one attempt. */
  readonly retryForMs: number;
  readonly retryAfterSeconds?: number;
  readonly random: () => number;
}

/**
 * Backoff with full jitter, and at least `Retry-After`.
 * @returns milliseconds, possibly more than `setTimeout` allows; null if `retryForMs` does not allow the wait
 */
export function nextDelay({ attempt, elapsedMs, retryForMs, retryAfterSeconds, random }: RetryState): number | null {
  if (retryForMs <= 0) return null;
  const jitterMs = Math.floor(random() * Math.min(capMs, firstCapMs * 2 ** Math.min(attempt - 1, 30)));
  const delayMs = Math.max(jitterMs, (retryAfterSeconds ?? 0) * 1000);
  return elapsedMs + delayMs <= retryForMs ? delayMs : null;
}

export function mayRetryRead(attempt: Attempt<unknown>): boolean {
  if (attempt.kind === "answered") return false;
  // §8: repeat after 429, even if `retryable` is false.
  if (isRateLimited(attempt)) return true;
  const retryable = attempt.kind === "not_sent" ? undefined : attempt.problem?.retryable;
  if (retryable !== undefined && (attempt.kind === "refused" || attempt.reason === "status")) return retryable;
  if (attempt.kind === "refused") return false;
  const { reason } = attempt;
  if (attempt.kind === "unknown") return reason === "status" || reason === "closed" || reason === "timeout";
  return attempt.temporary === true || reason === "refused" || reason === "timeout";
}

const permanent: ReadonlySet<string> = new Set(["dns", "tls", "proxy", "redirect", "interrupted", "unsendable"]);

/**
 * True if a retry can help, also after an `answered` attempt, whose response may not show the result of the change.
 * Callers decide whether a retry is safe (§4.2).
 */
export function mayRetryChange(attempt: Attempt<unknown>): boolean {
  if (attempt.kind === "answered") return true;
  if (attempt.kind === "refused") return isRateLimited(attempt);
  return !permanent.has(attempt.reason) || (attempt.kind === "not_sent" && attempt.temporary === true);
}

function isRateLimited(attempt: Attempt<unknown>): boolean {
  return attempt.kind === "refused" && attempt.status === 429;
}

/** Consecutive refused connections before a read gives up. A restarting service accepts connections within seconds. */
const maxRefusals = 3;

export interface ReadClock {
  /** Milliseconds since a fixed moment, unaffected by changes of the system clock. */
  elapsed(): number;
  /** Also waits for more than 2^31 − 1 ms, unlike `setTimeout`. */
  sleep(ms: number): Promise<void>;
}

export interface RetryReadOptions {
  readonly what: string;
  readonly where?: string;
  /** For a change of `integ api`: repeat only after 429, which changed nothing (§8). */
  readonly change?: boolean;
  readonly clock: ReadClock;
  readonly retryForMs: number;
  readonly random: () => number;
  /** On abort, `retryRead` throws the signal's reason if that is a `Failure`, else `interrupted`. */
  readonly signal?: AbortSignal;
  readonly onWait?: (wait: { readonly delayMs: number; readonly failure: Failure }) => void;
}

export async function retryRead<T>(read: () => Promise<Attempt<T>>, options: RetryReadOptions): Promise<Answered<T>> {
  const { clock, retryForMs, random, signal } = options;
  const startedAt = clock.elapsed();
  const { change = false } = options;
  let refusals = 0;
  for (let attempt = 1; ; attempt++) {
    throwIfAborted(signal);
    const outcome = await read();
    if (outcome.kind === "answered") return outcome;
    throwIfAborted(signal);
    const failure = failureOf(outcome, { what: options.what, where: options.where, change });
    refusals = outcome.kind === "not_sent" && outcome.reason === "refused" ? refusals + 1 : 0;
    const mayRetry = change ? isRateLimited(outcome) : mayRetryRead(outcome) && refusals < maxRefusals;
    const delayMs = mayRetry
      ? nextDelay({
          attempt,
          elapsedMs: clock.elapsed() - startedAt,
          retryForMs,
          retryAfterSeconds: retryAfterOf(outcome),
          random,
        })
      : null;
    if (delayMs === null) throw failure;
    options.onWait?.({ delayMs, failure });
    await clock.sleep(delayMs);
  }
}

function throwIfAborted(signal: AbortSignal | undefined): void {
  if (!signal?.aborted) return;
  throw signal.reason instanceof Failure ? signal.reason : new Failure("interrupted", "Interrupted.");
}

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const shortDays = days.map((day) => day.slice(0, 3));

const month = `(?<month>${months.join("|")})`;
const time = "(?<hours>\\d{2}):(?<minutes>\\d{2}):(?<seconds>\\d{2})";
const dateForms = [
  // Sun, 06 Nov 1994 08:49:37 GMT
  new RegExp(`^(?<weekday>${shortDays.join("|")}), (?<day>\\d{2}) ${month} (?<year>\\d{4}) ${time} GMT$`),
  // obsolete: Sunday, 06-Nov-94 08:49:37 GMT
  new RegExp(`^(?<weekday>${days.join("|")}), (?<day>\\d{2})-${month}-(?<year>\\d{2}) ${time} GMT$`),
  // obsolete: Sun Nov  6 08:49:37 1994
  new RegExp(`^(?<weekday>${shortDays.join("|")}) ${month} (?<day>\\d{2}| \\d) ${time} (?<year>\\d{4})$`),
];

/**
 * Reads `Retry-After` (§4.2, §8; RFC 9110 §10.2.3): whole seconds or an HTTP date.
 * @returns whole seconds; undefined for an invalid value, such as several joined values
 */
export function parseRetryAfter(value: string | undefined, nowMs: number): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d+$/.test(value)) return Math.min(Number(value), Number.MAX_SAFE_INTEGER);
  const at = parseHttpDate(value, nowMs);
  return at === undefined ? undefined : Math.max(0, Math.ceil((at - nowMs) / 1000));
}

/** Accepts only the forms of RFC 9110, with the right weekday. @returns milliseconds since 1970 */
export function parseHttpDate(value: string, nowMs: number): number | undefined {
  const parts = dateForms.find((form) => form.test(value))?.exec(value)?.groups;
  if (!parts) return undefined;
  const [day, hours, minutes, seconds] = [parts.day, parts.hours, parts.minutes, parts.seconds].map(Number);
  // 60 is a leap second.
  if (hours! > 23 || minutes! > 59 || seconds! > 60) return undefined;
  const midnight = new Date(0);
  midnight.setUTCFullYear(fullYear(parts.year!, nowMs), months.indexOf(parts.month!), day);
  if (midnight.getUTCDate() !== day) return undefined;
  if (!days[midnight.getUTCDay()]!.startsWith(parts.weekday!.slice(0, 3))) return undefined;
  return midnight.getTime() + ((hours! * 60 + minutes!) * 60 + seconds!) * 1000;
}

/** A two-digit year is at most fifty years ahead (RFC 9110 §5.6.7). */
function fullYear(digits: string, nowMs: number): number {
  if (digits.length > 2) return Number(digits);
  const thisYear = new Date(nowMs).getUTCFullYear();
  const year = Math.floor(thisYear / 100) * 100 + Number(digits);
  if (year > thisYear + 50) return year - 100;
  return year <= thisYear - 50 ? year + 100 : year;
}
