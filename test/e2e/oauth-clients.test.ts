// OAuth clients from the command line: the decision table of §4.2 as a user sees it.
import { mkdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { Home, type Ended } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { creationWords, homeOfTest, serviceOfFile } from "../support/service.ts";

const service = await serviceOfFile();
const account = new Account(service);
// Frees all slots, so that the clients of other tests do not count towards the limit.
afterEach(() => account.clear());

const liveClients = async (): Promise<string[]> => (await account.live()).map(({ id }) => id);
const clientCount = async (): Promise<number> => (await account.clients()).length;

function home(): Home {
  return homeOfTest(service.env);
}

function create(at: Home, ...more: string[]): Promise<Ended> {
  return at.integ(creationWords(service, ...more));
}

interface Listed {
  data: {
    id: string;
    state: string;
    idempotency_key: string;
    attempts: number;
    next_step: string | null;
    request: unknown;
  }[];
}

async function journal(at: Home): Promise<Listed["data"]> {
  const { stdout, code } = await integHere(at, ["journal", "list", "--all", "--json"]);
  expect(code).toBe(0);
  return (JSON.parse(stdout) as Listed).data;
}

describe("create", () => {
  it("prints only the API's object with its secret to stdout", async () => {
    const at = home();
    const { code, stdout, stderr } = await create(at, "--json");
    expect(code).toBe(0);
    const client = JSON.parse(stdout) as Record<string, unknown>;
    expect(client).toMatchObject({ object: "oauth_client", status: "active", scopes: ["entity:read"] });
    expect(client.client_secret).toMatch(/^sbx_/);
    expect(stderr).toContain("client_secret");
    expect(stderr).not.toContain(client.client_secret as string);
    expect(await journal(at)).toMatchObject([
      { operation: "oauth_client.create", state: "done", attempts: 1, resource_id: client.id, next_step: null },
    ]);
  });

  it("writes the secret to a new 0600 file and shows null", async () => {
    const at = home();
    const { code, stdout } = await create(at, "--json", "--secret-file", "client.secret");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ client_secret: null });
    expect(readFileSync(at.path("client.secret"), "utf8")).toMatch(/^sbx_\S+$/);
    expect(statSync(at.path("client.secret")).mode & 0o777).toBe(0o600);
  });

  it("keeps the outcome unknown after a lost connection, and recovers the receipt under the same key", async () => {
    const at = home();
    await service.fault("POST /v1/oauth_clients drop=before times=1");
    const cut = await create(at, "--secret-file", "client.secret", "--retry-for", "0");
    expect(cut.code).toBe(7);
    const [entry] = await journal(at);
    expect(entry).toMatchObject({ state: "unknown", attempts: 1 });
    expect(cut.stderr).toContain(`Next: ${entry!.next_step}`);
    const recovered = await at.integ(entry!.next_step!.split(" ").slice(1));
    expect(recovered).toMatchObject({ code: 0 });
    expect((await journal(at))[0]).toMatchObject({
      state: "done",
      attempts: 2,
      idempotency_key: entry!.idempotency_key,
    });
    expect(readFileSync(at.path("client.secret"), "utf8")).toMatch(/^sbx_/);
  });

  it("names the necessary repair if recovery no longer has a destination for the secret", async () => {
    const at = home();
    mkdirSync(at.path("place"));
    await service.fault("POST /v1/oauth_clients drop=after times=1");
    await create(at, "--secret-file", "place/client.secret", "--retry-for", "0");
    rmSync(at.path("place"), { recursive: true });
    const without = await integHere(at, ["journal", "recover"]);
    expect(without.code, without.stderr).toBe(7);
    expect(without.stderr).toContain(`First: mkdir -p ${at.path("place")}\n`);
    mkdirSync(at.path("place"));
    expect((await integHere(at, ["journal", "recover", "--replace-lost-secret"])).code).toBe(0);
    expect(readFileSync(at.path("place/client.secret"), "utf8")).toMatch(/^sbx_/);
  });

  it("waits as Retry-After says on 429, and never shorter", async () => {
    const at = home();
    await service.fault("POST /v1/oauth_clients status=429 retry-after=2 times=1");
    const began = Date.now();
    expect((await create(at, "--secret-file", "client.secret")).code).toBe(0);
    expect(Date.now() - began).toBeGreaterThanOrEqual(2000);
  });

  it("reports a lost secret with exit 9, replaces it on request, and leaves one live client", async () => {
    const at = home();
    const before = await liveClients();
    await service.fault("POST /v1/oauth_clients drop=after times=1");
    const lost = await create(at, "--secret-file", "client.secret");
    expect(lost.code).toBe(9);
    expect((await liveClients()).length).toBe(before.length + 1);
    const [entry] = await journal(at);
    expect(entry!.next_step).toBe(`integ journal recover ${entry!.id} --replace-lost-secret`);
    expect((await integHere(at, ["journal", "recover"])).code).toBe(9);
    expect((await liveClients()).length).toBe(before.length + 1);
    expect((await integHere(at, ["journal", "recover", "--replace-lost-secret"])).code).toBe(0);
    expect((await liveClients()).length).toBe(before.length + 1);
    expect((await journal(at)).map((one) => one.state)).toEqual(["done", "replaced"]);
    expect(readFileSync(at.path("client.secret"), "utf8")).toMatch(/^sbx_/);
    expect((await integHere(at, ["journal", "recover"])).code).toBe(0);
  });

  it("pending: exit 8 with --wait 0s, and the same key afterwards", async () => {
    const at = home();
    await service.fault("POST /v1/oauth_clients pending=5 times=1");
    const { code } = await create(at, "--wait", "0s", "--secret-file", "client.secret");
    expect(code).toBe(8);
    const [entry] = await journal(at);
    expect(entry).toMatchObject({ state: "pending" });
    expect((await integHere(at, ["journal", "recover", "--wait", "0s"])).code).toBe(8);
    expect((await journal(at))[0]).toMatchObject({ idempotency_key: entry!.idempotency_key });
  });

  it("the same key again gives the receipt, exit 0; with another request it is refused before sending", async () => {
    const at = home();
    const first = await create(at, "--idempotency-key", "build-42", "--secret-file", "client.secret", "--json");
    const again = await create(at, "--idempotency-key", "build-42", "--json");
    expect([first.code, again.code]).toEqual([0, 0]);
    expect(JSON.parse(again.stdout).id).toBe(JSON.parse(first.stdout).id);
    const before = await clientCount();
    const other = await create(at, "--scope", "organization:read", "--idempotency-key", "build-42");
    expect(other.code).toBe(5);
    expect(await clientCount()).toBe(before);
  });

  it("the same command with the same secret file gives the receipt and leaves the file unchanged", async () => {
    const at = home();
    const words = ["--idempotency-key", "nightly", "--secret-file", "client.secret", "--json"];
    const first = await create(at, ...words);
    const secret = readFileSync(at.path("client.secret"), "utf8");
    const again = await create(at, ...words);
    expect([first.code, again.code]).toEqual([0, 0]);
    expect(JSON.parse(again.stdout)).toMatchObject({ id: JSON.parse(first.stdout).id, client_secret: null });
    expect(again.stderr).toContain("delivered before");
    expect(readFileSync(at.path("client.secret"), "utf8")).toBe(secret);
  });

  it("resumes an unfinished creation under its key; --new starts another", async () => {
    const at = home();
    await service.fault("POST /v1/oauth_clients drop=before times=1");
    await create(at, "--retry-for", "0", "--secret-file", "a.secret");
    const resumed = await create(at, "--secret-file", "b.secret");
    expect(resumed.code).toBe(0);
    expect(resumed.stderr).toContain("--new");
    expect(await journal(at)).toHaveLength(1);
    expect((await create(at, "--new", "--secret-file", "c.secret")).code).toBe(0);
    expect(await journal(at)).toHaveLength(2);
  });
});

