// With an unusable team journal, the error and its fix are reported soon, and nothing is sent.
import { readdirSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { temporaryFolder } from "../support/bundle-driver.ts";
import { type Certificate, makeAuthority } from "../support/certificates.ts";
import { PostgresServer, role, teamAccess } from "../support/postgres.ts";
import { homeOfTest } from "../support/service.ts";
import { isMissing } from "../support/tools.mjs";

let server: PostgresServer;
let service: Server;
let connections = 0;

async function startCounting(): Promise<string> {
  service = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
  const address = service.address();
  return `http://127.0.0.1:${typeof address === "object" && address ? address.port : 0}`;
}

let env: Record<string, string> = {};

beforeAll(async () => {
  env = { INTEG_REGION: "us", INTEG_BASE_URL: await startCounting(), INTEG_API_KEY: "k", ...teamAccess };
});
afterAll(() => service.close());

const creation = "oauth-clients create --service-account sa_1 --scope entity:read --secret-file s".split(" ");

interface Case {
  readonly journal: string;
  readonly env?: Record<string, string>;
  readonly code: number;
  readonly says: string;
  readonly next?: string;
}

async function check({ journal, env: more, code, says, next }: Case): Promise<void> {
  const home = homeOfTest({ ...env, INTEG_JOURNAL: journal, ...more });
  const before = connections;
  for (const words of [creation, ["journal", "list"]]) {
    const started = performance.now();
    const ended = await home.integ([...words, "-o", "json"]);
    expect(ended.stderr).toContain(says);
    expect(ended.code, ended.stderr).toBe(code);
    const { error } = JSON.parse(ended.stderr.trim().split("\n").at(-1) ?? "") as { error: Record<string, unknown> };
    expect(error.exit_code).toBe(code);
    if (next !== undefined) expect(error.next_command ?? error.hint).toBe(next);
    expect(error.next_command ?? error.hint).toMatch(/.{6}/);
    expect(ended.stderr).not.toMatch(/canary|\n\s+at /);
    // The search for a server ends within 5 s. The rest allows for a slow start of the process on a busy machine.
    expect(performance.now() - started).toBeLessThan(20_000);
  }
  const { stdout, stderr } = await home.integ(["journal", "path"]);
  expect(`${stdout}${stderr}`).not.toContain("canary");
  expect(readdirSync(home.folder).filter((name) => name !== "s")).toEqual([]);
  expect(connections).toBe(before);
}

describe("without a server", () => {
  it("a closed port", async () => {
    const journal = "postgresql://integ:canary@127.0.0.1:9/integ";
    await check({ journal, code: 11, says: "connection refused" });
  });

  it("libpq's key-value notation is never taken for a file name, and is not repeated", async () => {
    const home = homeOfTest(env);
    const add = ["profiles", "add", "p", "--region", "us", "--base-url", env.INTEG_BASE_URL!, "--api-key-stdin"];
    expect((await home.integ(add, { input: "key-of-a-test" })).code).toBe(0);
    const before = readdirSync(home.folder);
    for (const words of ["profiles edit p --journal", "journal move --to", "journal import"]) {
      const typed = [...words.split(" "), "host=db.example password=canary dbname=integ"];
      const { code, stderr } = await home.integ(typed);
      expect([words, code, stderr]).toEqual([words, 2, expect.stringMatching(/address/)]);
      expect(stderr).not.toContain("canary");
    }
    expect(readdirSync(home.folder)).toEqual(before);
  });

  it("a host that never replies: 5 s for all hosts together", async () => {
    const silent = createServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void silent.close());
    const at = silent.address();
    const port = typeof at === "object" && at ? at.port : 0;
    const journal = `postgresql://integ:canary@127.0.0.1:${port},127.0.0.1:${port}/integ`;
    await check({ journal, code: 11, says: "no response within 3 s" });
  });
});

