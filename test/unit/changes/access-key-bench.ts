// A workbench whose service, disk and places fail as a test wants, and which writes down what was done, in order.
import type { SecretAnswer } from "../../../src/api/access-keys.ts";
import type { Attempt } from "../../../src/api/http/attempt.ts";
import type { Rows } from "../../../src/api/json/unknown-list.ts";
import { DiskTrust } from "../../../src/changes/disk-trust.ts";
import type { Workbench } from "../../../src/changes/workbench.ts";
import { Failure } from "../../../src/errors.ts";
import type { Entry } from "../../../src/journal/entry.ts";
import type { EntryLease, Journal } from "../../../src/journal/journal.ts";
import type { Destination, OneTimeSecret } from "../../../src/secrets/destination.ts";

export interface Faults {
  /** Names of steps that fail: `record:1` the first record, `keep`, `deliver`, `reserve`, `prepare`, `destroy`. */
  readonly failing?: readonly string[];
  /** Answers to creations, in order; the last one again and again. */
  readonly answers?: readonly Attempt<SecretAnswer>[];
  readonly rows?: Rows;
  readonly retryForMs?: number;
}

export function answered(secret: string | undefined = "s3cr3t"): Attempt<SecretAnswer> {
  const key = { id: "ak_1", name: "ci", createdByUserId: "user_1" };
  return { kind: "answered", status: 201, value: { key, secret }, text: JSON.stringify({ ...key, secret }) };
}

export class Bench {
  /** Every step in the order in which it was done. */
  readonly steps: string[] = [];
  readonly told: string[] = [];
  readonly kept = new Map<string, OneTimeSecret>();
  readonly delivered: OneTimeSecret[] = [];
  readonly entries: Entry[] = [];
  now = Date.parse("2026-11-21T02:00:00.000Z");
  readonly #faults: Faults;
  #records = 0;
  #posts = 0;

  constructor(faults: Faults = {}) {
    this.#faults = faults;
  }

  get posts(): number {
    return this.#posts;
  }

  #step(name: string): void {
    this.steps.push(name);
    if (this.#faults.failing?.includes(name)) throw new Failure("failed", `no ${name}`);
  }

  get destination(): Destination {
    return {
      isStdout: false,
      check: () => Promise.resolve({ kind: "file", path: "/x", format: "raw", force: false }),
      prepare: async () => {
        this.#step("prepare");
        return { kind: "file", path: "/x", format: "raw", force: false };
      },
      deliver: async (secret) => {
        this.#step("deliver");
        this.delivered.push(secret);
      },
      release: async () => this.#step("release"),
    };
  }

  drive(): EntryLease {
    const record = (): void => {
      this.#records += 1;
      this.#step(`record:${this.#records}`);
    };
    const written = (entry: Entry): Entry => {
      this.entries.splice(0, 1, entry);
      return entry;
    };
    const at = (): string => new Date(this.now).toISOString();
    let entry = {
      id: "1abc",
      operation: "access_key.create",
      state: "open",
      attempts: 0,
      resource_id: null,
      detail: {},
      destination: { kind: "file", path: "/x", format: "raw", force: false },
      method: "POST",
      path: "/api/v1/access-keys",
      profile: "p",
      region: "us",
      request_text: '{"name":"ci"}',
      created_at: new Date(this.now).toISOString(),
      updated_at: new Date(this.now).toISOString(),
      format: 1,
    } as unknown as Entry;
    this.entries.push(entry);
    return {
      get entry() {
        return entry;
      },
      async record(change) {
        record();
        entry = written({ ...entry, ...change, updated_at: at() });
        return entry;
      },
      async release() {},
    };
  }

  get bench(): Workbench {
    const service = {
      accessKeys: {
        create: async () => {
          this.#step("post");
          const { answers = [answered()] } = this.#faults;
          const answer = answers[Math.min(this.#posts, answers.length - 1)]!;
          this.#posts += 1;
          return answer;
        },
        list: async () => ({ kind: "answered", status: 200, value: this.#faults.rows, text: "" }),
      },
    };
    return {
      account: { profile: "p", region: "us", service } as unknown as Workbench["account"],
      journal: { entries: () => this.entries } as unknown as Journal,
      disk: new DiskTrust(),
      retryForMs: this.#faults.retryForMs ?? 60_000,
      clock: {
        now: () => this.now,
        sleep: async (ms) => {
          this.now += ms;
        },
        random: () => 0.5,
        interruption: new AbortController().signal,
        finishing: (work) => work(),
      },
      tell: {
        note: (text) => void this.told.push(text),
        warn: (text) => void this.told.push(text),
        waiting: () => () => {},
        busy: () => () => {},
      },
      secrets: {
        wasDelivered: () => Promise.resolve(this.delivered.length > 0),
        reread: () => Promise.resolve(undefined),
        reserve: async () => this.#step("reserve"),
        keep: async (entry, secret) => {
          this.#step("keep");
          this.kept.set(entry, secret);
        },
        isKept: (entry) => this.kept.has(entry),
        readKept: (entry) => Promise.resolve(this.kept.get(entry)!),
        destroyKept: async (entry) => {
          this.#step("destroy");
          this.kept.delete(entry);
        },
        release: async () => {},
        removeReserve: async () => {},
      },
    };
  }
}