describe("get and revoke", () => {
  it("show a client without its secret, revoke it, and can be repeated", async () => {
    const at = home();
    const { id } = JSON.parse((await create(at, "--json")).stdout) as { id: string };
    const got = await at.integ(["oauth-client", "get", id, "--json"]);
    expect(JSON.parse(got.stdout)).toMatchObject({ id, status: "active" });
    expect(got.stdout).not.toMatch(/sbx_us_cs/);
    expect((await at.integ(["oauth-clients", "revoke", id])).code).toBe(2);
    for (const _ of [1, 2]) {
      const revoked = await at.integ(["oauth-clients", "revoke", id, "--yes", "--json"]);
      expect(revoked.code).toBe(0);
      expect(JSON.parse(revoked.stdout)).toMatchObject({ id, status: "revoked" });
    }
  });

  it("report an unknown id: exit 4 in words, and as one JSON object", async () => {
    const at = home();
    const person = await at.integ(["oauth-clients", "get", "oac_nobody"]);
    expect(person.code).toBe(4);
    expect(person.stderr).toMatch(/request id \S+/);
    const program = await at.integ(["oauth-clients", "get", "oac_nobody", "--json"]);
    expect(program.stdout).toBe("");
    expect(JSON.parse(program.stderr)).toMatchObject({
      error: {
        kind: "not_found",
        exit_code: 4,
        status: 404,
        request_id: expect.any(String),
        doc_url: expect.any(String),
      },
    });
  });
});

