/**
 * Whether a text names a server rather than a file. One with a typing mistake (`postgres:/…`, `postgresql//…`) counts too: it
 * would be a new file, and every change would go unseen by the team.
 */
export function isAddress(text: string): boolean {
  return /^(?:[a-z][a-z0-9+.-]+:|postgres\w*\/\/)/i.test(text);
}
