// Recovery with other variables, flags or profiles finishes an entry as it was requested, or refuses and explains.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { readJournal } from "../support/journal-file.ts";
import { Home, until } from "../support/program.ts";
import { creationWords, homeOfTest, serviceOfFile } from "../support/service.ts";

const service = await serviceOfFile();
const account = new Account(service);
afterEach(() => account.clear());

const live = async (): Promise<string[]> => (await account.live()).map(({ id }) => id);

async function withProfile(): Promise<Home> {
  const at = homeOfTest();
  await at.integ([...addWords("p", service.us.base_url), "--token-endpoint", service.us.token_endpoint], {
    input: service.us.api_key,
  });
  return at;
}

function addWords(name: string, baseUrl: string): string[] {
  const where = ["--region", "us", "--base-url", baseUrl, "--organization-id", service.us.organization_id];
  return ["profiles", "add", name, ...where, "--api-key-stdin"];
}

async function firstEntry(at: Home): Promise<string> {
  const { data } = JSON.parse((await at.integ(["journal", "list", "--json"])).stdout) as { data: { id: string }[] };
  return data[0]!.id;
}

async function leaveLost(at: Home, ...words: string[]): Promise<string> {
  await service.fault("POST /v1/oauth_clients drop=after times=1");
  const { stderr } = await at.integ([...creationWords(service), "--retry-for", "0", "--json", ...words]);
  return (JSON.parse(stderr.trim().split("\n").at(-1)!) as { error: { next_command: string } }).error.next_command
    .split(" ")
    .at(-1)!;
}

describe("one destination takes one secret", () => {
  it.each([
    ["--secret-file", "one"],
    ["--secret-profile", "t"],
  ])("%s for two entries is refused before anything is sent", async (flag, place) => {
    const at = await withProfile();
    await at.integ([...addWords("t", service.us.base_url), "--token-endpoint", service.us.token_endpoint], {
      input: service.us.api_key,
    });
    const ids = [await leaveLost(at), await leaveLost(at, "--new")];
    const before = await live();
    const all = ["journal", "recover", ...ids, "--replace-lost-secret", flag, place];
    const { code, stderr } = await at.integ(flag === "--secret-file" ? [...all, "--force"] : all);
    expect(code).toBe(2);
    for (const id of ids) expect(stderr).toContain(id);
    expect(await live()).toEqual(before);
  });
});

describe("a --secret-profile", () => {
  it("is checked against the entry's issuer, not the active profile's", async () => {
    const at = await withProfile();
    await at.integ([...addWords("mine", service.us.base_url), "--token-endpoint", service.us.token_endpoint], {
      input: service.us.api_key,
    });
    const other = [...addWords("other", service.eu.base_url), "--token-endpoint", service.eu.token_endpoint, "--use"];
    await at.integ(other, { input: service.eu.api_key });
    const words = [...creationWords(service), "-p", "p", "--secret-command", "exit 1", "--json"];
    expect((await at.integ(words)).code).toBe(12);
    const [{ id }] = JSON.parse((await at.integ(["journal", "list", "--json"])).stdout).data as [{ id: string }];
    expect((await at.integ(["journal", "claim", id, "--secret-profile", "other"])).code).toBe(2);
    expect((await at.integ(["journal", "claim", id, "--secret-profile", "mine"])).code).toBe(0);
  });
});

describe("an organization id that only one of two shells sets", () => {
  it("creates no second client; in capitals, the id is the same", async () => {
    const at = homeOfTest({ ...service.env, INTEG_ORGANIZATION_ID: "" });
    await service.fault("POST /v1/oauth_clients drop=before times=1");
    const words = [...creationWords(service), "--secret-file", "s", "--retry-for", "0"];
    const INTEG_ORGANIZATION_ID = service.us.organization_id;
    expect((await at.integ(words, { env: { INTEG_ORGANIZATION_ID } })).code).toBe(7);
    const { code, stderr } = await at.integ(words);
    expect([code, stderr]).toEqual([5, expect.stringContaining("without an organization")]);
    expect(await live()).toHaveLength(0);
    const upper = { env: { INTEG_ORGANIZATION_ID: INTEG_ORGANIZATION_ID.toUpperCase() } };
    expect((await at.integ(words, upper)).code).toBe(0);
    expect(await live()).toHaveLength(1);
  });
});