describe("a client_id in place of the resource id", () => {
  async function createClient(at: Home): Promise<{ id: string; client_id: string }> {
    const { stdout } = await create(at, "--json", "--secret-file", "secret");
    return JSON.parse(stdout) as { id: string; client_id: string };
  }

  it.each(["get", "rotate", "revoke"])("is accepted by %s if the journal knows the client", async (verb) => {
    const at = home();
    const { id, client_id } = await createClient(at);
    const more = verb === "rotate" ? ["--secret-file", "new", "--accept-unproven"] : [];
    const { code, stdout, stderr } = await integHere(at, [
      "oauth-clients",
      verb,
      client_id,
      "--yes",
      "--json",
      ...more,
    ]);
    expect(code, stderr).toBe(0);
    expect(stderr).toContain(`Note: ${client_id} is the client_id of the client ${id}.`);
    if (verb !== "rotate") expect(JSON.parse(stdout)).toMatchObject({ id });
    expect(await liveClients()).toEqual(verb === "revoke" ? [] : [verb === "get" ? id : JSON.parse(stdout).id]);
  });

  it.each(["get", "rotate", "revoke"])(
    "that is unknown: %s says what is missing, and leaves nothing unfinished",
    async (verb) => {
      const at = home();
      const { code, stderr } = await integHere(
        at,
        ["oauth-clients", verb, "cid_nobody", "--yes", "--secret-file", "s"].slice(0, verb === "rotate" ? 6 : 4),
      );
      expect(code).toBe(4);
      expect(stderr).toMatch(/No trusted entry in (?:this machine's|the team's) journal has this id or client_id\./);
      const left = await integHere(at, ["journal", "list", "--json"]);
      expect(JSON.parse(left.stdout).data).toEqual([]);
    },
  );
});

describe("list --offline", () => {
  it("shows clients that integ revoked, directly or by a rotation, as revoked", async () => {
    const at = home();
    const ids = [];
    for (const name of ["a", "b", "c"])
      ids.push((JSON.parse((await create(at, "--json", "--new", "--secret-file", name)).stdout) as { id: string }).id);
    const [revoked = "", rotated = "", kept = ""] = ids;
    await integHere(at, ["oauth-clients", "revoke", revoked, "--yes"]);
    await integHere(at, ["oauth-clients", "rotate", rotated, "--accept-unproven", "--secret-file", "d"]);
    await integHere(at, ["oauth-clients", "rotate", kept, "--keep-old", "--secret-file", "e"]);
    const { stdout } = await integHere(at, ["oauth-clients", "list", "--offline", "--json"]);
    const listed = JSON.parse(stdout).data as { id: string; status: string }[];
    const live = listed.filter(({ status }) => status === "active").map(({ id }) => id);
    expect(new Set(live)).toEqual(new Set(await liveClients()));
    expect(listed.filter(({ status }) => status === "revoked").map(({ id }) => id)).toEqual([rotated, revoked]);
  });
});
