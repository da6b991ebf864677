import { describe, expect, it } from "vitest";
import { type KnownNames, namesFor } from "../../../src/commands/options/known-names.ts";
import type { LiveNames } from "../../../src/completion/values.ts";
import type { Entry } from "../../../src/journal/entry.ts";
import { fits } from "../../../src/journal/lookup.ts";

const made = {
  request_text: "{}",
  state: "done",
  profile: "p",
  base_url: "https://x",
  created_at: "2026-11-18T00:00:00.000Z",
};
const entries = [
  {
    id: "e3",
    operation: "oauth_client.revoke",
    state: "done",
    resource_id: "oac_1",
    created_at: "2026-11-21T00:00:00.000Z",
  },
  {
    id: "e2",
    operation: "access_key.create",
    state: "unknown",
    resource_id: null,
    created_at: "2026-11-20T00:00:00.000Z",
  },
  {
    id: "e1",
    operation: "oauth_client.create",
    request_text: '{"service_account_id":"sa_1","scopes":["entity:read"]}',
    state: "done",
    resource_id: "oac_1",
    created_at: "2026-11-19T00:00:00.000Z",
  },
  { id: "e0", operation: "oauth_client.create", resource_id: "oac_2", ...made },
];

async function complete(
  what: LiveNames,
  { journalPath = "/state/journal.ndjson", profile }: Partial<Pick<KnownNames, "journalPath" | "profile">> = {},
): Promise<{ names: string[]; journals: number }> {
  let journals = 0;
  const names = await namesFor(what, {
    journalPath,
    profile,
    policyText: () => "oauth_clients:\n  reporting: {}\naccess_keys:\n  nightly: {}\n",
    profileNames: () => [{ name: "p", region: "us", base_url: "https://x" }],
    entries: async (filter) => {
      journals += 1;
      return (entries as Entry[]).filter((entry) => fits(entry, filter));
    },
  });
  return { names: names.map(({ value, hint }) => `${value}: ${hint}`), journals };
}

describe("completed names", () => {
  it("are every entry, every unfinished one, and every live resource of the account, the newest first", async () => {
    expect((await complete("entries")).names).toEqual([
      "e3: oauth_client.revoke, oac_1, done, 2026-11-21",
      "e2: access_key.create, unknown, 2026-11-20",
      "e1: oauth_client.create, sa_1, done, 2026-11-19",
      "e0: oauth_client.create, oac_2, done, profile p, 2026-11-18",
    ]);
    expect((await complete("unfinished")).names).toEqual(["e2: access_key.create, unknown, 2026-11-20"]);
    const live = ["oac_2: oauth_client.create, done, 2026-11-18"];
    expect((await complete("clients", { profile: { name: "p" } })).names).toEqual(live);
    expect((await complete("clients", { profile: { name: "q", base_url: "https://x" } })).names).toEqual(live);
    expect((await complete("clients", { profile: { name: "q" } })).names).toEqual([]);
    expect((await complete("keys")).names).toEqual([]);
    expect((await complete("claimable")).names).toEqual([]);
    expect((await complete("accounts")).names).toEqual(["sa_1: undefined"]);
  });

  it("are the stored profiles and the built-in ones, without reading the journal", async () => {
    expect(await complete("profiles")).toEqual({
      names: ["p: us, https://x", "sandbox: us, on this machine", "sandbox-eu: eu, on this machine"],
      journals: 0,
    });
  });

  it("of a policy's items come from its file", async () => {
    expect((await complete("items")).names).toEqual(["reporting: client", "nightly: key"]);
  });

  it.each(["entries", "unfinished", "clients", "keys"] as const)(
    "of %s do not come from a shared journal, which is across the network",
    async (what) => {
      expect(await complete(what, { journalPath: "postgresql://db.example.com/journal" })).toEqual({
        names: [],
        journals: 0,
      });
      expect((await complete(what)).journals).toBe(1);
    },
  );
});
