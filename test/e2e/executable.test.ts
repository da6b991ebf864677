// Tests the executable, if its Node has been downloaded or the run is full.
import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Ended, ended, Home, isOtherBinary, root } from "../support/program.ts";

const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
const isSkipped = isOtherBinary("how the executable is built");
const single = new Home();
afterAll(() => single.remove());

/** Puts packages next to the program that leave a mark when they are loaded. @returns the mark's path */
function plantPackages(folder: string): string {
  const mark = join(folder, "loaded");
  for (const name of ["fs-native-extensions", "@napi-rs/keyring", "pg"]) {
    mkdirSync(join(folder, "node_modules", name), { recursive: true });
    writeFileSync(
      join(folder, "node_modules", name, "index.js"),
      `require("node:fs").appendFileSync(${JSON.stringify(mark)}, ${JSON.stringify(`${name}\n`)});`,
    );
  }
  return mark;
}

function runAlone(at: Home, line: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
  const [file = "", ...words] = line;
  const child = spawn(file, words, {
    cwd: at.folder,
    env: { ...at.env, PATH: "", ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  return ended(child, { input: "a-key\n" });
}

function itWorks(at: Home, program: readonly string[]): void {
  const run = (words: readonly string[], env?: Record<string, string>): Promise<Ended> =>
    runAlone(at, [...program, ...words], env);
  const json = async (...words: string[]): Promise<Record<string, unknown>> => {
    const { code, stdout, stderr } = await run([...words, "--json"]);
    expect(code, stderr).toBe(0);
    return JSON.parse(stdout) as Record<string, unknown>;
  };

  it("shows its version, its commands and its completion", async () => {
    expect((await run(["--version"])).stdout).toBe(`${version}\n`);
    expect((await run(["--help"])).stdout).toContain("oauth-clients");
    expect(await json("commands")).toHaveProperty("commands");
    for (const [shell, file] of Object.entries({
      bash: "integ.bash",
      zsh: "_integ",
      fish: "integ.fish",
      powershell: "integ.ps1",
    }))
      expect((await run(["completion", shell])).stdout).toBe(readFileSync(join(root, "completions", file), "utf8"));
  });

  it("performs the main task against its built-in sandbox, with the owner's lock", async () => {
    expect((await json("entities", "list", "-p", "sandbox")).data).toHaveLength(25);
    const create = ["oauth-clients", "create", "-p", "sandbox", "--service-account", "sa_us_automation"];
    const created = await json(...create, "--scope", "entity:read");
    expect(created).toMatchObject({ status: "active", client_secret: expect.stringMatching(/^sbx_/) });
    const again = await json(...create, "--scope", "entity:read", "--secret-file", "secret");
    expect(again).toMatchObject({ status: "active", client_secret: null });
    expect(statSync(at.path("secret")).mode & 0o777).toBe(0o600);
    expect(await json("journal", "verify")).toBeTruthy();
  });

  it("keeps a credential in the file, and reports it", async () => {
    const words = ["profiles", "add", "p", "--region", "us", "--base-url", "https://a.example", "--api-key-stdin"];
    const { code, stderr } = await run(words);
    expect([code, stderr]).toEqual([0, expect.stringContaining("The keychain is not available")]);
    expect(await json("profiles", "show", "p")).toMatchObject({ credential: { kept_in: "file" } });
    expect((await run(["profiles", "remove", "p", "-y"])).code).toBe(0);
  });

  it("loads nothing that is next to it", async () => {
    const mark = plantPackages(at.folder);
    expect((await run(["doctor", "-p", "sandbox"])).code).toBe(0);
    await run(["oauth-clients", "revoke", "oac_none", "-p", "sandbox", "-y"], {
      NODE_PATH: at.path("node_modules"),
    });
    expect(existsSync(mark)).toBe(false);
  });
}

function whyNotBuilt(): string | undefined {
  if (existsSync(join(root, "build", "node")) || process.env.INTEG_TEST_FULL) return undefined;
  return "its Node has not been fetched yet (scripts/executable/build.mjs fetches it; so does INTEG_TEST_FULL=1)";
}

const absent = isSkipped ? "another binary is under test" : whyNotBuilt();
if (absent) console.warn(`skipped: building the executable: ${absent}`);

describe.skipIf(absent)("the executable", () => {
  const built = single.path("built");
  const alone = single.path("integ");

  beforeAll(() => {
    execFileSync(process.execPath, [join(root, "scripts", "executable", "build.mjs"), "--out", built], {
      cwd: single.folder,
      encoding: "utf8",
    });
    copyFileSync(join(built, "integ"), alone);
  }, 300_000);
  itWorks(single, [alone]);

  it("runs itself for the steps of the tour", async () => {
    const { code, stderr } = await runAlone(single, [alone, "sandbox", "tour"]);
    expect([code, stderr]).toEqual([0, ""]);
  });

  it("does not accept Node's own options", async () => {
    const { code, stdout } = await runAlone(single, [alone, "--version"], {
      NODE_OPTIONS: "--require /nowhere/hook.js",
    });
    expect([code, stdout]).toEqual([0, `${version}\n`]);
  });

  it("includes the licenses of Node and of the bundled packages", () => {
    const text = readFileSync(join(built, "THIRD-PARTY-LICENSES.txt"), "utf8");
    for (const name of ["Node.js", "commander", "undici", "zod"]) expect(text).toMatch(new RegExp(`^${name} \\d`, "m"));
    expect(text).toContain("V8");
  });

  it("includes a list of components that names its Node", () => {
    const { components } = JSON.parse(readFileSync(join(built, "sbom.cdx.json"), "utf8")) as {
      components: { name: string; version: string; cpe?: string }[];
    };
    const [, node] = /^Node\.js (\S+)/.exec(readFileSync(join(built, "THIRD-PARTY-LICENSES.txt"), "utf8"))!;
    expect(components.map(({ name }) => name)).toEqual(expect.arrayContaining(["undici", "zod"]));
    expect(components).toContainEqual(
      expect.objectContaining({ name: "node", version: node, cpe: `cpe:2.3:a:nodejs:node.js:${node}:*:*:*:*:*:*:*` }),
    );
  });
});
