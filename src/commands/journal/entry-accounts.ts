// The accounts that a recovery uses to finish its entries.
import type { Recovered } from "../../operations/recovery.ts";
import type { Account } from "../../operations/workbench.ts";
import { type Entry, mayHaveArrived } from "../../journal/entry.ts";
import { placesOf, type SecretOptions } from "../../secrets/destination.ts";

interface SharedAccount {
  readonly account: Promise<Account>;
  /** The number of entries that it was used for. */
  uses: number;
}

/**
 * Shares one credential and one token between all interrupted creations of an account, so that a thousand creations do not
 * request a thousand tokens. Other work gets a new account, and so does a creation after it.
 */
export class EntryAccounts {
  readonly #find: (entry: Entry) => Promise<Account>;
  readonly #asked: SecretOptions;
  /** Shared accounts by the facts that entries of one account have in common. */
  readonly #shared = new Map<string, SharedAccount>();
  /** The shared account that each entry was given. */
  readonly #given = new Map<string, SharedAccount>();
  /** Entries that the service refused with a shared account. */
  readonly #withOwnAccount = new Set<string>();
  /** Accounts that the service refused with a new token too. */
  readonly #refused = new Set<string>();

  /**
   * @param find returns a new account without a token; throws Failure if there is none
   * @param asked the typed destinations, which replace the entries' own
   */
  constructor(find: (entry: Entry) => Promise<Account>, asked: SecretOptions) {
    this.#find = find;
    this.#asked = asked;
  }

  of(entry: Entry): Promise<Account> {
    // Only these survive a refusal of a stale token: they can be sent again with another account.
    if (keepsCredentials(entry, this.#asked) && mayHaveArrived(entry) && !this.#withOwnAccount.has(entry.id))
      return this.#sharedOf(entry);
    // This work may change a credential: later entries need a new account.
    if (!keepsCredentials(entry, this.#asked)) this.#shared.clear();
    return this.#find(entry);
  }

  #sharedOf(entry: Entry): Promise<Account> {
    const name = nameOfAccount(entry);
    const shared = this.#shared.get(name) ?? { account: this.#find(entry), uses: 0 };
    shared.uses += 1;
    this.#shared.set(name, shared);
    this.#given.set(entry.id, shared);
    shared.account.catch(() => this.#shared.delete(name));
    return shared.account;
  }

  /**
   * Decides after a 401: a shared token may have expired early, or another process may have rotated the secret.
   * @returns true to send the creation again, with a new account
   */
  retryWithOwnAccount({ entry, failure }: Recovered): boolean {
    if (failure?.details.problem?.status !== 401 || !mayHaveArrived(entry)) return false;
    const name = nameOfAccount(entry);
    const shared = this.#given.get(entry.id);
    if (this.#shared.get(name) === shared) this.#shared.delete(name);
    if (this.#withOwnAccount.has(entry.id)) this.#refused.add(name);
    if (shared === undefined || shared.uses === 1 || this.#withOwnAccount.has(entry.id) || this.#refused.has(name))
      return false;
    this.#withOwnAccount.add(entry.id);
    return true;
  }
}

/** A creation that does not change a profile's credential. */
function keepsCredentials({ operation, destination }: Entry, asked: SecretOptions): boolean {
  const places = [...asked.to, ...placesOf(destination)];
  return operation.endsWith(".create") && places.every(({ kind }) => kind !== "profile");
}

function nameOfAccount(entry: Entry): string {
  const { profile, profile_id, base_url, organization_id, principal, service_version } = entry;
  return JSON.stringify([profile, profile_id, base_url, organization_id, principal, service_version]);
}
