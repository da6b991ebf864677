// `--secret-to`: the interface of secret stores, and the delivery that they share.
import type { Transport } from "../api/http/exchange.ts";
import { Failure, onFailure } from "../errors.ts";
import { flags } from "../next-step.ts";
import type { Environment } from "../profiles/resolution.ts";
import type { SecretDigests } from "../journal/keys.ts";
import { isSameSecret, overwriteFound } from "./delivered-secret.ts";
import {
  type Delivery,
  type DestinationOption,
  type Found,
  hasContentId,
  contentId,
  type OneTimeSecret,
  type Preparation,
  type RecordOf,
  type RememberedDestination,
  type SingleDestinationPlace,
  type SingleRecord,
  withoutLastNewline,
} from "./destination.ts";
import type { MachineId } from "../disk/machine-id.ts";
import { renderSecret } from "./secret-format.ts";

/** Facts besides the address that a later process needs. The journal stores them, so none is secret. */
export type StoreFacts = Readonly<Record<string, string>>;

export interface Store {
  /** True for GitHub, which returns no secrets: only a version identifies the content. */
  readonly isUnreadable?: boolean;
  /** The normalized address without `<scheme>:`; equal for the same place. */
  readonly address: string;
  /**
   * Reads the store's settings, without a request.
   * @returns facts that identify the place, such as the server; a later process with other facts is refused
   * @throws Failure `usage` or `auth` for missing settings
   */
  check(): Promise<StoreFacts>;
  /**
   * Checks, as far as the store allows, that a write would succeed.
   * @param isShared true if the secret also goes to another field of the place
   * @returns more facts, such as the engine's mount
   * @throws Failure `usage`, `auth`, `rate_limited` or `unreachable`
   */
  prepare(facts: StoreFacts, isShared?: boolean): Promise<StoreFacts>;
  look(facts: StoreFacts): Promise<Found>;
  /**
   * After a lost response, reads the store if possible.
   * @param over the content that was read; Vault, GitHub and Kubernetes compare it before they write
   * @returns false if the content has changed: nothing was written; the new version if the store returns no secrets
   */
  write(text: string, facts: StoreFacts, over: Found): Promise<boolean | Found>;
}

/** @param choice.ca the only trusted certificate authorities (PEM) */
export type OpenHttp = (choice: { readonly ca?: string | undefined }) => Promise<Transport>;

export interface StoreTools {
  readonly env: Environment;
  readonly http: OpenHttp;
  readonly sleep: (ms: number) => Promise<void>;
  readonly signal?: AbortSignal;
}

export type OpenStore = (address: string, tools: StoreTools) => Store;

export abstract class AddressedStore<Address> {
  readonly address: string;
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

export interface StoreTarget extends Omit<Extract<DestinationOption, { kind: "store" }>, "kind" | "to"> {
  readonly scheme: string;
  readonly store: Store;
}

export interface StoreContext extends Pick<StoreTools, "sleep"> {
  readonly digests: SecretDigests;
  readonly machine: MachineId;
}

class StoreDestination implements SingleDestinationPlace {
  readonly isStdout = false;
  record: RecordOf<"store">;
  readonly #target: StoreTarget;
  readonly #context: StoreContext;
  #isConsented = false;

  constructor(target: StoreTarget, context: StoreContext) {
    const { scheme, store, facts = {}, consent } = target;
    this.#target = target;
    this.#context = context;
    this.record = { kind: "store", to: `${scheme}:${store.address}`, facts, consent };
  }

  get #isLocal(): boolean {
    return this.#target.scheme === "keychain";
  }

