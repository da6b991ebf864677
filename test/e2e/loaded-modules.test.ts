// Help and completion load nothing that they do not need: what a process really loaded, told back to packages.
import { spawn } from "node:child_process";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { rolldown, type OutputChunk } from "rolldown";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import config from "../../scripts/rolldown.config.mts";
import { filesBelow } from "../../scripts/source-graph.mjs";
import { ended, Home, isOtherBinary, root } from "../support/program.ts";
import { startService } from "../support/service.ts";
import { pagesOf, startListServer } from "./list-server.ts";

/** Packages that a person who asks for help or presses Tab does not wait for. */
const heavy = ["zod", "undici", "conf", "ora", "@clack/prompts", "oauth4webapi", "yaml"];

const folder = mkdtempSync(join(tmpdir(), "integ-loaded-"));
const home = new Home();
/** Packages that stand in each file of the bundle. */
const packagesIn = new Map<string, Set<string>>();
/** The files of the bundle, each with those that are loaded with it. */
const chunks = new Map<string, OutputChunk>();

beforeAll(async () => {
  const bundle = await rolldown(config);
  const output = { ...config.output, dir: join(folder, "dist") };
  const written = await bundle.write(output);
  await bundle.close();
  for (const chunk of written.output.filter((one): one is OutputChunk => one.type === "chunk")) {
    chunks.set(chunk.fileName, chunk);
    packagesIn.set(chunk.fileName, new Set(chunk.moduleIds.map(packageOf).filter((name) => name !== undefined)));
  }
  cpSync(join(root, "bin"), join(folder, "bin"), { recursive: true });
  const list =
    "require('node:fs').writeFileSync(process.env.LOADED, JSON.stringify([Object.keys(require.cache), process.moduleLoadList]))";
  writeFileSync(join(folder, "list.cjs"), `process.on('exit', () => ${list});`);
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
  home.remove();
});

function packageOf(module: string): string | undefined {
  return /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules\/)/.exec(module)?.[1];
}

/** Runs a command line to its end. @returns the files of the bundle that it loaded, and Node's own parts */
async function filesLoadedBy(
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ chunks: string[]; internal: string[] }> {
  const file = join(folder, "loaded.json");
  const child = spawn(
    process.execPath,
    ["--require", join(folder, "list.cjs"), join(folder, "bin", "integ.js"), ...words],
    {
      env: { ...home.env, ...env, LOADED: file },
      stdio: ["pipe", "pipe", "pipe"],
    },
  );
  const { code, stderr } = await ended(child);
  if (code !== 0) throw new Error(`integ ${words.join(" ")} ended with ${code}: ${stderr}`);
  const [files, internal] = JSON.parse(readFileSync(file, "utf8")) as [string[], string[]];
  const chunks = files.filter((one) => one.startsWith(join(folder, "dist"))).map((one) => basename(one));
  expect(chunks).toContain("main.cjs");
  return { chunks, internal };
}

/** @returns the packages that a command line loads; Node's own undici counts as `undici` */
async function loadedBy(words: readonly string[]): Promise<string[]> {
  const { chunks, internal } = await filesLoadedBy(words);
  const packages = chunks.flatMap((chunk) => [...packagesIn.get(chunk)!]);
  if (internal.some((name) => name.includes("deps/undici"))) packages.push("undici");
  return [...new Set(packages)].sort();
}

function isCommand(module: string): boolean {
  const source = join(root, "src", "commands");
  return module.startsWith(source) && /export const command\b/.test(readFileSync(module, "utf8"));
}

/** Heavy packages that a file of the bundle is loaded with. */
function heavyWith(file: string, seen = new Set<string>()): string[] {
  if (seen.has(file)) return [];
  seen.add(file);
  const own = [...(packagesIn.get(file) ?? [])].filter((name) => heavy.includes(name));
  return [...own, ...(chunks.get(file)?.imports ?? []).flatMap((other) => heavyWith(other, seen))];
}

const heavyLoadedBy = async (words: readonly string[]): Promise<string[]> =>
  (await loadedBy(words)).filter((name) => heavy.includes(name));

