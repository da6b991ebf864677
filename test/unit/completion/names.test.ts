// What a Tab asks of this machine, and what it never asks.
import { describe, expect, it } from "vitest";
import { command } from "../../../src/commands/completion/names.ts";
import type { Context } from "../../../src/context.ts";

interface Asked {
  readonly printed: string;
  readonly journals: number;
}

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
    state: "done",
    resource_id: "oac_1",
    created_at: "2026-11-19T00:00:00.000Z",
  },
];

async function ask(
  what: string,
  { journalPath = "/state/journal.ndjson", names = [{ name: "p", region: "us", base_url: "https://x" }] } = {},
): Promise<Asked> {
  let printed = "";
  let journals = 0;
  const context = {
    settings: { journalPath },
    profiles: { names: async () => names },
    journal: async () => {
      journals += 1;
      return { entries: () => entries };
    },
    output: { text: async (text: string) => void (printed += text) },
  };
  await command.run(context as unknown as Context, { args: [what], options: {} });
  return { printed, journals };
}

describe("names at Tab", () => {
  it("are each entry, each unsettled one, and each resource once, the newest first", async () => {
    expect((await ask("entries")).printed).toBe(
      "e3\toauth_client.revoke, done\ne2\taccess_key.create, unknown\ne1\toauth_client.create, done",
    );
    expect((await ask("unsettled")).printed).toBe("e2\taccess_key.create, unknown");
    expect((await ask("clients")).printed).toBe("oac_1\toauth_client.revoke, done, 2026-11-21");
    expect((await ask("keys")).printed).toBe("");
  });

  it("are the stored profiles and those that always exist; the journal is left alone", async () => {
    expect(await ask("profiles")).toEqual({
      printed: "p\tus, https://x\nsandbox\tus, on this machine\nsandbox-eu\teu, on this machine",
      journals: 0,
    });
  });

  it.each(["entries", "unsettled", "clients", "keys"])(
    "do not open a shared journal, which is across the network, for %s",
    async (what) => {
      expect(await ask(what, { journalPath: "postgresql://db.example.com/journal" })).toEqual({
        printed: "",
        journals: 0,
      });
      expect((await ask(what)).journals).toBe(1);
    },
  );

  it("hold nothing that breaks a line or acts on a terminal", async () => {
    const names = [{ name: "a\tb\nc", region: "u\x1b[31ms", base_url: "x\u202Ey" }];
    expect((await ask("profiles", { names })).printed.split("\n")[0]).toBe("a b c\tu [31ms, x y");
  });
});
