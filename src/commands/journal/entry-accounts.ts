import type { Recovered } from "../../operations/recovery.ts";
import type { Account } from "../../operations/workbench.ts";
import { type Entry, mayHaveArrived } from "../../journal/entry.ts";
import { placesOf, type SecretOptions } from "../../secrets/destination.ts";

interface SharedAccount {
  readonly account: Promise<Account>;
  uses: number;
}

/**
 * Interrupted creations of one account share a token, because a thousand creations should not request a thousand
 * tokens. After a change that may replace a credential, later creations do not use the earlier token.
 */
export class EntryAccounts {
  readonly #find: (entry: Entry) => Promise<Account>;
  readonly #typed: SecretOptions;
  readonly #shared = new Map<string, SharedAccount>();
  readonly #byEntry = new Map<string, SharedAccount>();
  /** Ids of entries that the service refused with the shared token. */
  readonly #withOwnAccount = new Set<string>();
  /** Names of accounts that the service refused even with a new token. */
  readonly #refused = new Set<string>();

  /** @param find returns a new account without a token */
  constructor(find: (entry: Entry) => Promise<Account>, typed: SecretOptions) {
    this.#find = find;
    this.#typed = typed;
  }

  of(entry: Entry): Promise<Account> {
    // If the service refuses the shared token, such a creation can be sent again with another account.
    if (keepsCredentials(entry, this.#typed) && mayHaveArrived(entry) && !this.#withOwnAccount.has(entry.id))
      return this.#sharedOf(entry);
    if (!keepsCredentials(entry, this.#typed)) this.#shared.clear();
    return this.#find(entry);
  }

  #sharedOf(entry: Entry): Promise<Account> {
    const name = nameOfAccount(entry);
    const shared = this.#shared.get(name) ?? { account: this.#find(entry), uses: 0 };
    shared.uses += 1;
    this.#shared.set(name, shared);
    this.#byEntry.set(entry.id, shared);
    shared.account.catch(() => this.#shared.delete(name));
    return shared.account;
  }

  /**
   * After a 401, gives the entry a new account once: the token may have expired early, or another process may have
   * rotated the secret.
   * @returns true if the creation should be sent again
   */
  retryWithOwnAccount({ entry, failure }: Recovered): boolean {
    if (failure?.details.problem?.status !== 401 || !mayHaveArrived(entry)) return false;
    const name = nameOfAccount(entry);
    const shared = this.#byEntry.get(entry.id);
    if (this.#shared.get(name) === shared) this.#shared.delete(name);
    if (this.#withOwnAccount.has(entry.id)) this.#refused.add(name);
    if (shared === undefined || shared.uses === 1 || this.#withOwnAccount.has(entry.id) || this.#refused.has(name))
      return false;
    this.#withOwnAccount.add(entry.id);
    return true;
  }
}

function keepsCredentials({ operation, destination }: Entry, typed: SecretOptions): boolean {
  const places = [...typed.to, ...placesOf(destination)];
  return operation.endsWith(".create") && places.every(({ kind }) => kind !== "profile");
}

function nameOfAccount(entry: Entry): string {
  const { profile, profile_id, base_url, organization_id, principal, service_version } = entry;
  return JSON.stringify([profile, profile_id, base_url, organization_id, principal, service_version]);
}
