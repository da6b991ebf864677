// Who the entries of one recovery are finished as.
import type { Recovered } from "../../operations/recovery.ts";
import type { Account } from "../../operations/workbench.ts";
import { type Entry, mayHaveArrived } from "../../journal/entry.ts";
import { placesOf, type SecretOptions } from "../../secrets/destination.ts";

interface SharedAccount {
  readonly account: Promise<Account>;
  /** How many entries are finished with it. */
  uses: number;
}

/**
 * The credential is asked for, and a token fetched, once for all creations that are sent again as the same: not a thousand times,
 * if so many were interrupted. Any other work asks for its own, as does a creation that comes after it.
 */
export class EntryAccounts {
  readonly #find: (entry: Entry) => Promise<Account>;
  readonly #asked: SecretOptions;
  /** By what entries have in common that are finished as the same. */
  readonly #shared = new Map<string, SharedAccount>();
  /** Which of them an entry was given. */
  readonly #given = new Map<string, SharedAccount>();
  /** Entries that were refused with a shared account. */
  readonly #apart = new Set<string>();
  /** As whom an entry was refused with an account of its own, too: the credential is not accepted. */
  readonly #refused = new Set<string>();

  /**
   * @param find gives an account that has asked for nothing yet; throws Failure if there is none
   * @param asked where secrets go, if not where the entries say
   */
  constructor(find: (entry: Entry) => Promise<Account>, asked: SecretOptions) {
    this.#find = find;
    this.#asked = asked;
  }

  of(entry: Entry): Promise<Account> {
    // What is not settled by a refusal can wait for another token; anything else is not tried with one that others had.
    if (isPlain(entry, this.#asked) && mayHaveArrived(entry) && !this.#apart.has(entry.id))
      return this.#sharedOf(entry);
    // No other entry is worked on while a credential may change: the next one asks for what is there then.
    if (!isPlain(entry, this.#asked)) this.#shared.clear();
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
   * What others used too may be over since it was asked for: a token before its time, a secret that another process rotated.
   * @returns true if a creation that the service refused (401) is sent again, with an account of its own
   */
  isSentAgain({ entry, failure }: Recovered): boolean {
    if (failure?.details.problem?.status !== 401 || !mayHaveArrived(entry)) return false;
    const name = nameOfAccount(entry);
    const shared = this.#given.get(entry.id);
    if (this.#shared.get(name) === shared) this.#shared.delete(name);
    if (this.#apart.has(entry.id)) this.#refused.add(name);
    if (shared === undefined || shared.uses === 1 || this.#apart.has(entry.id) || this.#refused.has(name)) return false;
    this.#apart.add(entry.id);
    return true;
  }
}

/** A creation that leaves each profile the credential that it has. */
function isPlain({ operation, destination }: Entry, asked: SecretOptions): boolean {
  const places = [...asked.to, ...(destination ? placesOf(destination) : [])];
  return operation.endsWith(".create") && places.every(({ kind }) => kind !== "profile");
}

function nameOfAccount(entry: Entry): string {
  const { profile, profile_id, base_url, organization_id, principal, service_version } = entry;
  return JSON.stringify([profile, profile_id, base_url, organization_id, principal, service_version]);
}
