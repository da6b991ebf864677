// Which entries a list is to show. Pure.
import { isActor } from "./actor.ts";
import { type Entry, type EntryAccount, isOfAccount, isSettled, type Operation, resourcesOf } from "./entry.ts";
import type { Step } from "./history.ts";

export interface EntryFilter {
  /** Settled ones too; where `states` are named, those alone. */
  readonly all?: boolean;
  readonly states?: readonly string[];
  readonly operation?: Operation;
  readonly profile?: string;
  /** Those of one account, whatever the profiles are called that made them. */
  readonly account?: EntryAccount;
  /** Who made a step of it: the user, the host, `user@host` or the address of the CI run. */
  readonly actor?: string;
  /** ISO 8601 UTC: touched then or later. */
  readonly since?: string;
  /** Those with these whole ids. */
  readonly ids?: readonly string[];
  /** The steps of that entry. */
  readonly parent?: string;
  /** Those that stand in for that entry. */
  readonly replaces?: string;
  /** Those that made, changed or revoked that client or key; a `client_id` counts too. */
  readonly resource?: string;
  /** Those that are work for the item of a policy with that name. */
  readonly item?: string;
  /** At most so many of them, the newest. */
  readonly limit?: number;
}

/** True where no settled entry can fit: those are not even read. */
export function isOfUnsettled({ all, states }: EntryFilter): boolean {
  return states ? !states.some(isSettled) : all !== true;
}

/** @param history asked only where nothing else has excluded the entry */
export function fits(entry: Entry, filter: EntryFilter, history: () => readonly Step[]): boolean {
  const { states, operation, profile, actor, since } = filter;
  if (states ? !states.includes(entry.state) : filter.all !== true && isSettled(entry.state)) return false;
  if (operation !== undefined && entry.operation !== operation) return false;
  if (profile !== undefined && entry.profile !== profile) return false;
  if (filter.account !== undefined && !isOfAccount(entry, filter.account)) return false;
  if (since !== undefined && entry.updated_at < since) return false;
  if (!isRelated(entry, filter)) return false;
  return actor === undefined || history().some((step) => step.actor !== null && isActor(step.actor, actor));
}

function isRelated(entry: Entry, { ids, parent, replaces, resource, item }: EntryFilter): boolean {
  return (
    (ids === undefined || ids.includes(entry.id)) &&
    (parent === undefined || entry.parent === parent) &&
    (replaces === undefined || entry.replaces === replaces) &&
    (resource === undefined || resourcesOf(entry).includes(resource)) &&
    (item === undefined || entry.detail.policy_name === item)
  );
}
