// One run of the model: the program's home, the service, and what must hold between them after every step and in the end.
// What a person was told and has in hand is compared with what the service holds.
import { readdirSync, readFileSync } from "node:fs";
import { filesWithSecrets } from "../crash/client-audit.ts";
import { Account, type HeldClient } from "../support/account.ts";
import { readJournal, type ReadEntry, unsettledIn } from "../support/journal-file.ts";
import { type Ended, Home } from "../support/program.ts";
import type { Service } from "../support/service.ts";
import { killedAt } from "../support/strace.ts";
import { isMissing } from "../support/tools.mjs";

/** What goes wrong during a command: a fault of the service, or the n-th of a system call, which kills it. */
export interface Trouble {
  readonly fault?: string;
  readonly kill?: { readonly call: string; readonly nth: number };
}

interface HeldKey {
  readonly id: string;
  readonly name: string;
  readonly status: string;
}

export class AccountRun {
  readonly account: Account;
  readonly home: Home;
  readonly serviceAccount: string;
  /** Clients and keys that a person asked to go, or to be replaced, whatever came of it. */
  readonly givenUp = new Set<string>();
  /** Clients that were once live with their secret in a file. */
  readonly delivered = new Set<string>();
  readonly counts = { steps: 0, kills: 0, faults: 0 };
  /** Secrets that standard output took, where no other place was left: the person has them. */
  readonly #printed: string[] = [];
  #number = 0;
  #metRequests = 0;

  constructor(service: Service) {
    const { us } = service;
    this.account = new Account(service);
    this.serviceAccount = us.service_account_id;
    this.home = new Home({
      ...service.env,
      INTEG_TOKEN_ENDPOINT: us.token_endpoint,
      INTEG_ACCESS_TOKEN: us.access_token,
      INTEG_RETRY_FOR: "0",
    });
  }

  /** A name that no step used before. */
  fresh(kind: string): string {
    return `${kind}-${(this.#number += 1)}`;
  }

  journal(): ReadEntry[] {
    return readJournal(this.home.path("state", "journal.ndjson"));
  }

  /** Runs a command in its trouble, and looks whether all is true afterwards. */
  async step(words: readonly string[], { fault, kill }: Trouble = {}): Promise<Ended> {
    this.counts.steps += 1;
    if (fault !== undefined) {
      this.counts.faults += 1;
      await this.account.service.fault(fault);
    }
    const under = kill && !isMissing("strace") ? killedAt({ ...kill, text: "" }) : undefined;
    const ended = await this.home.integ(words, under ? { under } : {});
    this.#printed.push(...(ended.stdout.match(/sbx_us_cs_[0-9a-f]{32}/g) ?? []));
    if (ended.signal === "SIGKILL" || ended.code === 137) this.counts.kills += 1;
    await this.#audit(`integ ${words.join(" ")} (${fault ?? JSON.stringify(kill ?? "no trouble")}) → ${ended.code}`);
    // The log of requests goes with the faults.
    await this.account.service.calm();
    this.#metRequests = 0;
    return ended;
  }

  async #audit(where: string): Promise<void> {
    const entries = this.journal();
    const clients = await this.account.clients();
    const creations = (await this.account.creations()).slice(this.#metRequests);
    for (const { idempotency_key, body } of creations)
      if (!entries.some((entry) => entry.idempotency_key === idempotency_key && entry.request_text === body))
        throw new Error(`lost key: the service met ${idempotency_key}, the journal does not have it, after ${where}`);
    const keys = clients.map(({ idempotency_key }) => idempotency_key).filter((key) => key !== null);
    if (new Set(keys).size !== keys.length) throw new Error(`duplicate: one key, two clients, after ${where}`);
    this.#compareEntries(entries, clients, where);
    await this.#compareDelivered(clients, where);
  }