describe("a profile with unfinished work", () => {
  it("moves to another address or organization only with a warning", async () => {
    const at = await withProfile();
    const id = await leaveLost(at);
    const otherOrganization = ["--organization-id", "00000000-0000-4000-8000-000000000000"];
    const back = ["--organization-id", service.us.organization_id.toUpperCase()];
    for (const [words, says] of [
      [otherOrganization, true],
      [back, true],
      [["--organization-id", service.us.organization_id], false],
      [["--audience", "another"], false],
      [["--base-url", "https://other.example"], true],
    ] as const) {
      const { code, stderr } = await at.integ(["profiles", "edit", "p", ...words]);
      expect([code, stderr.includes(`cannot be finished while p has`), stderr.includes(id)]).toEqual([0, says, says]);
    }
  });

  it("is removed only with a warning: before the question, and for --yes", async () => {
    const at = await withProfile();
    const id = await leaveLost(at);
    for (const [words, code] of [
      [[], 2],
      [["--yes"], 0],
    ] as const) {
      const ended = await at.integ(["profiles", "remove", "p", ...words]);
      expect([ended.code, ended.stderr]).toEqual([code, expect.stringContaining(`integ journal recover ${id}`)]);
    }
  });
});

describe("a claim to the profile that made the change", () => {
  it("replaces its credential after the question, which --yes answers", async () => {
    const at = await withProfile();
    const words = [...creationWords(service), "-p", "p", "--secret-command", "exit 1"];
    expect((await at.integ(words)).code).toBe(12);
    const claim = ["journal", "claim", await firstEntry(at), "--secret-profile", "p"];
    const { code, stderr } = await at.integ(claim);
    expect([code, stderr]).toEqual([2, expect.stringContaining(`Next: integ ${claim.join(" ")} --yes\n`)]);
    expect((await at.integ([...claim, "--yes"])).code).toBe(0);
  });
});

describe("a profile that a person changes during the request", () => {
  it("is replaced only with --force for the entry that the message names", async () => {
    const { us } = service;
    const at = await withProfile();
    const legacy = ["--api-key-id", us.access_key_id, "--access-token-endpoint", us.access_token_endpoint];
    await at.integ([...addWords("k", us.base_url), ...legacy], { input: us.access_key_secret });
    await at.integ(addWords("q", us.base_url), { input: us.api_key });
    await service.fault("POST /api/v1/access-keys latency=4s times=1");
    const words = "keys create --name n --type service_account --expires-in 90d --secret-profile q -p k";
    const creation = at.integ(words.split(" "));
    const journal = at.path("state", "journal.ndjson");
    await until("the request is sent", () => existsSync(journal) && readJournal(journal)[0]?.attempts === 1);
    expect((await at.integ(["profiles", "edit", "q", "--api-key-stdin"], { input: "third" })).code).toBe(0);
    const { code, stderr } = await creation;
    const id = await firstEntry(at);
    expect([code, stderr]).toEqual([12, expect.stringContaining(`Next: integ journal claim ${id}\n`)]);
    const recovered = await at.integ(["journal", "recover"]);
    const step = `Next: integ journal recover ${id} --force\n`;
    expect([recovered.code, recovered.stderr]).toEqual([2, expect.stringContaining(step)]);
    const forced = await at.integ(["journal", "recover", "--force"]);
    expect([forced.code, forced.stderr]).toEqual([2, expect.stringContaining("needs the ids of the entries")]);
    expect((await at.integ(["journal", "recover", id, "--force"])).code).toBe(0);
  });
});

describe("in another state folder", () => {
  it("a kept secret of the first folder must be claimed there, and claim and recover do not lead to each other", async () => {
    const at = await withProfile();
    const INTEG_JOURNAL_KEY = "k".repeat(43);
    const first = await at.integ([...creationWords(service), "--secret-command", "exit 1", "-p", "p"], {
      env: { INTEG_JOURNAL_KEY },
    });
    expect(first.code).toBe(12);
    const id = await firstEntry(at);
    const INTEG_JOURNAL = at.path("state", "journal.ndjson");
    const env = { INTEG_STATE_DIR: at.path("other"), INTEG_JOURNAL, INTEG_JOURNAL_KEY };
    for (const words of [
      ["claim", id, "--secret-file", "s"],
      ["recover", id],
    ]) {
      const { code, stderr } = await at.integ(["journal", ...words], { env });
      expect(code).toBe(12);
      expect(stderr).toContain(`Fix: Run integ journal claim ${id} there.`);
      expect(stderr).not.toContain("Next:");
    }
    const claimed = await at.integ(["journal", "claim", id, "--secret-file", "s"], { env: { INTEG_JOURNAL_KEY } });
    expect(claimed.code).toBe(0);
  });

  it("if someone created the file since the request, the message names --force and not only the same command", async () => {
    const at = await withProfile();
    await service.fault("POST /v1/oauth_clients drop=before times=1");
    await at.integ([...creationWords(service), "--secret-file", "s", "--retry-for", "0", "-p", "p"]);
    const id = await firstEntry(at);
    expect(readFileSync(at.path("state", "journal.ndjson"), "utf8").split("\n")[1]).toContain('"machine":');
    writeFileSync(at.path("s"), "mine");
    const { code, stderr } = await at.integ(["journal", "recover", id]);
    expect(code).toBe(7);
    expect(stderr).toContain("or add --force to replace its current content.\n");
    expect(stderr).toContain(`Next: integ journal recover ${id} --force\n`);
    expect(await live()).toEqual([]);
  });
});