  async check(): Promise<RecordOf<"store">> {
    this.#addFacts(await checkedFacts(this.#target, this.record));
    if (this.#isLocal) this.record = { ...this.record, machine: this.#context.machine.find() };
    if (this.#target.force === true && !this.#isConsented) await this.#consent();
    return this.record;
  }

  /** `--force` covers only the content at the first check, and nothing if the store cannot be read then. */
  async #consent(): Promise<void> {
    const { store } = this.#target;
    this.#isConsented = true;
    try {
      this.#addFacts(await store.prepare(this.record.facts));
      const found = await store.look(this.record.facts);
      this.record = { ...this.record, consent: contentId(found, this.#context.digests) };
    } catch (error) {
      // If the cause lasts, `prepare` reports it.
      if (!(error instanceof Failure)) throw error;
    }
  }

  async prepare(
    _work: string,
    { may, places = [] }: Pick<Preparation, "may" | "places"> = {},
  ): Promise<RecordOf<"store">> {
    const { store } = this.#target;
    await this.check();
    const { to } = this.record;
    const isBeside = (at: SingleRecord): boolean =>
      at.kind === "store" && at.to !== to && withoutField(at.to) === withoutField(to);
    this.#addFacts(await store.prepare(this.record.facts, places.some(isBeside)));
    if (may) await may(this.record, await store.look(this.record.facts));
    if (this.#isLocal) this.record = { ...this.record, machine: this.#context.machine.make() };
    return this.record;
  }

  #addFacts(facts: StoreFacts): void {
    this.record = { ...this.record, facts: { ...this.record.facts, ...facts } };
  }

  async deliver(oneTimeSecret: OneTimeSecret, { origin, record, may }: Delivery<SingleRecord>): Promise<void> {
    const { store } = this.#target;
    const { digests, sleep } = this.#context;
    const secret = renderSecret(oneTimeSecret, "raw", origin);
    const { to, facts } = this.record;
    const before = this.record.proof;
    const note = async (proof: string | undefined): Promise<void> => {
      this.record = { ...this.record, proof };
      await record(this.record);
    };
    let read: Found;
    try {
      await overwriteFound(to, {
        look: () => store.look(facts),
        may: async (found) => {
          await may(this.record, found).catch(asConflict);
          // After a crash, only this record shows that a change of a write-only store may be integ's own.
          await note(
            store.isUnreadable ? `after ${"version" in found ? found.version : "nothing"}` : digests.of(secret),
          );
        },
        write: async (found) => {
          const written = await store.write(secret, facts, found);
          // Nothing was written, so the earlier proof is still true.
          if (written === false) await note(before);
          if (typeof written === "object") await note(contentId(written, digests));
          return written !== false;
        },
        sleep,
      });
      if (store.isUnreadable) return;
      read = await store.look(facts);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      throw new Failure(error.kind === "conflict" ? "conflict" : "undelivered", error.message, error.details);
    }
    if (read.is === "text" && isSameSecret(Buffer.from(read.text), Buffer.from(secret))) return;
    throw new Failure("undelivered", `${to} contains something other than the secret that was written there.`);
  }

  async release(): Promise<void> {}
}

function withoutField(to: string): string {
  return to.slice(0, to.lastIndexOf("#") + 1);
}

/** The preparation allowed the write, so a later refusal means that the content has changed. */
function asConflict(error: unknown): never {
  if (!(error instanceof Failure)) throw error;
  throw new Failure("conflict", error.message, error.details);
}

/** @throws Failure `usage` if the environment now selects another place than the journal */
async function checkedFacts({ store }: StoreTarget, { to, facts }: RecordOf<"store">): Promise<StoreFacts> {
  const now = await store.check();
  const other = otherFact(facts, now);
  if (other === undefined) return now;
  throw new Failure("usage", `${to}: the ${other} was ${facts[other]}, and is ${now[other]} now.`, {
    meaning: "Nothing was sent. The secret goes to its original destination only.",
    hint: `Set the environment so that the ${other} is ${facts[other]} again.`,
  });
}

function otherFact(facts: StoreFacts, now: StoreFacts): string | undefined {
  return Object.keys(now).find((name) => facts[name] !== undefined && facts[name] !== now[name]);
}

export function storeDestination(target: StoreTarget, context: StoreContext): SingleDestinationPlace {
  return new StoreDestination(target, context);
}

export function rememberedStore(
  record: RecordOf<"store">,
  { open, digests }: { readonly open: () => Promise<StoreTarget>; readonly digests: SecretDigests },
): RememberedDestination {
  const findOwn = async (): Promise<Found | undefined> => {
    // Without a proof, integ wrote no secret.
    if (record.proof === undefined) return undefined;
    const target = await open();
    const found = await target.store.look({ ...record.facts, ...(await checkedFacts(target, record)) });
    return hasContentId(found, record.proof, digests) ? found : undefined;
  };
  return {
    // If the store's settings are missing, the servers cannot be compared.
    isOfOtherServer: () =>
      open()
        .then(async ({ store }) => otherFact(record.facts, await store.check()) !== undefined)
        .catch(onFailure(() => false)),
    completeDelivery: async () => (await findOwn()) !== undefined,
    removeReserve: () => {},
    reread: async () => {
      const found = await findOwn();
      return found?.is === "text" ? withoutLastNewline(found.text) : undefined;
    },
  };
}
