import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:http";
import nodeModule from "node:module";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import config from "../../scripts/rolldown.config.mts";
import { type Ended, ended, Home, isOtherBinary, root } from "../support/program.ts";
import { pagesOf, startListServer } from "./list-server.ts";

const folder = mkdtempSync(join(tmpdir(), "integ-start-"));
const home = new Home();

beforeAll(async () => {
  const bundle = await rolldown(config);
  await bundle.write({ ...config.output, dir: join(folder, "dist") });
  await bundle.close();
  cpSync(join(root, "bin"), join(folder, "bin"), { recursive: true });
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
  home.remove();
});

function run(words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  const { NODE_OPTIONS: _recording, NODE_DISABLE_COMPILE_CACHE: _off, ...own } = home.env;
  const child = spawn(process.execPath, [join(folder, "bin", "integ.js"), ...words], {
    env: { ...own, XDG_CACHE_HOME: home.path("cache"), ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  return ended(child);
}

const isSkipped = isOtherBinary("how the package starts");

describe.skipIf(isSkipped)("a start", () => {
  it("explains how to build a clone that has not been built", async () => {
    renameSync(join(folder, "dist"), join(folder, "dist.old"));
    const { code, stdout, stderr } = await run(["--help"]);
    renameSync(join(folder, "dist.old"), join(folder, "dist"));
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toBe(`integ: this copy is not built. Run npm ci in ${folder}.\n`);
  });

  it("completes a change as usual if the program is removed during its request", async () => {
    const dist = join(folder, "dist");
    const client = { object: "oauth_client", id: "oc_1", service_account_id: "sa_1", client_id: "cid_1" };
    const receipt = { ...client, status: "active", scopes: ["entity:read"], created_at: new Date().toISOString() };
    const server = createServer((_request, response) => {
      renameSync(dist, `${dist}.old`);
      response.writeHead(201, { "content-type": "application/json" });
      response.end(JSON.stringify({ ...receipt, client_secret: "s-1" }));
    });
    await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done));
    const secret = home.path("client.secret");
    const words = ["oauth-clients", "create", "--service-account", "sa_1", "--scope", "entity:read", "--json"];
    const { code, stdout, stderr } = await run([...words, "--secret-file", secret], {
      INTEG_REGION: "us",
      INTEG_BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      INTEG_API_KEY: "key",
    });
    server.close();
    renameSync(`${dist}.old`, dist);
    expect([code, stderr]).toEqual([0, expect.stringContaining(secret)]);
    expect([JSON.parse(stdout), readFileSync(secret, "utf8").trim()]).toMatchObject([{ id: "oc_1" }, "s-1"]);
  });
});

describe.skipIf(isSkipped)("compiled code", () => {
  const cached = home.path("cache", "integ");

  it.skipIf(!("enableCompileCache" in nodeModule))(
    "is kept for the next start, readable by this user alone",
    async () => {
      const server = await startListServer(pagesOf([3]));
      const page = ["entities", "list", "--json"];
      const first = await run(page, server.env);
      const second = await run(page, server.env);
      await server.stop();
      expect([first.code, second]).toEqual([0, first]);
      expect(statSync(cached).mode & 0o777).toBe(0o700);
      const files = readdirSync(cached, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
      expect(files.length).toBeGreaterThan(10);
      for (const { parentPath, name } of files) {
        const text = readFileSync(join(parentPath, name), "latin1");
        for (const mark of ["key-of-a-test", "127.0.0.1:", "Person"])
          expect(text.includes(mark), `${mark} in ${name}`).toBe(false);
      }
    },
  );
});
