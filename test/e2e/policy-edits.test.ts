import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { type Ended, Home } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { homeOfTest, serviceOfFile, tokenEnv } from "../support/service.ts";

interface Item {
  readonly name: string;
  readonly scopes: string;
  readonly account: "service_account_id" | "caller_service_account_id";
  readonly file: string;
  readonly every: string;
  readonly overlap: string;
}

const service = await serviceOfFile();
const account = new Account(service);

const first: Item = {
  name: "a",
  scopes: "entity:read",
  account: "service_account_id",
  file: "a.json",
  every: "60d",
  overlap: "1h",
};

function policyOf(items: readonly Item[]): string {
  const texts = items.map(
    ({ name, scopes, account: owner, file, every, overlap }) =>
      `  ${name}:\n    service_account: ${service.us[owner]}\n    scopes: [${scopes}]\n    rotate: { every: ${every}, overlap: ${overlap} }\n    secret: { file: ${file}, format: json }\n`,
  );
  const clients = texts.length === 0 ? "" : `oauth_clients:\n${texts.join("")}`;
  return `version: 1\nid: pol_of_this_test\nunmanaged: ignore\n${clients}`;
}

const apply = (home: Home): Promise<Ended> => integHere(home, ["apply", "--yes", "--json", "-q", "--retry-for", "0"]);
const write = (home: Home, ...items: readonly Item[]): void => writeFileSync(home.path("integ.yaml"), policyOf(items));

/** `reach` brings an item to the state. There are then `live` active clients. */
const states: Readonly<Record<string, { readonly live: number; reach(home: Home): Promise<void> }>> = {
  absent: { live: 0, reach: async (home) => write(home, first) },
  done: {
    live: 1,
    reach: async (home) => {
      write(home, first);
      await apply(home);
    },
  },
  waiting: {
    live: 2,
    reach: async (home) => {
      write(home, { ...first, scopes: "organization:read" });
      await apply(home);
      write(home, first);
      expect((await apply(home)).stdout).toContain("waiting");
    },
  },
  unknown: {
    live: 1,
    reach: async (home) => {
      write(home, first);
      await service.fault("POST /v1/oauth_clients drop=after times=1");
      expect((await apply(home)).code).toBe(7);
      await service.calm();
    },
  },
  undelivered: {
    live: 1,
    reach: async (home) => {
      write(home, first);
      const text = policyOf([first]).replace(
        "{ file: a.json, format: json }",
        '{ command: "cat > /dev/null; exit 3" }',
      );
      writeFileSync(home.path("integ.yaml"), text);
      expect((await apply(home)).code).toBe(12);
    },
  },
};

/** The edited items, and how many active clients the edit adds. */
const edits: Readonly<Record<string, { readonly items: readonly Item[]; readonly adds: number }>> = {
  nothing: { items: [first], adds: 0 },
  "the limit": { items: [{ ...first, every: "30d" }], adds: 0 },
  "the destination": { items: [{ ...first, file: "moved.json" }], adds: 0 },
  "the scopes": { items: [{ ...first, scopes: "entity:read, organization:read", overlap: "0s" }], adds: 0 },
  "the service account": { items: [{ ...first, account: "caller_service_account_id", overlap: "0s" }], adds: 0 },
  "the name": { items: [{ ...first, name: "b", file: "b.json" }], adds: 1 },
  removed: { items: [], adds: 0 },
};

const opens = async (home: Home, file: string): Promise<boolean> => {
  if (!existsSync(home.path(file))) return false;
  const credential = JSON.parse(readFileSync(home.path(file), "utf8")) as Record<"client_id" | "client_secret", string>;
  return account.opens(credential.client_id, credential.client_secret);
};

describe.each(Object.entries(states))("an item in state %s", (state, { live, reach }) => {
  it.each(Object.entries(edits))("converges after the edit: %s", async (edit, { items, adds }) => {
    await account.clear();
    const home = homeOfTest(tokenEnv(service));
    await reach(home);
    expect(await account.live()).toHaveLength(live);
    const worked = await opens(home, "a.json");
    write(home, ...items);
    let ended = await apply(home);
    for (let run = 0; run < 3 && ended.code !== 0; run += 1) ended = await apply(home);
    ended = await apply(home);
    const again = await apply(home);
    const results = (JSON.parse(again.stdout) as { data: { result: string }[] }).data.map(({ result }) => result);
    // Only --redeliver moves a delivered secret.
    if (state === "done" && edit === "the destination") {
      expect([again.code, results]).toEqual([10, ["left"]]);
      expect(again.stderr).toContain("integ apply --redeliver a");
      expect(await opens(home, "a.json")).toBe(true);
      expect(await account.live()).toHaveLength(live);
      return;
    }
    expect({ code: again.code, stderr: again.stderr }).toEqual({ code: 0, stderr: "" });
    expect(results).toEqual(items.map(() => (state === "waiting" && items[0]!.name === "a" ? "waiting" : "none")));
    // No run revokes a client without an item, because that needs consent.
    const isMissing = live === 0 && items.length > 0 && adds === 0;
    expect(await account.live()).toHaveLength(live + adds + (isMissing ? 1 : 0));
    if (worked && edit !== "the name") expect(await opens(home, "a.json")).toBe(true);
    for (const { file, name } of items) {
      const stays = name === "a" && (state === "done" || state === "waiting") && edit === "the destination";
      expect(await opens(home, stays ? "a.json" : file), file).toBe(true);
    }
  });
});
