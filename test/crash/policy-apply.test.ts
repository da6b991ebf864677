// `integ apply` under trouble: a fault at any request of many items, several runs at once, and SIGKILL at every call. The next
// run converges; nothing is doubled or lost, and no other item is stopped.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { type Ended, Home } from "../support/program.ts";
import { isFull } from "../support/sample.ts";
import { type Service, startService } from "../support/service.ts";
import { killTest, type Run, type Stage } from "./harness.ts";

let service: Service;
let account: Account;

beforeAll(async () => {
  service = await startService();
  account = new Account(service);
});
afterAll(() => service?.stop());

interface Names {
  readonly names: readonly string[];
  readonly scopes?: string;
  readonly overlap?: string;
}

/** Of two service accounts in turn, so that thirty have their slots. */
function policyText({ names, scopes = "entity:read", overlap = "0s" }: Names): string {
  const { service_account_id, caller_service_account_id } = service.us;
  const items = names.map(
    (name, index) =>
      `  ${name}:\n    service_account: ${index % 2 === 0 ? service_account_id : caller_service_account_id}\n    scopes: [${scopes}]\n    rotate: { every: 60d, overlap: ${overlap} }\n    secret: { file: ${name}.json, format: json }\n`,
  );
  return `version: 1\nunmanaged: ignore\nlimits: { changes_per_run: 100 }\noauth_clients:\n${items.join("")}`;
}

function homeWith(names: Names): Home {
  const home = new Home({ ...service.env, INTEG_TOKEN_ENDPOINT: service.us.token_endpoint });
  writeFileSync(home.path("integ.yaml"), policyText(names));
  return home;
}

const many = (count: number): string[] => Array.from({ length: count }, (_, index) => `item-${index}`);
const words = ["apply", "--yes", "--json", "-q"];
const resultsIn = ({ stdout }: Ended): string[] =>
  stdout === "" ? [] : (JSON.parse(stdout) as { data: { result: string }[] }).data.map(({ result }) => result);

/** What is wrong with the account after all was done: each item has one live client, which its file opens. */
async function wrongs(home: Home, names: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  const live = new Map((await account.live()).map((client) => [client.client_id, client]));
  if (live.size !== names.length) found.push(`${live.size} live clients of ${names.length} items`);
  for (const name of names) {
    const path = home.path(`${name}.json`);
    if (!existsSync(path)) {
      found.push(`${name} has no secret`);
      continue;
    }
    const { client_id, client_secret } = JSON.parse(readFileSync(path, "utf8")) as Record<string, string>;
    if (!live.delete(client_id!)) found.push(`${name} has the secret of a client that is not live`);
    else if (!(await account.opens(client_id!, client_secret!))) found.push(`the secret of ${name} opens nothing`);
  }
  return found;
}

const isAnyAboveSlots = async (): Promise<boolean> => {
  const counts = new Map<string, number>();
  for (const { service_account_id: owner } of await account.live()) counts.set(owner, (counts.get(owner) ?? 0) + 1);
  return [...counts.values()].some((count) => count > 20);
};

describe("thirty items", () => {
  const names = many(30);
  const all = ["drop=after", "secret=withheld", "drop=before", "status=500 effect=kept", "cut=30"];
  const kinds = isFull ? all : all.slice(0, 2);
  const at = isFull ? [0, 1, 2, 3, 4, 7, 11, 16, 22, 29] : [2];

  it.each(kinds.flatMap((kind) => at.map((after) => [kind, after] as const)))(
    "with %s at five creations after %i",
    async (kind, after) => {
      await account.clear();
      const home = homeWith({ names });
      try {
        await service.fault(`POST /v1/oauth_clients after=${after} times=5 ${kind}`);
        const first = await home.integ([...words, "--retry-for", "0"]);
        await service.calm();
        const failed = resultsIn(first).filter((result) => result === "failed").length;
        expect(failed).toBeLessThanOrEqual(5);
        expect(resultsIn(first).filter((result) => result === "done").length).toBe(30 - failed);
        expect(await isAnyAboveSlots()).toBe(false);
        const second = await home.integ(words);
        expect({ code: second.code, stderr: second.stderr }).toEqual({ code: 0, stderr: "" });
        expect(await wrongs(home, names)).toEqual([]);
        expect(new Set(resultsIn(await home.integ(words)))).toEqual(new Set(["none"]));
      } finally {
        home.remove();
      }
    },
  );

  it("with a fault at each request of five rotations", async () => {
    const five = many(5);
    const faults = ["POST /v1/oauth_clients", "DELETE /v1/oauth_clients/*", "GET /v1/oauth_clients/*", "POST /*token*"];
    for (const [index, fault] of faults.entries()) {
      for (const kind of isFull ? ["drop=after", "drop=before", "status=503", "cut=20"] : ["drop=after"]) {
        await account.clear();
        const home = homeWith({ names: five });
        try {
          await home.integ(words);
          writeFileSync(home.path("integ.yaml"), policyText({ names: five, scopes: "entity:read, organization:read" }));
          await service.fault(`${fault} after=${index % 2} times=2 ${kind}`).catch(() => {});
          await home.integ([...words, "--retry-for", "0"]);
          await service.calm();
          // A read that fails stops a plan; a proof that fails leaves the old client working until the next run.
          for (let run = 0; run < 2; run += 1) await home.integ(words);
          expect(await wrongs(home, five)).toEqual([]);
        } finally {
          home.remove();
        }
      }
    }
  });
});

