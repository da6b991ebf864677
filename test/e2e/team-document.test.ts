import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PostgresServer, teamAccess } from "../support/postgres.ts";
import { Home, root } from "../support/program.ts";
import { type Service, startService } from "../support/service.ts";
import { isMissing } from "../support/tools.mjs";

const text = readFileSync(join(root, "docs/team.md"), "utf8");
const blocks = (language: string): string[] =>
  [...text.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, "g"))].map((match) => match[1] ?? "");

describe.skipIf(isMissing("PostgreSQL"))("docs/team.md", () => {
  let server: PostgresServer;
  let service: Service;
  let home: Home;

  const withLocalValues = (line: string): string => line.replaceAll("db.example.com", `127.0.0.1:${server.port}`);

  async function run(block: string, env: Readonly<Record<string, string>> = {}): Promise<void> {
    for (const line of withLocalValues(block)
      .split("\n")
      .filter((one) => one.includes("integ "))) {
      const words = line.split(" ");
      const set = words.filter((word, index) => /^[A-Z_]+=/.test(word) && index < words.indexOf("integ"));
      const variables = Object.fromEntries(set.map((word) => word.split(/=(.*)/s).slice(0, 2) as [string, string]));
      const ended = await home.integ(words.slice(words.indexOf("integ") + 1), { env: { ...env, ...variables } });
      expect(ended.code, `${line}\n${ended.stderr}`).toBe(0);
    }
  }

  beforeAll(async () => {
    [server, service] = await Promise.all([PostgresServer.start(), startService()]);
    home = new Home({ ...teamAccess, PGPASSWORD: "…" });
    const { base_url, organization_id, api_key } = service.us;
    const words = ["--region", "us", "--base-url", base_url, "--organization-id", organization_id, "--api-key-stdin"];
    const added = await home.integ(["profiles", "add", "prod", ...words, "--no-verify"], { input: api_key });
    expect(added.code, added.stderr).toBe(0);
  });
  afterAll(async () => {
    home.remove();
    await service.stop();
    await server.remove();
  });

  it("sets up a journal with two roles, one of which cannot delete", async () => {
    const [superuser = "", owner = ""] = blocks("sql");
    const [init = "", profile = ""] = blocks("sh");
    // The page creates a role and a database of this name, which the test's server already has.
    await server.sql("DROP DATABASE integ");
    await server.sql("DROP ROLE integ");
    for (const statement of superuser.split(";\n").filter((one) => one.trim() !== "")) await server.sql(statement);
    await run(init);
    await server.sql(owner, "integ");
    await run(profile);
    const create = ["oauth-clients", "create", "--service-account", service.us.service_account_id];
    const request = [...create, "--scope", "entity:read", "--new"];
    const created = await home.integ([...request, "--secret-file", "s"]);
    expect(created.code, created.stderr).toBe(0);
    const undelivered = await home.integ([...request, "--secret-command", "exit 1"]);
    expect(undelivered.code, undelivered.stderr).toBe(12);
    const { data } = JSON.parse((await home.integ(["journal", "list", "--json"])).stdout) as { data: { id: string }[] };
    const claimed = await home.integ(["journal", "claim", data[0]?.id ?? "", "--secret-file", "t"]);
    expect(claimed.code, claimed.stderr).toBe(0);
    expect((await home.integ(["journal", "verify"])).code).toBe(0);
    const pruned = await home.integ(["journal", "prune", "--older-than", "0", "--include-live"]);
    expect([pruned.code, pruned.stderr]).toEqual([2, expect.stringContaining("does not permit this to the role")]);
    for (const change of ["UPDATE integ_records SET content = ''", "DELETE FROM integ_records"])
      await expect(server.sql(`SET ROLE integ; ${change}`, "integ")).rejects.toThrow("permission denied");
  });

  it("moves a journal in and out", async () => {
    const [into = "", out = ""] = (blocks("sh").at(-1) ?? "").split("\n");
    const owner = { INTEG_JOURNAL: withLocalValues("postgresql://integ_owner@db.example.com/integ") };
    const file = { INTEG_JOURNAL: home.path("journal.ndjson") };
    await run(out, owner);
    await run(into.replace("integ@", "integ_owner@"), file);
    expect((await home.integ(["journal", "verify"])).code).toBe(0);
  });

  it("backs a journal up and restores it", async () => {
    for (const [, words = ""] of text.matchAll(/`integ (journal (?:export|import)[^`]*)`/g)) {
      const owner = { INTEG_JOURNAL: withLocalValues("postgresql://integ_owner@db.example.com/integ") };
      const ended = await home.integ(words.replace("journal.ndjson", "backup.ndjson").split(" "), { env: owner });
      expect(ended.code, `${words}\n${ended.stderr}`).toBe(0);
    }
  });
});
