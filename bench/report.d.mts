/** The text with each part between two markers made again from the results. */
export function report(text: string, results: object): string;
/** The result files that are there, by their names. */
export function readResults(): object;