describe("eight runs at once", () => {
  const names = many(5);
  const race = (home: Home): Promise<Ended[]> =>
    Promise.all(
      Array.from({ length: 8 }, () => home.spawned([...words, "--retry-for", "10s"], { timeoutMs: 120_000 })),
    );

  it("create and rotate each item once", { timeout: 300_000 }, async () => {
    await account.clear();
    const home = homeWith({ names });
    try {
      const creations = (await account.creations()).length;
      const created = await race(home);
      expect(created.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
        created.map(() => ({ code: 0, stderr: "" })),
      );
      expect((await account.creations()).length - creations).toBe(names.length);
      expect(await wrongs(home, names)).toEqual([]);
      writeFileSync(home.path("integ.yaml"), policyText({ names, scopes: "entity:read, organization:read" }));
      const rotated = await race(home);
      expect(rotated.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
        rotated.map(() => ({ code: 0, stderr: "" })),
      );
      expect((await account.creations()).length - creations).toBe(2 * names.length);
      expect(await wrongs(home, names)).toEqual([]);
      const results = rotated.flatMap(resultsIn);
      expect(results.filter((result) => result === "done").length).toBe(names.length);
      expect(new Set(results)).toEqual(new Set(["done", "elsewhere", "none"].filter((one) => results.includes(one))));
    } finally {
      home.remove();
    }
  });
});

/** Items are changed one after the other, so that a recorded run has the calls of the next one. */
class ApplyStage implements Stage {
  readonly at: Home;
  readonly words = [...words, "--parallel", "1"];
  readonly #names: readonly string[];

  constructor(at: Home, names: readonly string[]) {
    this.at = at;
    this.#names = names;
  }

  async audit({ findings, where }: Run): Promise<void> {
    if (await isAnyAboveSlots()) findings.duplicates.push(`${where}: more than 20 clients`);
    for (const name of this.#names) {
      const path = this.at.path(`${name}.json`);
      if (!existsSync(path)) continue;
      const { client_id, client_secret } = JSON.parse(readFileSync(path, "utf8")) as Record<string, string>;
      if (!(await account.opens(client_id!, client_secret!)))
        findings.withoutWorkingClient.push(`${where}: ${name}, at once`);
    }
  }

  async recover({ findings, where }: Run): Promise<string> {
    const codes: (number | null)[] = [];
    for (let run = 0; run < 3 && codes.at(-1) !== 0; run += 1) codes.push((await this.at.integ(words)).code);
    for (const wrong of await wrongs(this.at, this.#names)) findings.unfinished.push(`${where}: ${wrong}`);
    if (codes.at(-1) !== 0) findings.unfinished.push(`${where}: apply ended with ${codes.join(", ")}`);
    const again = await this.at.integ(words);
    if (resultsIn(again).some((result) => result !== "none"))
      findings.duplicates.push(`${where}: a later run changed something`);
    return `apply ${codes.join(", ")}`;
  }

  remove(): void {
    this.at.remove();
  }
}

killTest(
  {
    name: "an apply that creates five clients",
    stage: async () => {
      await account.clear();
      return new ApplyStage(homeWith({ names: many(5) }), many(5));
    },
  },
  { sample: 6 },
);

killTest(
  {
    name: "an apply that rotates five clients",
    stage: async () => {
      await account.clear();
      const at = homeWith({ names: many(5) });
      await at.integ(words);
      writeFileSync(at.path("integ.yaml"), policyText({ names: many(5), scopes: "entity:read, organization:read" }));
      return new ApplyStage(at, many(5));
    },
  },
  { sample: 6 },
);
