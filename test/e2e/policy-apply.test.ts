import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { homeWithProfile } from "../crash/policy-scenes.ts";
import { Account } from "../support/account.ts";
import { type Ended, Home } from "../support/program.ts";
import { creationWords, homeOfTest, serviceOfFile, tokenEnv } from "../support/service.ts";

interface Row {
  readonly name: string;
  readonly action: string;
  readonly result: string;
  readonly state: string;
  readonly reason: string;
  readonly message: string;
  readonly resource_id: string;
  readonly entry: string | null;
}

const service = await serviceOfFile();
const account = new Account(service);
let home: Home;

beforeEach(async () => {
  await account.clear();
  home = homeOfTest(tokenEnv(service));
});

/** Waits a little longer, because integ knows the service's clock only to the second, from the `Date` header. */
const seconds = (count: number): Promise<void> => new Promise((done) => setTimeout(done, count * 1000 + 100));
const integ = (...words: string[]): Promise<Ended> => home.integ(words);
const write = (text: string, file = "integ.yaml"): void => writeFileSync(home.path(file), text);
const rowsOf = ({ stdout }: Ended): Row[] => (JSON.parse(stdout) as { data: Row[] }).data;
const resultsOf = (ended: Ended): Record<string, string> =>
  Object.fromEntries(rowsOf(ended).map(({ name, result }) => [name, result]));
const apply = (...words: string[]): Promise<Ended> => integ("apply", "--yes", "--json", ...words);
const secretOf = (name: string): string => readFileSync(home.path(`${name}.secret`), "utf8");

const item = (name: string, rotate = "{ every: 60d, overlap: 0s }", secret = `{ file: ${name}.secret }`): string =>
  `  ${name}:\n    service_account: ${service.us.service_account_id}\n    scopes: [entity:read]\n    rotate: ${rotate}\n    secret: ${secret}\n`;
const policy = (...items: string[]): string =>
  `version: 1\nid: pol_of_this_test\nunmanaged: ignore\noauth_clients:\n${items.join("")}`;
const key = (rotate: string, life = "expires_in: 30d"): string =>
  `version: 1\nid: pol_of_this_test\nunmanaged: ignore\naccess_keys:\n  deploy:\n    type: service_account\n    scopes: ["push-ingest:*"]\n    ${life}\n    rotate: ${rotate}\n    accept_unproven: true\n    secret: { file: deploy.secret }\n`;

describe("integ plan", () => {
  it("shows missing items and changes nothing: --exit-code is 10, then 0 once it is applied", async () => {
    write(policy(item("a"), item("b")));
    const before = await integ("plan", "--json", "--exit-code");
    expect(before.code).toBe(10);
    expect(rowsOf(before)).toMatchObject([
      { name: "a", action: "create", state: "absent", slots_before: 0, slots_after: 1, resource_id: null, type: null },
      { name: "b", action: "create", scopes: ["entity:read"], service_account: service.us.service_account_id },
    ]);
    expect(await account.creations()).toEqual([]);
    expect(existsSync(home.path("state", "journal.ndjson"))).toBe(false);
    expect(resultsOf(await apply())).toEqual({ a: "done", b: "done" });
    const after = await integ("plan", "--json");
    expect({ code: after.code, actions: rowsOf(after).map(({ action }) => action) }).toEqual({
      code: 0,
      actions: ["none", "none"],
    });
  });

  it("of a name that no item has is exit 2 before anything is sent", async () => {
    write(policy(item("a")));
    const ended = await integ("plan", "--only", "c");
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(ended.stderr).toContain('no item of the policy is named "c"');
    expect(await account.requests()).toEqual([]);
  });
});

