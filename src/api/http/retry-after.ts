// Owns: reading `Retry-After` (§4.2, §8; RFC 9110 §10.2.3): whole seconds or one of the three HTTP dates. Pure.
// Must not know: what is done with the wait, the clock (time is handed in).

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const shortDays = days.map((day) => day.slice(0, 3));

const month = `(${months.join("|")})`;
const time = "(\\d{2}):(\\d{2}):(\\d{2})";
/** RFC 9110 §5.6.7: `Sun, 06 Nov 1994 08:49:37 GMT` */
const imfFixdate = new RegExp(`^(${shortDays.join("|")}), (\\d{2}) ${month} (\\d{4}) ${time} GMT$`);
/** obsolete: `Sunday, 06-Nov-94 08:49:37 GMT` */
const rfc850Date = new RegExp(`^(${days.join("|")}), (\\d{2})-${month}-(\\d{2}) ${time} GMT$`);
/** obsolete: `Sun Nov  6 08:49:37 1994` */
const asctimeDate = new RegExp(`^(${shortDays.join("|")}) ${month} (\\d{2}| \\d) ${time} (\\d{4})$`);

/**
 * The wait that the service asks for.
 * @param value the header's value; several values joined by commas are no value
 * @param nowMs milliseconds since the epoch
 * @returns whole seconds ≥ 0 (a date in the past is 0), at most 2^53 − 1; nothing where the value is neither form
 * (`Date.parse` would take junk)
 */
export function parseRetryAfter(value: string | undefined, nowMs: number): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d+$/.test(value)) return Math.min(Number(value), Number.MAX_SAFE_INTEGER);
  const at = parseHttpDate(value, nowMs);
  return at === undefined ? undefined : Math.max(0, Math.ceil((at - nowMs) / 1000));
}

/**
 * One of the three forms of an HTTP date (RFC 9110 §5.6.7), strictly: the weekday has to fit the date.
 * @param nowMs tells the century of a two-digit year: more than fifty years ahead is a year of the past
 * @returns milliseconds since the epoch, or nothing
 */
export function parseHttpDate(value: string, nowMs: number): number | undefined {
  let match = imfFixdate.exec(value);
  if (match) return dateOf(match[1]!, [match[4]!, match[3]!, match[2]!], match.slice(5, 8));
  match = rfc850Date.exec(value);
  if (match) return dateOf(match[1]!, [fullYear(match[4]!, nowMs), match[3]!, match[2]!], match.slice(5, 8));
  match = asctimeDate.exec(value);
  if (match) return dateOf(match[1]!, [match[7]!, match[2]!, match[3]!.trim()], match.slice(4, 7));
  return undefined;
}

function fullYear(twoDigits: string, nowMs: number): string {
  const thisYear = new Date(nowMs).getUTCFullYear();
  const year = Math.floor(thisYear / 100) * 100 + Number(twoDigits);
  if (year > thisYear + 50) return String(year - 100);
  return String(year <= thisYear - 50 ? year + 100 : year);
}

type DateParts = readonly [year: string, month: string, day: string];

function dateOf(weekday: string, [year, monthName, day]: DateParts, clock: readonly string[]): number | undefined {
  const [hours = 0, minutes = 0, seconds = 0] = clock.map(Number);
  // 60 is a leap second; Date.UTC counts it as the first second of the next minute.
  if (hours > 23 || minutes > 59 || seconds > 60) return undefined;
  const midnight = new Date(0);
  midnight.setUTCFullYear(Number(year), months.indexOf(monthName), Number(day));
  if (midnight.getUTCDate() !== Number(day)) return undefined;
  if (!days[midnight.getUTCDay()]!.startsWith(weekday.slice(0, 3))) return undefined;
  return midnight.getTime() + ((hours * 60 + minutes) * 60 + seconds) * 1000;
}
