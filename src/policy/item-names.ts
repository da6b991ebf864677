// Reads item names for completion; skips validation for speed.
import { parse } from "yaml";

export function itemNamesIn(text: string): [name: string, kind: string][] {
  try {
    const policy = parse(text) as Partial<Record<string, object>> | null;
    const names = (key: string, kind: string): [string, string][] =>
      Object.keys(policy?.[key] ?? {}).map((name) => [name, kind]);
    return [...names("oauth_clients", "client"), ...names("access_keys", "key")];
  } catch {
    return [];
  }
}