describe.skipIf(isMissing("PostgreSQL"))("with a server", () => {
  beforeAll(async () => {
    server = await PostgresServer.start();
  });
  afterAll(() => server.remove());

  it("a wrong password", async () => {
    const journal = `postgresql://${role.name}@127.0.0.1:${server.port}/integ`;
    await check({ journal, env: { PGPASSWORD: "canary" }, code: 2, says: "refuses the password" });
  });

  it("a missing schema", async () => {
    const says = "The schema missing of this database does not have a journal yet";
    await check({ journal: server.address("missing"), code: 2, says, next: "integ journal init" });
  });

  it("a read-only server: lists work, nothing changes", async () => {
    const home = homeOfTest({ ...env, INTEG_JOURNAL: server.address("readonly") });
    await home.integ(["journal", "init"]);
    await server.sql(`ALTER ROLE ${role.name} SET default_transaction_read_only = on`);
    onTestFinished(async () => void (await server.sql(`ALTER ROLE ${role.name} RESET default_transaction_read_only`)));
    const before = connections;
    const created = await home.integ(creation);
    expect([created.code, created.stderr]).toEqual([11, expect.stringContaining("is read-only")]);
    expect((await home.integ(["journal", "list"])).code).toBe(0);
    const verified = await home.integ(["journal", "verify", "--json"]);
    expect([verified.code, verified.stdout]).toEqual([10, expect.stringContaining("is read-only")]);
    expect(connections).toBe(before);
  });

  describe.skipIf(isMissing("openssl"))("that uses TLS", () => {
    async function serve({ key, cert }: Certificate): Promise<void> {
      for (const [name, text] of [
        ["server.key", key],
        ["server.crt", cert],
      ] as const) {
        const path = join(server.data, name);
        writeFileSync(path, text, { mode: 0o600 });
        server.give(path);
      }
      await server.sql("ALTER SYSTEM SET ssl = on");
      await server.sql("SELECT pg_reload_conf()");
      await new Promise((resolve) => setTimeout(resolve, 300));
    }

    function clientFiles({ key, cert }: Certificate): { readonly key: string; readonly cert: string } {
      const folder = temporaryFolder();
      const files = { key: join(folder, "own.key"), cert: join(folder, "own.crt") };
      writeFileSync(files.key, key, { mode: 0o600 });
      writeFileSync(files.cert, cert);
      return files;
    }

    const full = (rest: string): string =>
      `postgresql://${role.name}@localhost:${server.port}/${role.name}?sslmode=verify-full${rest}`;

    it("an untrusted, misnamed or expired certificate is refused; a matching one works", async () => {
      const authority = makeAuthority(temporaryFolder());
      const other = makeAuthority(temporaryFolder());
      const trusting = `&sslrootcert=${authority.path}`;
      await serve(authority.sign(["DNS:db.example"]));
      await check({ journal: full(""), code: 11, says: "its certificate is not trusted" });
      await check({ journal: full(`&sslrootcert=${other.path}`), code: 11, says: "not trusted" });
      await check({ journal: full(trusting), code: 11, says: "is not in the cert's altnames: DNS:db.example" });
      for (const mode of ["require", "verify-ca"])
        await check({
          journal: full(trusting).replace("verify-full", mode),
          env: { NODE_TLS_REJECT_UNAUTHORIZED: "0" },
          code: 11,
          says: "its certificate is for another name",
        });
      await serve(authority.sign(["DNS:localhost"], { isExpired: true }));
      await check({ journal: full(trusting), code: 11, says: "certificate has expired" });
      await serve(authority.sign(["DNS:localhost"]));
      const mine = clientFiles(authority.sign(["DNS:me"]));
      const others = clientFiles(authority.sign(["DNS:other"]));
      const swapped = `${trusting}&sslcert=${mine.cert}&sslkey=${others.key}`;
      await check({ journal: full(swapped), code: 2, says: "key values mismatch" });
      const home = homeOfTest({ ...env, INTEG_JOURNAL: full(trusting) });
      expect((await home.integ(["journal", "init"])).code).toBe(0);
      expect((await home.integ(["journal", "list"])).code).toBe(0);
    });
  });
});
