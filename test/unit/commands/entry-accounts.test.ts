import { describe, expect, it } from "vitest";
import type { Account } from "../../../src/operations/workbench.ts";
import { EntryAccounts } from "../../../src/commands/journal/entry-accounts.ts";
import { Failure } from "../../../src/errors.ts";
import type { Recovered } from "../../../src/operations/recovery.ts";
import type { Entry } from "../../../src/journal/entry.ts";
import type { SecretOptions } from "../../../src/secrets/destination.ts";
import { entry as anEntry } from "../policy/an-entry.ts";

function numbered(
  to: SecretOptions["to"] = [],
  fails: (number: number) => boolean = () => false,
): { readonly accounts: EntryAccounts; readonly number: (entry: Entry) => Promise<number> } {
  let loaded = 0;
  const accounts = new EntryAccounts(
    async () => {
      loaded += 1;
      if (fails(loaded)) throw new Failure("auth", "no credential");
      return { profile: String(loaded) } as Account;
    },
    { to },
  );
  return { accounts, number: async (entry) => Number((await accounts.of(entry)).profile) };
}

const creation = (id: string, more: Partial<Entry> = {}): Entry =>
  anEntry({ id, operation: "oauth_client.create", state: "unknown", ...more });

async function numbersOf(entries: readonly Entry[], to?: SecretOptions["to"]): Promise<number[]> {
  const { number } = numbered(to);
  const numbers: number[] = [];
  for (const entry of entries) numbers.push(await number(entry));
  return numbers;
}

function refused(entry: Entry, status = 401): Recovered {
  return { entry, failure: new Failure("outcome_unknown", "refused", { problem: { status } }) };
}

const profilePlace = { kind: "profile", name: "prod", profileId: "p" } as const;
const filePlace = { kind: "file", path: "/f", format: "text" } as unknown as NonNullable<Entry["destination"]>;

describe("an account", () => {
  it.each<[string, Partial<Entry>]>([
    ["another profile", { profile: "other" }],
    ["another profile of the same name", { profile_id: "other" }],
    ["another address", { base_url: "https://other.example" }],
    ["another organization", { organization_id: "other" }],
    ["another client", { principal: "other" }],
    ["another version of the service", { service_version: "2000-01-01" }],
  ])("is not shared with an entry of %s", async (_what, difference) => {
    expect(await numbersOf([creation("a"), creation("b"), creation("c", difference), creation("d")])).toEqual([
      1, 1, 2, 1,
    ]);
  });

  it.each<[string, Partial<Entry>]>([
    ["a rotation", { operation: "oauth_client.rotate" }],
    ["a rotation of a key", { operation: "access_key.rotate" }],
    ["a revocation", { operation: "oauth_client.revoke" }],
    ["a revocation of a key", { operation: "access_key.revoke" }],
    ["a creation for a profile", { destination: profilePlace }],
  ])("is not reused after %s, which has its own", async (_what, more) => {
    expect(await numbersOf([creation("a"), creation("b", more), creation("c"), creation("d")])).toEqual([1, 2, 3, 3]);
  });

  it.each<[string, Partial<Entry>]>([
    ["that was never sent", { state: "open", attempts: 0 }],
    ["that was delayed", { state: "open", detail: { in_flight: false } }],
    ["whose secret is lost", { state: "secret_lost" }],
    ["whose secret is kept", { state: "undelivered" }],
    ["that is pending", { state: "pending" }],
  ])("of an entry %s is its own, and others keep theirs", async (_what, more) => {
    expect(await numbersOf([creation("a"), creation("b", more), creation("c")])).toEqual([1, 2, 1]);
  });

  it.each<[string, Partial<Entry>]>([
    ["whose request may have arrived", { state: "open", attempts: 1, detail: { in_flight: true } }],
    ["of a key", { operation: "access_key.create" }],
    ["for a file", { destination: filePlace }],
  ])("is shared by a creation %s", async (_what, more) => {
    expect(await numbersOf([creation("a"), creation("b", more), creation("c")])).toEqual([1, 1, 1]);
  });

  it("is not shared if a requested secret goes to a profile", async () => {
    expect(await numbersOf([creation("a"), creation("b")], [{ kind: "profile", name: "prod" }])).toEqual([1, 2]);
  });

  it("that could not be loaded is loaded again", async () => {
    const { accounts, number } = numbered([], (loaded) => loaded === 1);
    await expect(accounts.of(creation("a"))).rejects.toThrow("no credential");
    expect(await number(creation("b"))).toBe(2);
  });
});

describe("a creation that was refused (401)", () => {
  const [a, b, c] = [creation("a"), creation("b"), creation("c")];

  it("is sent again with a new account if others used the same one", async () => {
    const { accounts, number } = numbered();
    for (const entry of [a, b, c]) await accounts.of(entry);
    expect(accounts.retryWithOwnAccount(refused(a))).toBe(true);
    expect(await number(a)).toBe(2);
    expect(await number(creation("d"))).toBe(3);
    // The second creation was in progress with the old account, so it gets an account of its own.
    expect(accounts.retryWithOwnAccount(refused(b))).toBe(true);
    expect(await number(b)).toBe(4);
    expect(await number(creation("e"))).toBe(3);
  });

  it("is not sent again if no other entry used its account, which is then discarded", async () => {
    const { accounts, number } = numbered();
    await accounts.of(a);
    expect(accounts.retryWithOwnAccount(refused(a))).toBe(false);
    expect(await number(b)).toBe(2);
  });

  it("is sent again once; if that is refused too, no other is sent again", async () => {
    const { accounts } = numbered();
    for (const entry of [a, b]) await accounts.of(entry);
    expect(accounts.retryWithOwnAccount(refused(a))).toBe(true);
    await accounts.of(a);
    expect(accounts.retryWithOwnAccount(refused(a))).toBe(false);
    expect(accounts.retryWithOwnAccount(refused(b))).toBe(false);
  });

  it.each([403, 404, 409, 429, 503])("is not repeated after it ended with %i", async (status) => {
    const { accounts, number } = numbered();
    for (const entry of [a, b]) await accounts.of(entry);
    expect(accounts.retryWithOwnAccount(refused(a, status))).toBe(false);
    expect(accounts.retryWithOwnAccount({ entry: b })).toBe(false);
    expect(await number(c)).toBe(1);
  });

  it.each(["secret_lost", "refused", "undelivered"] as const)("is not repeated if its state is %s", async (state) => {
    const { accounts } = numbered();
    for (const entry of [a, b]) await accounts.of(entry);
    expect(accounts.retryWithOwnAccount(refused({ ...a, state }))).toBe(false);
  });
});
