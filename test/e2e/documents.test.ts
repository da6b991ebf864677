import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { exitCodes } from "../../src/errors.ts";
import { root } from "../support/program.ts";
import { creationWords, homeOfFile, homeOfTest, serviceOfFile } from "../support/service.ts";

const scripting = readFileSync(join(root, "docs/scripting.md"), "utf8");
const service = await serviceOfFile(["--entities", "1500"]);
const at = homeOfFile({ ...service.env, SERVICE_ACCOUNT: service.us.service_account_id });

beforeAll(async () => {
  at.addToPath();
});

/** Loses the request of a creation whose recovery prints the secret to standard output. */
async function leaveUnfinished(): Promise<void> {
  await service.fault("POST /v1/oauth_clients drop=before times=1");
  expect((await at.integ(creationWords(service, "--new", "--retry-for", "0"))).code).toBe(7);
}

describe("docs/scripting.md", () => {
  const recipes = [...scripting.matchAll(/^(.+):\n\n```sh\n([\s\S]*?)```/gm)].map(
    (match) => [match[1]!, match[2]!] as const,
  );

  it("has recipes", () => {
    expect(recipes.length).toBeGreaterThanOrEqual(6);
  });

  it.each(recipes)("recipe runs: %s", async (_what, text) => {
    if (text.includes("receipts")) await leaveUnfinished();
    const { status, stdout, stderr } = spawnSync("bash", ["-euo", "pipefail", "-c", `${text}\necho "id: \${id-}"`], {
      cwd: at.folder,
      env: at.env,
      encoding: "utf8",
      maxBuffer: 1 << 28,
    });
    expect(`${status} ${stderr.includes("Error:")}`, stderr).toBe("0 false");
    expect(stdout.replace("id: \n", "").trim()).not.toBe("");
  });

  it("names every exit code with its kind", () => {
    const documented = [...scripting.matchAll(/^\| ([\d, ]+) \| (.*?) \|/gm)].flatMap((match) => {
      const kinds = match[2]!.split(", ").map((kind) => kind.replaceAll("`", ""));
      return match[1]!.split(", ").map((code, i) => [kinds[i] ?? "", Number(code)] as const);
    });
    expect(Object.fromEntries(documented.filter(([kind]) => kind !== "–"))).toEqual(exitCodes);
  });
});

describe("commands off a terminal", () => {
  const to = ["--secret-file", "off.secret"];
  const asking = ["oauth-clients revoke", "keys revoke", "keys rotate", "profiles remove", "sandbox reset", "apply"];

  it("need --yes, except the rotations that prove the new credential first", async () => {
    const home = homeOfTest({ INTEG_PROFILE: "sandbox" });
    const create = ["oauth-clients", "create", "--service-account", "sa_us_automation", "--scope", "entity:read"];
    const { stdout } = await home.integ([...create, "--secret-file", "a", "--json"]);
    const { id } = JSON.parse(stdout) as { id: string };
    const address = ["--region", "us", "--base-url", "https://api.example.com", "--no-verify"];
    await home.integ(["profiles", "add", "p", ...address, "--api-key-stdin"], { input: "key\n" });
    await home.integ(["policy", "init", "--offline"]);
    const text = readFileSync(home.path("integ.yaml"), "utf8");
    writeFileSync(home.path("integ.yaml"), text.replace(/oauth_clients:[^]*/, newItem));
    const words = [[id], ["ak_us_idle"], ["ak_us_ingest", ...to], ["p"], [], []];
    for (const [index, name] of asking.entries()) {
      const ended = await home.integ([...name.split(" "), ...words[index]!]);
      expect([ended.code, ended.stderr], name).toEqual([2, expect.stringContaining("Add --yes to confirm.")]);
      expect(scripting).toContain(`\`${name}\``);
    }
    for (const rotation of ["oauth-clients rotate", "keys rotate --by-replacement"]) {
      const [noun = "", verb = "", ...flags] = rotation.split(" ");
      const subject = noun === "keys" ? "ak_us_ingest" : id;
      const ended = await home.integ([noun, verb, subject, ...flags, "--secret-file", `${noun}.secret`]);
      expect([ended.code, ended.stderr]).toEqual([0, expect.stringContaining("is revoked.")]);
      expect(scripting).toContain(`\`${rotation}\``);
    }
  });
});

const newItem = `oauth_clients:
  new:
    service_account: sa_us_automation
    scopes: [entity:read]
    secret: { file: new.secret }
`;

describe("SECURITY.md", () => {
  it("names every file that is kept", async () => {
    const home = homeOfTest();
    const address = ["--region", "us", "--base-url", "https://api.example.com"];
    await home.integ(["profiles", "add", "p", ...address, "--api-key-stdin"], { input: "key\n" });
    const create = ["oauth-clients", "create", "--service-account", "sa_us_automation", "--scope", "entity:read"];
    const { code } = await home.integ([...create, "-p", "sandbox", "--secret-command", "exit 1"]);
    expect(code).toBe(12);
    const kept = ["config", "state"].flatMap((folder) => readdirSync(home.path(folder)));
    expect(kept).toEqual(expect.arrayContaining(["profiles.json", "journal.ndjson", "sandbox.json", "undelivered"]));
    const text = readFileSync(join(root, "SECURITY.md"), "utf8");
    expect(kept.filter((name) => !text.includes(`\`${name}\``) && !text.includes(`\`${name}/\``))).toEqual([]);
  });
});

describe("every document", () => {
  const pages = execFileSync("git", ["ls-files", "*.md"], { cwd: root, encoding: "utf8" }).trim().split("\n");
  const { devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    devDependencies: Record<string, string>;
  };

  /** Packages that a line fetches with npm, or looks up in the registry, by a name that someone else may own. */
  function fetched(line: string): string[] {
    const installed = [...line.matchAll(/\bnpm (?:install|i|add|view)((?: +[^\s`|&;]+)+)/g)]
      .flatMap(([, words = ""]) => words.trim().split(/ +/))
      .filter((word) => !word.startsWith("-") && !/^\.\/\S+-(?:\d+\.\d+\.\d+|<version>)\.tgz$/.test(word));
    const run = [...line.matchAll(/\b(?:npx|npm exec) +([^\s`]+)/g)].map(([, name = ""]) => name);
    return [...installed, ...run.filter((name) => !(name in devDependencies))];
  }

  it.each(pages)("%s installs nothing by an unpinned name", (page) => {
    const lines = readFileSync(join(root, page), "utf8").split("\n");
    expect(lines.flatMap(fetched)).toEqual([]);
    const actions = lines.flatMap((line) => /^\s*- uses: (\S+)/.exec(line)?.[1] ?? []);
    expect(actions.filter((action) => !/@[0-9a-f]{40}$/.test(action))).toEqual([]);
  });
});

describe("README.md", () => {
  it("shows the two commands and names only files that exist", () => {
    const readme = readFileSync(join(root, "README.md"), "utf8");
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
      scripts: Record<string, string>;
    };
    expect(readme).toMatch(/npm ci && npm run demo[\s\S]*npm ci && npm test/);
    for (const [, name] of readme.matchAll(/npm run ([a-z:]+)/g)) expect(scripts).toHaveProperty([name!]);
  });
});