describe("integ apply", () => {
  it("changes nothing the second time", async () => {
    write(policy(item("a"), item("b", "{ every: 60d }", "[ { file: b.secret }, { command: cat > b.copy } ]")));
    expect(await apply()).toMatchObject({ code: 0 });
    expect(secretOf("b")).toBe(readFileSync(home.path("b.copy"), "utf8"));
    const creations = (await account.creations()).length;
    const again = await apply();
    expect({ code: again.code, results: resultsOf(again) }).toEqual({ code: 0, results: { a: "none", b: "none" } });
    expect((await account.creations()).length).toBe(creations);
    for (const { client_id } of await account.live())
      expect((await account.opens(client_id!, secretOf("a"))) || (await account.opens(client_id!, secretOf("b")))).toBe(
        true,
      );
  });

  it("rotates old credentials, keeps the overlap, and revokes the old one in a later run", async () => {
    write(policy(item("a")));
    await apply();
    const [first] = await account.live();
    await seconds(2);
    write(policy(item("a", "{ every: 1s, overlap: 900ms }")));
    const rotated = await apply();
    expect({ code: rotated.code, results: resultsOf(rotated) }).toEqual({ code: 0, results: { a: "waiting" } });
    expect((await account.live()).length).toBe(2);
    write(policy(item("a", "{ every: 60d }")));
    await seconds(2);
    const ended = await apply();
    expect(rowsOf(ended)).toMatchObject([{ action: "revoke_old", result: "done" }]);
    const [left, ...more] = await account.live();
    expect(more).toEqual([]);
    expect(left!.id).not.toBe(first!.id);
    expect(await account.opens(left!.client_id!, secretOf("a"))).toBe(true);
  });

  it("ends the overlap of a named item, and refuses an item without one", async () => {
    write(policy(item("a"), item("b")));
    await apply();
    write(
      policy(
        item("a", "{ every: 60d, overlap: 1h }").replace("[entity:read]", "[entity:read, organization:read]"),
        item("b"),
      ),
    );
    const planned = await apply();
    expect(resultsOf(planned)).toEqual({ a: "waiting", b: "none" });
    const { stderr } = await integ("apply", "--yes");
    expect(stderr).toContain("Applied: 0 created, 0 rotated, 0 failed, 1 waiting, 1 unchanged.");
    const ended = await apply("--finish", "a");
    expect(resultsOf(ended)).toEqual({ a: "done", b: "none" });
    expect((await account.live()).length).toBe(2);
    expect(await apply("--finish", "a")).toMatchObject({ code: 2, stdout: "" });
  });

  it("continues after a failed item, and the next run finishes that item", async () => {
    write(policy(item("a"), item("b"), item("c")));
    await service.fault("POST /v1/oauth_clients times=1 drop=after");
    const { code, stdout } = await integ("apply", "--yes", "--json", "--parallel", "1", "--retry-for", "0");
    expect(code).toBe(7);
    expect(resultsOf({ stdout } as Ended)).toEqual({ a: "failed", b: "done", c: "done" });
    const again = await apply();
    expect({ code: again.code, results: resultsOf(again) }).toEqual({
      code: 0,
      results: { a: "done", b: "none", c: "none" },
    });
    const live = await account.live();
    expect(live.length).toBe(3);
    for (const name of ["a", "b", "c"])
      expect(
        (await Promise.all(live.map(({ client_id }) => account.opens(client_id!, secretOf(name))))).filter(Boolean),
      ).toEqual([true]);
  });

  it("ends with the line of counts, also after a failure, except in JSON", async () => {
    write(policy(item("a"), item("b")));
    writeFileSync(home.path("a.secret"), "mine");
    const lastOf = ({ stderr }: Ended): string => stderr.trimEnd().split("\n").at(-1)!;
    const failed = await integ("apply", "--yes");
    expect([failed.code, failed.stderr]).toEqual([2, expect.stringMatching(/^Error: [^]* exit 2\n/m)]);
    expect(lastOf(failed)).toBe("Applied: 1 created, 0 rotated, 1 failed, 0 unchanged.");
    expect(lastOf(await apply())).toMatch(/^{"error":/);
    const [live] = await account.live();
    const revoked = await integ("oauth-clients", "revoke", "oac_none", live!.id, "--yes");
    expect([revoked.code, lastOf(revoked)]).toEqual([4, "Changed: 1 revoked, 1 failed."]);
  });

  it("leaves a file that integ did not write, and prints the options", async () => {
    write(policy(item("a")));
    writeFileSync(home.path("a.secret"), "mine");
    const { code, stderr } = await apply();
    expect([code, secretOf("a")]).toEqual([2, "mine"]);
    expect(stderr).toMatch(
      /Move the current content away, or name another destination in the policy .*integ apply --only a\b/s,
    );
    expect(stderr).not.toContain("--force");
  });

  it("delivers a kept secret whose destination failed", async () => {
    write(policy(item("a", undefined, "{ command: test -e fixed && cat > a.secret }")));
    const broken = await apply();
    expect(broken.code).toBe(12);
    expect(rowsOf(await integ("plan", "--json"))).toMatchObject([{ action: "create", state: "undelivered" }]);
    writeFileSync(home.path("fixed"), "");
    expect(resultsOf(await apply())).toEqual({ a: "done" });
    const [one, ...more] = await account.live();
    expect(more).toEqual([]);
    expect(await account.opens(one!.client_id!, secretOf("a"))).toBe(true);
  });

  it("asks, and needs --yes without a terminal", async () => {
    write(policy(item("a")));
    expect(await integ("apply")).toMatchObject({ code: 2, stdout: "" });
    expect(await account.creations()).toEqual([]);
  });

  it("creates and replaces access keys", async () => {
    write(key("{ before_expiry: 5d }"));
    expect(resultsOf(await apply())).toEqual({ deploy: "done" });
    const first = secretOf("deploy");
    write(key("{ before_expiry: 29d, overlap: 0s }", "expires_in: 30d"));
    expect(resultsOf(await apply())).toEqual({ deploy: "none" });
    await seconds(1);
    write(key("{ every: 1ms, overlap: 0s }"));
    expect(resultsOf(await apply())).toEqual({ deploy: "done" });
    expect(secretOf("deploy")).not.toBe(first);
    const entries = rowsOf(await integ("journal", "list", "--all", "--json")) as unknown as { policy_name?: string }[];
    expect(entries.every(({ policy_name }) => policy_name === "deploy")).toBe(true);
  });
});

describe("a saved plan", () => {
  it("is applied unchanged", async () => {
    write(policy(item("a"), item("b")));
    expect((await integ("plan", "--exit-code", "--only", "a", "--out", "plan.json")).code).toBe(10);
    expect(resultsOf(await apply("plan.json"))).toEqual({ a: "done" });
  });

  it("is refused after a change, which it names, and leaves no lock", async () => {
    write(policy(item("a"), item("b")));
    await integ("plan", "--out", "plan.json");
    await apply("--only", "b");
    const creations = (await account.creations()).length;
    const refused = await apply("plan.json");
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toContain("Changed: b.");
    expect((await account.creations()).length).toBe(creations);
    expect(resultsOf(await apply())).toEqual({ a: "done", b: "none" });
  });

  it("is not accepted as a policy, nor a policy as a plan", async () => {
    const text = policy(item("a"));
    write(text);
    const mistaken = await integ("apply", "integ.yaml", "--yes");
    expect([mistaken.code, mistaken.stderr]).toEqual([2, expect.stringContaining("Next: integ apply -f integ.yaml")]);
    const refused = await integ("plan", "--out", "integ.yaml");
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("exists and is not a plan")]);
    expect(readFileSync(home.path("integ.yaml"), "utf8")).toBe(text);
    for (const before of ["", '{\n  "object": "plan",\n  "vers']) {
      write(before, "plan.json");
      expect((await integ("plan", "--exit-code", "--out", "plan.json")).code).toBe(10);
    }
    expect(resultsOf(await apply("plan.json"))).toEqual({ a: "done" });
  });

  it("is refused if the policy or the plan was edited", async () => {
    write(policy(item("a")));
    await integ("plan", "--out", "plan.json");
    const text = readFileSync(home.path("plan.json"), "utf8");
    for (const [old, edited] of [
      [/"item a": "./, '"item a": "z'],
      [/"made_at": "\d+/, '"made_at": "2999'],
      ['"only": []', '"only": ["a"]'],
      ['"action": "create"', '"action": "none"'],
      ['"made_from"', '"other": 1, "made_from"'],
    ] as const) {
      write(text.replace(old, edited), "edited.json");
      const { code, stderr } = await apply("edited.json");
      expect([code, stderr]).toEqual([2, expect.stringContaining("its digest does not belong to its content")]);
    }
    for (const [file, content] of [
      ["no.json", "{}"],
      ["version.json", text.replace('"version": 1', '"version": 2')],
      ["cut.json", text.slice(0, 50)],
    ] as const) {
      write(content, file);
      expect(await apply(file)).toMatchObject({ code: 2, stdout: "" });
    }
    write(policy(item("a", "{ every: 30d }")));
    expect((await apply("plan.json")).stderr).toContain("Changed: a.");
    expect(await account.creations()).toEqual([]);
    rmSync(home.path("plan.json"));
    expect(await apply("plan.json")).toMatchObject({ code: 2 });
  });
});

it("shows each step for a person once, with its items, in the plan and after apply", async () => {
  expect((await integ(...creationWords(service, "--new", "--secret-file", "c.secret"))).code).toBe(0);
  write(policy(item("a"), item("b", "{ every: 60d }", "unknown"), item("c"), item("d", "{ every: 60d }", "unknown")));
  const planned = (await integ("plan")).stderr;
  expect(planned).toMatch(
    /b, d: Name the destination in the policy file: replace `secret: unknown`\.\nNext: integ apply --adopt\n$/,
  );
  const { code, stderr } = await integ("apply", "--yes");
  expect(code).toBe(10);
  expect(stderr).toMatch(
    /c: integ adopt oauth-client oac_\w+ --name c\n[^]*3 items need a decision\.\n +exit 10\nApplied: /,
  );
  expect(stderr.match(/replace `secret/g)).toHaveLength(1);
});

it("names the policy's profile in the next step of a plan that needs too many clients", async () => {
  const own = await homeWithProfile(service, { names: [] });
  onTestFinished(() => own.remove());
  const items = Array.from({ length: 21 }, (_, index) => item(`c${index}`));
  writeFileSync(own.path("many.yaml"), `${policy(...items)}profile: prod\n`);
  const { us } = service;
  expect((await own.integ(["plan", "-f", "many.yaml"])).stderr).toMatch(
    new RegExp(
      `at least 0 and needs 21 more, but may have 20\\.[^]*Next: integ oauth-clients list --service-account ${us.service_account_id} -p prod\n`,
    ),
  );
});

describe("integ status", () => {
  interface Status {
    readonly topic: string;
    readonly name: string;
  }

  it("shows profile, unfinished changes, due rotations, slots and keys about to expire", async () => {
    write(policy(item("a"), item("b")));
    await apply("--only", "a");
    await service.fault("POST /v1/oauth_clients times=1 drop=after");
    await integ("apply", "--yes", "--retry-for", "0");
    const { code, stdout } = await integ("status", "--json");
    expect(code).toBe(0);
    const rows = (JSON.parse(stdout) as { data: { topic: string; name: string; state: string; detail: string }[] })
      .data;
    expect(rows).toMatchObject([
      { topic: "profile", name: "env", state: "us" },
      { topic: "journal", state: "unknown", detail: "oauth_client.create b" },
      { topic: "policy", name: "b", state: "create" },
      { topic: "slots", name: service.us.service_account_id, state: "2 of 20" },
      ...rows.slice(4).map(() => ({ topic: "key" })),
    ]);
    expect(rows.slice(4).map(({ name }) => name)).toContain("ak_us_ending");
  });

  it("explains what a person must do for items that apply skips, and names the policy's file", async () => {
    expect((await integ(...creationWords(service, "--new", "--secret-file", "b.secret"))).code).toBe(0);
    write(policy(item("a", "{ every: 60d }", "unknown"), item("b"), item("c")), "other.yaml");
    const { stdout } = await integ("status", "-f", "other.yaml", "--json");
    const rows = (
      JSON.parse(stdout) as { data: { topic: string; name: string; next_step: string; detail: string }[] }
    ).data.filter(({ topic }) => topic === "policy");
    expect(rows.map(({ name, next_step }) => [name, next_step])).toEqual([
      ["a", null],
      ["b", expect.stringMatching(/^integ adopt oauth-client oac_\w+ -f other.yaml --name b$/)],
      ["c", "integ apply -f other.yaml --only c"],
    ]);
    expect(rows[0]!.detail).toMatch(/unknown\. Name the destination in the policy file: replace `secret: unknown`$/);
    expect((await integ(...rows[1]!.next_step.split(" ").slice(1), "--yes")).code).toBe(0);
    expect(resultsOf(await apply("-f", "other.yaml", "--only", "c"))).toEqual({ c: "done" });
  });

  it("needs no policy", async () => {
    expect((await integ("status")).code).toBe(0);
    expect((await integ("status", "-f", "none.yaml")).code).toBe(2);
  });

  it("has a row for keys and for the folder's policy that could not be read; a named policy file is exit 2", async () => {
    const rowsNow = async (...words: string[]) => {
      const { code, stdout, stderr } = await integ("status", "--json", "--retry-for", "0", ...words);
      expect(code, stderr).toBe(0);
      return (JSON.parse(stdout) as { data: object[] }).data;
    };
    for (const status of [401, 403, 500]) {
      await service.fault(`GET /api/v1/access-keys status=${status} times=1`);
      const unread = { topic: "key", name: "access keys", state: "unknown" };
      expect(await rowsNow()).toMatchObject([
        { topic: "profile" },
        {
          ...unread,
          detail: expect.stringMatching(/^could not be read: /),
          next_step: expect.stringMatching(/^integ /),
        },
      ]);
    }
    write("version: [1\n");
    expect(await rowsNow()).toContainEqual({
      topic: "policy",
      name: "policy",
      state: "unknown",
      due_at: null,
      next_step: "integ policy check --offline",
      detail: expect.stringMatching(/^integ\.yaml:2:1: not valid YAML/),
    });
    expect(await integ("status", "-f", "integ.yaml")).toMatchObject({ code: 2, stdout: "" });
  });

  it("shows what the journal knows if the service is not reached or the policy names no profile", async () => {
    write(policy(item("a")));
    await apply();
    await service.fault("* /* drop=before");
    const shown = async (): Promise<object[]> =>
      (JSON.parse((await integ("status", "--json", "--retry-for", "0")).stdout) as { data: object[] }).data;
    const unread = { state: "unknown", detail: expect.stringMatching(/^not reached: /), next_step: "integ doctor" };
    expect(await shown()).toMatchObject([
      { topic: "profile" },
      { topic: "slots", state: "1 of 20" },
      { topic: "policy", name: "policy", ...unread },
      { topic: "key", name: "access keys", ...unread },
    ]);
    await service.calm();
    write(`${policy(item("a"))}profile: absent\n`);
    expect(await shown()).toContainEqual(
      expect.objectContaining({ topic: "policy", state: "unknown", detail: expect.stringContaining("absent") }),
    );
  });

  it("omits the expiry of a key that is being replaced, or that a due item replaces", async () => {
    const expiringKeys = async (): Promise<string[]> =>
      (JSON.parse((await integ("status", "--json", "--expires-within", "31d")).stdout) as { data: Status[] }).data
        .filter(({ topic }) => topic === "key")
        .map(({ name }) => name);
    write(key("{ before_expiry: 5d }"));
    const [{ resource_id: id }] = rowsOf(await apply()) as [Row];
    expect(await expiringKeys()).toContain(id);
    await seconds(2);
    write(key("{ every: 1s, overlap: 900ms }"));
    expect(await expiringKeys()).not.toContain(id);
    const waiting = await apply();
    expect(resultsOf(waiting)).toEqual({ deploy: "waiting" });
    expect(rowsOf(waiting)[0]!.message).toBe("rotated; the old key is revoked at the end of the overlap");
    rmSync(home.path("integ.yaml"));
    expect(await expiringKeys()).not.toContain(id);
  });
});

describe("integ oauth-clients audit", () => {
  it("has one remedy for each client, and --fix applies the safe ones after a question", async () => {
    write(policy(item("a")));
    await apply();
    const other = await integ(...creationWords(service, "--secret-file", "o", "--json"));
    const { id } = JSON.parse(other.stdout) as { id: string };
    const audited = await integ("oauth-clients", "audit", "--json");
    expect(audited.code).toBe(10);
    expect(rowsOf(audited)).toMatchObject([
      {
        id: `undeclared:${id}`,
        remedy: `integ adopt oauth-client ${id} --name ${service.us.service_account_id.slice(3)}`,
      },
    ]);
    rmSync(home.path("integ.yaml"));
    expect(await integ("oauth-clients", "audit", "--json")).toMatchObject({ code: 0 });
    await service.control("POST", `/oauth_clients/${id}`, { status: "disabled" });
    expect(rowsOf(await integ("oauth-clients", "audit", "--json"))).toMatchObject([
      { rule: "unusable", remedy: `integ oauth-clients revoke ${id}` },
    ]);
    expect((await integ("oauth-clients", "audit", "--fix")).code).toBe(2);
    expect((await account.clients()).find((client) => client.id === id)?.status).toBe("disabled");
    expect((await integ("oauth-clients", "audit", "--fix", "--yes")).code).toBe(0);
    expect((await account.clients()).find((client) => client.id === id)?.status).toBe("revoked");
    expect(rowsOf(await integ("oauth-clients", "audit", "--json", "--max-age", "1ms")).length).toBeLessThanOrEqual(1);
  });
});

describe("several credentials and other names", () => {
  it("revokes several clients, and all of a service account that the journal knows", async () => {
    write(policy(item("a"), item("b"), item("c")));
    await apply();
    const [first, second] = await account.live();
    const both = await integ("oauth-clients", "revoke", first!.id, second!.id, first!.id, "--yes", "--json");
    expect(both.code).toBe(0);
    expect((JSON.parse(both.stdout) as { data: { status: string }[] }).data.map(({ status }) => status)).toEqual([
      "revoked",
      "revoked",
    ]);
    expect((await integ("oauth-clients", "revoke", "--all", "--yes")).code).toBe(2);
    expect((await account.live()).length).toBe(1);
    expect(
      (await integ("oauth-clients", "revoke", "--service-account", service.us.service_account_id, "--all", "--yes"))
        .code,
    ).toBe(0);
    expect(await account.live()).toEqual([]);
  });

  it("rotates by the name of an item, and by the id of a predecessor", async () => {
    write(policy(item("a")));
    await apply();
    const [first] = await account.live();
    const one = await integ("oauth-clients", "rotate", "--name", "a", "--secret-file", "a.secret", "--force", "--json");
    expect(one.code).toBe(0);
    const [second] = await account.live();
    const two = await integ("oauth-clients", "rotate", first!.id, "--secret-file", "a.secret", "--force");
    expect(two.stderr).toContain(`${first!.id} was rotated; its successor is ${second!.id}.`);
    const [third, ...more] = await account.live();
    expect({ more, isNew: third!.id !== second!.id }).toEqual({ more: [], isNew: true });
    expect(rowsOf(await integ("plan", "--json"))).toMatchObject([{ action: "none", resource_id: third!.id }]);
    expect((await integ("oauth-clients", "rotate", "--name", "z", "--secret-file", "z")).code).toBe(4);
  });

  it("shows a key by its id or name, and lists by status and name", async () => {
    const byName = await integ("keys", "get", "idle (sandbox)", "--json");
    const { id } = JSON.parse(byName.stdout) as { id: string };
    expect(JSON.parse((await integ("keys", "get", id, "--json")).stdout)).toMatchObject({ id, name: "idle (sandbox)" });
    expect((await integ("keys", "get", "nobody")).code).toBe(4);
    const some = await integ("keys", "list", "--name", "*(sandbox)", "--status", "active", "--json");
    expect(rowsOf(some).length).toBeGreaterThan(2);
    expect(rowsOf(await integ("keys", "list", "--name", "idle", "--json"))).toEqual([]);
  });
});
