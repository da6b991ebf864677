// What an entry is looked for by, besides its id: each as one text, so that an engine needs one index for all.
import { type Entry, resourcesOf } from "./entry.ts";
import type { EntryFilter } from "./filter.ts";

export const keyName = (baseUrl: string, key: string): string => `key ${JSON.stringify([baseUrl, key])}`;
const parentName = (id: string): string => `parent ${id}`;
const replacesName = (id: string): string => `replaces ${id}`;
const resourceName = (id: string): string => `resource ${id}`;
export const itemName = (name: string): string => `item ${name}`;

export function namesOf(entry: Entry): string[] {
  const { base_url, idempotency_key: key, parent, replaces, detail } = entry;
  const names = resourcesOf(entry).map(resourceName);
  if (key !== null) names.push(keyName(base_url, key));
  if (parent !== null) names.push(parentName(parent));
  if (replaces !== null) names.push(replacesName(replaces));
  if (detail.policy_name !== undefined) names.push(itemName(detail.policy_name));
  return names;
}

/** A name that everything that fits has; undefined where nothing that has one is asked for. */
export function nameIn({ parent, replaces, resource, item }: EntryFilter): string | undefined {
  if (parent !== undefined) return parentName(parent);
  if (replaces !== undefined) return replacesName(replaces);
  if (resource !== undefined) return resourceName(resource);
  return item === undefined ? undefined : itemName(item);
}
