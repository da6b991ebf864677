// A start loads only what its command needs, works without a home that it can write to, and outlives the program's files.
import { spawn } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import nodeModule from "node:module";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { rolldown, type OutputChunk } from "rolldown";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import config from "../../scripts/rolldown.config.mts";
import { type Ended, ended, Home, isOtherBinary, root } from "../support/program.ts";
import { startService } from "../support/service.ts";
import { pagesOf, startListServer } from "./list-server.ts";

/** Packages that a person who asks for help or presses Tab does not wait for. */
const heavy = ["zod", "undici", "conf", "ora", "@clack/prompts", "oauth4webapi", "yaml", "pg"];

const folder = mkdtempSync(join(tmpdir(), "integ-start-"));
const home = new Home();
/** The files of the bundle with the modules that are in them. */
const modulesIn = new Map<string, readonly string[]>();

beforeAll(async () => {
  const bundle = await rolldown(config);
  const { output } = await bundle.write({ ...config.output, dir: join(folder, "dist") });
  await bundle.close();
  for (const chunk of output.filter((one): one is OutputChunk => one.type === "chunk"))
    modulesIn.set(chunk.fileName, chunk.moduleIds);
  cpSync(join(root, "bin"), join(folder, "bin"), { recursive: true });
  const list = "require('node:fs').writeFileSync(process.env.LOADED, JSON.stringify(Object.keys(require.cache)))";
  writeFileSync(join(folder, "list.cjs"), `process.on('exit', () => ${list});`);
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
  home.remove();
});

/** Runs the built copy as a person's own process. */
function run(
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
  ofNode: string[] = [],
): Promise<Ended> {
  const { NODE_OPTIONS: _recording, NODE_DISABLE_COMPILE_CACHE: _off, ...own } = home.env;
  const child = spawn(process.execPath, [...ofNode, join(folder, "bin", "integ.js"), ...words], {
    env: { ...own, XDG_CACHE_HOME: home.path("cache"), ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  return ended(child);
}

/** @returns the files of the bundle that a command line loads */
async function filesLoadedBy(words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string[]> {
  const told = join(folder, "loaded.json");
  const { code, stderr } = await run(words, { ...env, LOADED: told }, ["--require", join(folder, "list.cjs")]);
  if (code !== 0) throw new Error(`integ ${words.join(" ")} ended with ${code}: ${stderr}`);
  const files = JSON.parse(readFileSync(told, "utf8")) as string[];
  return files.filter((one) => one.startsWith(join(folder, "dist"))).map((one) => basename(one));
}

async function heavyLoadedBy(words: readonly string[]): Promise<string[]> {
  const modules = (await filesLoadedBy(words)).flatMap((file) => modulesIn.get(file)!);
  return heavy.filter((name) => modules.some((module) => module.includes(`/node_modules/${name}/`)));
}

const isElse = isOtherBinary("which of the package's files a command loads");

describe.skipIf(isElse)("a start", () => {
  it.each(["--version", "-V"])("is one small file for %s", async (word) => {
    expect(await filesLoadedBy([word])).toEqual(["main.cjs"]);
  });

  it("would be seen loading a package", async () => {
    expect(await heavyLoadedBy(["profiles", "list"])).toContain("zod");
    expect(await heavyLoadedBy(["entities", "list", "--profile", "sandbox"])).toContain("undici");
  });

  it.each([
    "--help",
    "help states",
    "keys create --help",
    "apply --help",
    "completion bash",
    "__complete oauth-clients create :--",
    "__complete profiles show :",
  ])("loads no schema, no HTTP client and no prompt for %s", async (line) => {
    expect(await heavyLoadedBy(line.split(" "))).toEqual([]);
  });

  it("prints how many files of src/ a list and a creation load", async () => {
    const server = await startListServer(pagesOf([3]));
    const service = await startService();
    const words = ["oauth-clients", "create", "--service-account", service.us.service_account_id];
    const rest = ["--scope", "entity:read", "--secret-file", home.path("secret")];
    for (const [line, env] of [
      [["entities", "list", "--json"], server.env],
      [[...words, ...rest], service.env],
    ] as const) {
      const modules = (await filesLoadedBy(line, env)).flatMap((file) => modulesIn.get(file)!);
      const ours = modules.filter((module) => module.startsWith(join(root, "src")));
      expect(ours.length).toBeGreaterThan(20);
      console.log(`integ ${line.slice(0, 2).join(" ")} loads ${ours.length} files of src/`);
    }
    await service.stop();
    await server.stop();
  });

  it("says what to do in a clone that has not been built", async () => {
    renameSync(join(folder, "dist"), join(folder, "dist.old"));
    const { code, stdout, stderr } = await run(["--help"]);
    renameSync(join(folder, "dist.old"), join(folder, "dist"));
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toBe(`integ: this copy is not built. Run npm ci in ${folder}.\n`);
  });

  it("changes no end of a change whose program is removed while its request is on its way", async () => {
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
    expect([code, stderr]).toEqual([0, expect.stringContaining("The secret is in")]);
    expect([JSON.parse(stdout), readFileSync(secret, "utf8").trim()]).toMatchObject([{ id: "oc_1" }, "s-1"]);
  });
});

describe.skipIf(isElse)("compiled code", () => {
  const list = ["profiles", "list", "--json"];
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

  it("is not needed: two starts under a home that cannot be written to print the same", async () => {
    const nowhere = { HOME: "/dev/null", XDG_CACHE_HOME: "/dev/null/cache" };
    const ends = [await run(list, nowhere), await run(list, nowhere)];
    for (const end of ends) expect(end).toMatchObject({ code: 0, stderr: "" });
    expect(ends[0]).toEqual(ends[1]);
  });

  it("is kept nowhere for --version", async () => {
    const unused = home.path("unused");
    await run(["--version"], { XDG_CACHE_HOME: unused });
    expect(existsSync(unused)).toBe(false);
  });
});