  /** What the journal calls done is so at the service, under the same key. */
  #compareEntries(entries: readonly ReadEntry[], clients: readonly HeldClient[], where: string): void {
    for (const { id, operation, state, resource_id, idempotency_key } of entries) {
      if (operation !== "oauth_client.create" || state !== "done") continue;
      const client = clients.find((one) => one.id === resource_id);
      if (client?.idempotency_key !== idempotency_key)
        throw new Error(`entry ${id} is done, and the service holds no ${resource_id} under its key, after ${where}`);
      if (client.status !== "active" && !this.givenUp.has(client.id))
        throw new Error(`entry ${id} is done, nobody gave ${client.id} up, and it is ${client.status}, after ${where}`);
    }
  }

  async #compareDelivered(clients: readonly HeldClient[], where: string): Promise<void> {
    for (const { id, status } of clients)
      if (this.delivered.has(id) && status !== "active" && !this.givenUp.has(id))
        throw new Error(`${id} had its secret delivered and is ${status} now, after ${where}`);
    for (const id of await this.opened()) this.delivered.add(id);
  }

  secrets(): string[] {
    const files = readdirSync(this.home.folder).filter((name) => /^(client|key)-\d+$/.test(name));
    return [...this.#printed, ...files.map((name) => readFileSync(this.home.path(name), "utf8").trimEnd())];
  }

  /** Live clients that a delivered secret opens. */
  async opened(): Promise<string[]> {
    const secrets = this.secrets().filter((secret) => secret.includes("_cs_"));
    const found: string[] = [];
    for (const { id, client_id } of await this.account.live()) {
      if (client_id === null) continue;
      const opens = await Promise.all(secrets.map((secret) => this.account.opens(client_id, secret)));
      if (opens.includes(true)) found.push(id);
    }
    return found;
  }

  async keys(): Promise<HeldKey[]> {
    return (await this.account.service.control("GET", "/access_keys")) as HeldKey[];
  }

  /** Recovers as a person would, and compares once more: nothing is left, nothing is lost, nothing is where it must not be. */
  async end({ waits }: { waits: boolean }): Promise<void> {
    if (this.journal().length > 0) await this.#recoverAll(waits);
    const left = unsettledIn(this.journal());
    if (left.length > 0)
      throw new Error(
        `left unsettled: ${JSON.stringify(left.map(({ id, operation, state }) => [id, operation, state]))}`,
      );
    const abandoned = this.journal()
      .filter(({ state }) => state === "abandoned")
      .map((entry) => entry.idempotency_key);
    const opened = await this.opened();
    for (const { id, idempotency_key } of await this.account.live())
      if (!opened.includes(id) && !abandoned.includes(idempotency_key) && !this.givenUp.has(id))
        throw new Error(`${id} is live under ${idempotency_key}, and its secret is lost`);
    const verified = await this.home.integ(["journal", "verify"]);
    if (verified.code !== 0) throw new Error(`journal verify: ${verified.stdout}${verified.stderr}`);
    const strayed = filesWithSecrets(this.home.folder).filter((file) => !/^(client|key)-\d+$/.test(file));
    if (strayed.length > 0) throw new Error(`a secret, or room for one, stands in ${strayed.join(", ")}`);
  }

  async #recoverAll(waits: boolean): Promise<void> {
    const needsWait = unsettledIn(this.journal()).some(({ operation }) => operation.startsWith("access_key."));
    if (waits && needsWait) await this.account.service.settle();
    const ends: string[] = [];
    for (let round = 0; round < 4 && (round === 0 || unsettledIn(this.journal()).length > 0); round += 1) {
      for (const { id } of this.journal().filter(({ state }) => state === "undelivered"))
        await this.step(["journal", "claim", id, "--secret-file", this.fresh("client")]);
      const recover = ["journal", "recover", "--replace-lost-secret", "--yes"];
      const recovered = await this.step(recover);
      ends.push(`${recovered.code}: ${recovered.stderr}`);
      // What the service refused as too early is recovered by the command that the program shows: it waits until then.
      const patient = /^ +Next: integ (journal recover \S+ --retry-for \S+)$/m.exec(recovered.stderr)?.[1];
      if (recovered.code === 6 && patient !== undefined) await this.step([...patient.split(" "), "--yes"]);
      // A command is not remembered: a person names a place, as the message says.
      for (const { id, parent, destination } of unsettledIn(this.journal()))
        if (destination?.kind === "command")
          await this.step([...recover, parent ?? id, "--secret-file", this.fresh("client")]);
    }
    if (unsettledIn(this.journal()).length > 0) throw new Error(`recovery does not end: ${ends.join("\n")}`);
  }
}
