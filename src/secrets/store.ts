// `--secret-to`: what a secret store has to know, and what all stores share: the record in the journal, the digest before the
// delivery, reading back, and the look after a crash.
import type { Transport } from "../api/http/exchange.ts";
import { Failure } from "../errors.ts";
import { flags } from "../next-step.ts";
import type { Environment } from "../profiles/resolution.ts";
import { isDelivered, isSameSecret, proofOf } from "./delivered-secret.ts";
import type {
  Delivery,
  DestinationProgress,
  OneTimeSecret,
  Preparation,
  ProofKeys,
  RecordOf,
  RememberedDestination,
  SingleDestinationPlace,
  SingleRecord,
} from "./destination.ts";
import { renderSecret } from "./secret-format.ts";

/** What a later process must know of a place besides its address. It is in the journal: no secret, no token. */
export type StoreFacts = Readonly<Record<string, string>>;

/** Another destination of the same secret in the same kind of store: what its write changes is integ's own change. */
export interface StoreNeighbour extends Pick<DestinationProgress, "state"> {
  readonly address: string;
  readonly facts: StoreFacts;
}

export interface Store {
  /** The address in its normal form (what follows `<scheme>:`): the same place has the same text. */
  readonly address: string;
  /**
   * Reads the address and the environment, and sends nothing.
   * @returns what else decides where the secret goes, such as the server: a later process that finds another one is refused
   * @throws Failure `usage` or `auth` if something is missing
   */
  check(): Promise<StoreFacts>;
  /**
   * Asks the store whether a write will succeed; writes nothing.
   * @param facts those of `check`, and those of an earlier `prepare` if the write is still to be based on what it saw
   * @param beside what the same delivery writes there too
   * @returns facts to add, such as the version that is there now
   * @throws Failure `usage`, `auth` or `unreachable`
   */
  prepare(facts: StoreFacts, beside: readonly StoreNeighbour[]): Promise<StoreFacts>;
  /**
   * Facts to change because of what the same delivery wrote there meanwhile. Absent if no write of it can change anything
   * for another.
   */
  rebase?(text: string, facts: StoreFacts, beside: readonly StoreNeighbour[]): Promise<StoreFacts>;
  /**
   * Writes exactly this text, and returns when the store has it. A lost response is settled here if reading can say.
   * @throws Failure `conflict` if the place changed since `prepare`: nothing was overwritten
   */
  write(text: string, facts: StoreFacts): Promise<void>;
  /** What is there; undefined: nothing. Absent if the store cannot be read. */
  read?(facts: StoreFacts): Promise<string | undefined>;
}

/** Opens integ's own HTTP client. @param choice.ca certificates (PEM) of the only authorities that are trusted */
export type OpenHttp = (choice: { readonly ca?: string | undefined }) => Promise<Transport>;

export interface StoreTools {
  readonly env: Environment;
  readonly http: OpenHttp;
  /** Waits before something is sent again; ends with the signal's reason. */
  readonly sleep: (ms: number) => Promise<void>;
  /** Aborted: a request ends with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Gets what a tool prints that is run for it. */
  readonly onStderr: (chunk: Uint8Array) => void;
}

/** @throws Failure `usage` for what is not an address of that store */
export type OpenStore = (address: string, tools: StoreTools) => Store;

/** What stores have alike: an address with parts, its normal form, and how messages name it. */
export abstract class AddressedStore<Address> {
  readonly address: string;
  /** As it is typed. */
  readonly name: string;
  protected readonly at: Address;
  protected readonly tools: StoreTools;

  constructor(at: Address, { scheme, address, tools }: { scheme: string; address: string; tools: StoreTools }) {
    this.at = at;
    this.address = address;
    this.name = `${flags.secretTo} ${scheme}:${address}`;
    this.tools = tools;
  }
}

export interface StoreTarget {
  readonly scheme: string;
  readonly store: Store;
  /** What the journal remembers of an earlier process. */
  readonly before?: Pick<RecordOf<"store">, "facts" | "proof"> | undefined;
  readonly keys?: ProofKeys | undefined;
}

