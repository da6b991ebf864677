// Which texts are times and dates of ISO 8601 as the service has them (§2.4, §9.1). Pure.

/** A date that a calendar has: `Date.parse` takes the 30th of February for the 2nd of March. */
export function isDate(text: string): boolean {
  const form = /^(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$/.exec(text);
  return form !== null && Number(form[3]) <= new Date(Date.UTC(Number(form[1]), Number(form[2]), 0)).getUTCDate();
}

/** A date, a time to the minute at least, and a zone. */
export function isTime(text: string): boolean {
  const form = /^(\d{4}-\d{2}-\d{2})T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/.exec(text);
  return form !== null && isDate(form[1]!) && !Number.isNaN(Date.parse(text));
}

/** @returns the time with milliseconds and in UTC, which is how the service writes it; what is no time stays as it is */
export function fullTime(text: string): string {
  return isTime(text) ? new Date(text).toISOString() : text;
}