describe.skipIf(isOtherBinary("which of the package's files a command loads"))("what is loaded", () => {
  it("would be noticed", async () => {
    expect(await heavyLoadedBy(["profiles", "list"])).toContain("zod");
    expect(await heavyLoadedBy(["entities", "list", "--profile", "sandbox"])).toContain("undici");
  });

  it.each(["--help", "--version", "help keys create", "help states"])("is one file for %s", async (line) => {
    expect((await filesLoadedBy(line.split(" "))).chunks).toEqual(["main.cjs"]);
  });

  it("takes what other files give as plain properties, and is text in one byte a character", () => {
    const gives = [...chunks.values()].flatMap(({ code }) => code.match(/defineProperty\(exports,"[^}]*\}/g) ?? []);
    expect(gives.filter((one) => !/return \w+\(\)\}$/.test(one))).toEqual([]);
    const files = [...chunks.keys()].map((name) => readFileSync(join(folder, "dist", name)));
    expect(files.filter((file) => file.some((byte) => byte > 127))).toEqual([]);
  });

  it("imports nothing while it runs: Node 20 cannot do that from a part that it takes compiled", () => {
    const importing = [...chunks].filter(([, { code }]) => /(?<![.\w$])import\(/.test(code)).map(([name]) => name);
    expect(importing).toEqual([]);
  });

  it("is no schema and no cryptography for a page that the environment serves", async () => {
    const server = await startListServer(pagesOf([3]));
    const words = ["entities", "list", "--json"];
    const { chunks: loaded, internal } = await filesLoadedBy(words, server.env);
    await server.stop();
    const packages = loaded.flatMap((chunk) => [...packagesIn.get(chunk)!]);
    expect([...new Set(packages)].sort()).toEqual(["commander", "undici"]);
    // Of undici what makes a connection; its client waits for a response that needs it.
    const modules = loaded.flatMap((chunk) => chunks.get(chunk)!.moduleIds);
    expect(modules.filter((id) => id.includes("undici/lib/dispatcher"))).toEqual([]);
    expect(internal.filter((name) => / (assert|crypto|http|http2|child_process)$/.test(name))).toEqual([]);
  });

  it("is a connection of undici, and not its client, for a creation that is answered as usual", async () => {
    const service = await startService();
    const words = ["oauth-clients", "create", "--service-account", service.us.service_account_id];
    const rest = ["--scope", "entity:read", "--secret-file", home.path("secret")];
    const { chunks: loaded } = await filesLoadedBy([...words, ...rest], service.env);
    await service.stop();
    const modules = loaded.flatMap((chunk) => chunks.get(chunk)!.moduleIds);
    expect(modules.filter((id) => /undici\/lib\/(dispatcher|llhttp)/.test(id))).toEqual([]);
    expect(modules.filter((id) => id.includes("undici/lib/core/connect"))).toHaveLength(1);
    expect(modules.filter((id) => id.endsWith("profiles/profile-file.ts"))).toEqual([]);
  });

  it("is nothing heavy for help of any command that is not ready", async () => {
    const files = [...chunks.values()].filter(({ moduleIds }) => moduleIds.some(isCommand));
    const commands = filesBelow(join(root, "src", "commands")).filter(isCommand);
    expect(files.flatMap(({ moduleIds }) => moduleIds.filter(isCommand)).sort()).toEqual(commands.sort());
    const found = files.map(({ fileName }) => [fileName, heavyWith(fileName)] as const);
    expect(found.filter(([, packages]) => packages.length > 0)).toEqual([]);
    // What is loaded beside the command's own file is the same for every help.
    expect(await heavyLoadedBy(["journal", "recover", "--no-color", "--help"])).toEqual([]);
  });

  it.each(["bash", "zsh", "fish", "powershell"])("is nothing heavy for the script of %s", async (shell) => {
    expect(await heavyLoadedBy(["completion", shell])).toEqual([]);
  });

  it.each([
    ["commands", ["oauth-clients", ":"]],
    ["profiles", ["profiles", "show", ":"]],
    ["entries", ["journal", "show", ":"]],
    ["keys", ["keys", "revoke", ":"]],
  ])("is no package at all for a Tab that asks for %s", async (_what, words) => {
    expect(await loadedBy(["__complete", ...words])).toEqual([]);
  });
});

describe.skipIf(isOtherBinary("what the package keeps compiled"))("compiled code", () => {
  const cache = (): string => home.path("cache", "integ");
  const parts = (): string[] =>
    readdirSync(cache()).flatMap((version) =>
      readdirSync(join(cache(), version)).map((name) => join(cache(), version, name)),
    );
  /** The files, each with what changes if it is written again. */
  const kept = (): Map<string, number> => new Map(parts().map((file) => [basename(file), statSync(file).ino]));

  /** As a person's own process. @returns the ends of it */
  async function run(words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> {
    const { NODE_DISABLE_COMPILE_CACHE: _off, NODE_OPTIONS: _recording, ...own } = home.env;
    const child = spawn(process.execPath, [join(folder, "bin", "integ.js"), ...words], {
      env: { ...own, XDG_CACHE_HOME: home.path("cache"), INTEG_API_KEY: "canary-key", ...env },
      stdio: ["pipe", "pipe", "pipe"],
    });
    const { code, stdout, stderr } = await ended(child);
    expect([code, stderr]).toEqual([0, ""]);
    return stdout;
  }

  const list = ["profiles", "list", "--json"];
  let said = "";
  beforeAll(async () => {
    said = await run(list);
  });

  it("changes no end of a change whose program is removed while its request is on its way", async () => {
    const dist = join(folder, "dist");
    const client = {
      object: "oauth_client",
      id: "oc_1",
      service_account_id: "sa_1",
      client_id: "cid_1",
      status: "active",
    };
    const receipt = { ...client, scopes: ["entity:read"], created_at: new Date().toISOString(), client_secret: "s-1" };
    const server = createServer((_request, response) => {
      renameSync(dist, `${dist}.old`);
      response.writeHead(201, { "content-type": "application/json" }).end(JSON.stringify(receipt));
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { NODE_DISABLE_COMPILE_CACHE: _off, NODE_OPTIONS: _recording, ...own } = home.env;
    const secret = home.path("client.secret");
    const words = ["oauth-clients", "create", "--service-account", "sa_1", "--scope", "entity:read", "--json"];
    const child = spawn(process.execPath, [join(folder, "bin", "integ.js"), ...words, "--secret-file", secret], {
      env: {
        ...own,
        XDG_CACHE_HOME: home.path("another-cache"),
        INTEG_REGION: "us",
        INTEG_BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        INTEG_API_KEY: "key",
      },
      stdio: ["pipe", "pipe", "pipe"],
    });
    const { code, stdout, stderr } = await ended(child);
    server.close();
    renameSync(`${dist}.old`, dist);
    expect([code, stderr]).toEqual([0, expect.stringContaining("The secret is in")]);
    expect([JSON.parse(stdout), readFileSync(secret, "utf8").trim()]).toMatchObject([{ id: "oc_1" }, "s-1"]);
  });

  it("is kept by the first command, and taken as it is by the next", async () => {
    const before = kept();
    expect([...before.keys()]).toEqual(
      expect.arrayContaining([expect.stringMatching(/^run-.+\.cjs\.compiled$/), expect.stringMatching(/^stored-/)]),
    );
    expect(await run(list)).toBe(said);
    expect(kept()).toEqual(before);
  });

  it("is kept by a walk too, during which V8 is told to optimize less", async () => {
    const server = await startListServer(pagesOf([3, 3, 3, 3, 3]));
    const cached = home.path("walk's cache");
    const walk = (): Promise<string> =>
      run(["entities", "list", "--all", "--ndjson"], { ...server.env, XDG_CACHE_HOME: cached });
    const files = (): Map<string, number> =>
      new Map(
        readdirSync(cached, { recursive: true, encoding: "utf8" }).map((name) => [
          name,
          statSync(join(cached, name)).ino,
        ]),
      );
    const printed = await walk();
    const before = files();
    expect(await walk()).toBe(printed);
    await server.stop();
    expect([before.size > 5, files()]).toEqual([true, before]);
  });

  it("is this user's alone, and has nothing of what was typed, read or received", async () => {
    const server = await startListServer(pagesOf([3]));
    expect(await run(["entities", "list", "--json"], server.env)).toContain("data");
    await server.stop();
    for (const file of parts()) {
      expect(statSync(file).mode & 0o777).toBe(0o600);
      const text = readFileSync(file, "latin1");
      for (const mark of ["canary", "127.0.0.1:", home.folder])
        expect(text.includes(mark), `${mark} in ${file}`).toBe(false);
    }
    expect(statSync(cache()).mode & 0o777).toBe(0o700);
  });

  it.each<[string, (bytes: Buffer) => Buffer]>([
    ["cut", (bytes) => bytes.subarray(0, bytes.length >> 1)],
    ["zeros", (bytes) => Buffer.alloc(bytes.length)],
    ["longer", (bytes) => Buffer.concat([bytes, Buffer.from("x")])],
    ...[3, 400, -20].map((at): [string, (bytes: Buffer) => Buffer] => [
      `another bit at ${at}`,
      (bytes) => {
        const index = at < 0 ? bytes.length + at : at;
        bytes[index]! ^= 1 << (index & 7);
        return bytes;
      },
    ]),
  ])("that is damaged is made again: %s", async (_what, damage) => {
    const before = kept();
    const damaged = parts().filter((file) => /(run|stored|start)-[^/]+$/.test(file));
    for (const file of damaged) writeFileSync(file, damage(readFileSync(file)));
    expect(await run(list)).toBe(said);
    const again = [...kept()].filter(([name, ino]) => before.get(name) !== ino).map(([name]) => name);
    expect(again.sort()).toEqual(damaged.map((file) => basename(file)).sort());
  });

  it("that others could have written, or that is a link, is not taken", async () => {
    const [first, second] = parts().filter((file) => /(run|stored)-[^/]+$/.test(file));
    chmodSync(first!, 0o620);
    renameSync(second!, home.path("elsewhere"));
    symlinkSync(home.path("elsewhere"), second!);
    expect(await run(list)).toBe(said);
    for (const file of [first!, second!]) {
      const stats = lstatSync(file);
      expect([stats.isFile(), stats.mode & 0o777]).toEqual([true, 0o600]);
    }
  });

  it("of another source is made again", async () => {
    const chunk = join(folder, "dist", readdirSync(join(folder, "dist")).find((name) => name.startsWith("stored-"))!);
    const source = readFileSync(chunk, "utf8");
    const before = kept();
    writeFileSync(chunk, source.replace(/;$|$/, " "));
    expect(await run(list)).toBe(said);
    writeFileSync(chunk, source);
    expect([...kept()].filter(([name, ino]) => before.get(name) !== ino).map(([name]) => name)).toEqual([
      `${basename(chunk)}.compiled`,
    ]);
  });

  it("is not needed, and can be turned off", async () => {
    const nowhere = home.path("a file");
    writeFileSync(nowhere, "");
    expect(await run(list, { XDG_CACHE_HOME: nowhere })).toBe(said);
    const unused = { XDG_CACHE_HOME: home.path("unused") };
    expect(await run(list, { ...unused, NODE_DISABLE_COMPILE_CACHE: "1" })).toBe(said);
    expect(await run(list, { ...unused, NODE_OPTIONS: "--no-warnings" })).toBe(said);
    await run(["__complete", ":"], unused);
    expect(existsSync(unused.XDG_CACHE_HOME)).toBe(false);
  });

  it.skipIf(process.geteuid?.() !== 0)("is not kept by root in another user's folder", async () => {
    const theirs = home.path("theirs");
    mkdirSync(theirs);
    chownSync(theirs, 12_345, 12_345);
    expect(await run(list, { XDG_CACHE_HOME: theirs })).toBe(said);
    expect(readdirSync(theirs)).toEqual([]);
  });

  it("does an administrator's day, from the first time that each part is loaded and from what was kept of it", async () => {
    const day = home.path("day");
    mkdirSync(day);
    writeFileSync(
      join(day, "integ.yaml"),
      "version: 1\naccess_keys:\n  nightly:\n    type: user_bound\n    scopes: ['*']\n    rotate: { every: 60d }\n    secret: { file: nightly }\n    expires_in: 90d\n",
    );
    const account = ["--service-account", "sa_us_automation", "--scope", "entity:read"];
    const lines = [
      ["oauth-clients", "create", ...account, "--secret-command", "cat > /dev/null", "--new"],
      ["keys", "create", "--name", "day", "--expires-in", "30d", "--secret-file", "key", "--force", "--new"],
      ["entities", "list", "--limit", "3", "-o", "yaml"],
      ["plan"],
      ["apply", "--yes"],
      ["journal", "recover"],
      ["journal", "verify"],
      ["keys", "audit"],
      ["__complete", "journal", "show", ":"],
    ];
    const { NODE_DISABLE_COMPILE_CACHE: _off, NODE_OPTIONS: _recording, ...own } = home.env;
    const kept = home.path("day's cache");
    const env = { ...own, XDG_CACHE_HOME: kept, INTEG_PROFILE: "sandbox" };
    for (const round of ["first", "second"])
      for (const words of lines) {
        const child = spawn(process.execPath, [join(folder, "bin", "integ.js"), ...words], { cwd: day, env });
        const { code, stderr } = await ended(child);
        // Of the plan and the audit, what there is to do; of a second plan there is nothing.
        expect([0, 10], `${words.join(" ")}, the ${round} time: ${stderr}`).toContain(code);
      }
    expect(readdirSync(kept, { recursive: true }).length).toBeGreaterThan(20);
  });

  it("finds what is beside it: a change is made, under the lock of a native part", async () => {
    const words = ["oauth-clients", "create", "-p", "sandbox", "--service-account", "sa_us_automation"];
    const secret = ["--secret-file", home.path("secret"), "--quiet"];
    for (const scope of ["entity:read", "organization:read"])
      expect(await run([...words, "--scope", scope, ...secret, "--force", "--json"])).toContain('"oauth_client"');
  });
});