class StoreDestination implements SingleDestinationPlace {
  readonly isStdout = false;
  record: RecordOf<"store">;
  readonly #target: StoreTarget;
  /**
   * The write is based on what was seen there: in this process, or by one that may have written. What another changed
   * since then is not overwritten.
   */
  #isBased: boolean;

  constructor(target: StoreTarget) {
    const { scheme, store, before } = target;
    this.#target = target;
    this.#isBased = before?.proof !== undefined;
    this.record = { facts: {}, ...before, kind: "store", to: `${scheme}:${store.address}` };
  }

  async check(): Promise<RecordOf<"store">> {
    this.#learn({ ...this.record.facts, ...(await checkedFacts(this.#target, this.record)) });
    return this.record;
  }

  async prepare(_work: string, { beside }: Pick<Preparation, "beside"> = {}): Promise<RecordOf<"store">> {
    const place = await checkedFacts(this.#target, this.record);
    const known = this.#isBased ? { ...this.record.facts, ...place } : place;
    this.#learn({ ...known, ...(await this.#target.store.prepare(known, this.#neighbours(beside))) });
    this.#isBased = true;
    return this.record;
  }

  #neighbours(beside: readonly DestinationProgress[] = []): StoreNeighbour[] {
    const start = `${this.#target.scheme}:`;
    return beside.flatMap(({ state, at }) =>
      at.kind === "store" && at.to.startsWith(start)
        ? [{ state, address: at.to.slice(start.length), facts: at.facts }]
        : [],
    );
  }

  #learn(facts: StoreFacts): void {
    this.record = { ...this.record, facts };
  }

  async deliver(brought: OneTimeSecret, { origin, beside, record }: Delivery<SingleRecord>): Promise<void> {
    const { store, keys } = this.#target;
    const secret = renderSecret(brought, "raw", origin);
    const { to } = this.record;
    try {
      const changed = await store.rebase?.(secret, this.record.facts, this.#neighbours(beside));
      this.#learn({ ...this.record.facts, ...changed });
      const { facts } = this.record;
      if (keys !== undefined) {
        this.record = { ...this.record, proof: await proofOf(secret, { entry: origin.entry, keys }) };
        await record(this.record);
      }
      await store.write(secret, facts);
      if (store.read === undefined) return;
      const found = await store.read(facts);
      if (found !== undefined && isSameSecret(Buffer.from(found), Buffer.from(secret))) return;
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      throw new Failure(error.kind === "conflict" ? "conflict" : "undelivered", error.message, error.details);
    }
    throw new Failure("undelivered", `${to} contains something other than the secret that was written there.`);
  }

  async release(): Promise<void> {}
}

/**
 * @returns what decides now where the secret goes
 * @throws Failure `usage` if the environment leads to another place than the journal remembers
 */
async function checkedFacts({ store }: StoreTarget, { to, facts }: RecordOf<"store">): Promise<StoreFacts> {
  const now = await store.check();
  const other = Object.keys(now).find((name) => facts[name] !== undefined && facts[name] !== now[name]);
  if (other === undefined) return now;
  throw new Failure("usage", `${to}: the ${other} was ${facts[other]}, and is ${now[other]} now.`, {
    meaning: "Nothing was sent. The secret goes to its original destination only.",
    hint: `Set the environment so that the ${other} is ${facts[other]} again.`,
  });
}

export function storeDestination(target: StoreTarget): SingleDestinationPlace {
  return new StoreDestination(target);
}

/** A store that a journal entry remembers. @param open throws if the store cannot be asked */
export function rememberedStore(
  record: RecordOf<"store">,
  { open, keys }: { readonly open: () => Promise<StoreTarget>; readonly keys: ProofKeys | undefined },
): RememberedDestination {
  const found = async (): Promise<string | undefined> => {
    // Nothing was written before the digest was in the journal.
    if (record.proof === undefined) return undefined;
    const target = await open();
    const text = await target.store.read?.({ ...record.facts, ...(await checkedFacts(target, record)) });
    return text !== undefined && isDelivered(text, record.proof, keys) === true ? text : undefined;
  };
  return {
    completeDelivery: async () => (await found()) !== undefined,
    removeReserve: () => {},
    reread: found,
  };
}
