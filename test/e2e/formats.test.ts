import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv } from "ajv";
import { describe, expect, it } from "vitest";
import { markdown } from "../../src/output/formats/markdown.ts";
import type { ListTarget } from "../../src/output/formats/format.ts";
import { pageOf } from "../../src/output/row-page.ts";
import { Home, root } from "../support/program.ts";
import { homeOfTest, serviceOfFile } from "../support/service.ts";

const service = await serviceOfFile();
function home(env: Readonly<Record<string, string>> = {}): Home {
  const { access_token, token_endpoint } = service.us;
  const created = homeOfTest({
    ...service.env,
    INTEG_ACCESS_TOKEN: access_token,
    INTEG_TOKEN_ENDPOINT: token_endpoint,
    ...env,
  });
  const account = service.us.service_account_id;
  const item = `  a:\n    service_account: ${account}\n    scopes: [entity:read]\n    secret: [{ file: a.secret }, { command: cat > b.secret }]\n`;
  writeFileSync(
    created.path("integ.yaml"),
    `version: 1\nid: pol_04dea76e76f3a978\nunmanaged: ignore\noauth_clients:\n${item}`,
  );
  return created;
}

const schema = JSON.parse(readFileSync(join(root, "test/contract/sarif-2.1.0-schema.txt"), "utf8")) as object;
const isSarif = new Ajv({ strict: false, validateFormats: false }).compile(schema);

type Texts<Key extends string> = Readonly<Record<Key, { readonly text: string }>>;
type SarifRule = Texts<"shortDescription" | "fullDescription" | "help"> & { readonly id: string };
type Result = Texts<"message"> &
  Readonly<Record<"ruleId" | "level", string>> & {
    readonly partialFingerprints: Readonly<Record<string, string>>;
  };
interface Run {
  readonly tool: { readonly driver: { readonly version: string; readonly rules: readonly SarifRule[] } };
  readonly results: readonly Result[];
}

describe("sarif", () => {
  it("has a result for each finding, with a stable fingerprint", async () => {
    const at = home();
    const audit = async (): Promise<Run> => {
      const { stdout, code } = await at.integ(["keys", "audit", "-o", "sarif"]);
      expect(code).toBe(10);
      const { version, runs } = JSON.parse(stdout) as { version: string; runs: Run[] };
      expect(version).toBe("2.1.0");
      expect(isSarif(JSON.parse(stdout)), JSON.stringify(isSarif.errors)).toBe(true);
      return runs[0]!;
    };
    const [first, again] = [await audit(), await audit()];
    const { data } = JSON.parse((await at.integ(["keys", "audit", "--json"])).stdout) as { data: { id: string }[] };
    const prints = first.results.map(({ partialFingerprints }) => partialFingerprints);
    expect(prints.map((print) => print["findingId/v1"])).toEqual(data.map(({ id }) => id));
    expect(again.results.map(({ partialFingerprints }) => partialFingerprints)).toEqual(prints);
    // Code scanning distinguishes alerts by this fingerprint.
    const hashes = new Set(prints.map((print) => print.primaryLocationLineHash));
    expect([hashes.size, ...hashes]).toEqual([data.length, ...data.map(() => expect.stringMatching(/^\w{16}:1$/))]);
    const { rules: described, version } = first.tool.driver;
    expect(`${version}\n`).toBe((await at.integ(["--version"])).stdout);
    for (const { fullDescription, help } of described) expect(fullDescription.text + help.text).toMatch(/^A.*\.R/);
    const rules = new Set(described.map(({ id }) => id));
    expect(described.find(({ id }) => id === "too_old")?.shortDescription.text).toBe("Credential audit: too old");
    for (const { ruleId, level, message } of first.results) {
      expect([rules.has(ruleId), ["error", "warning", "note"].includes(level)]).toEqual([true, true]);
      expect(message.text).toMatch(/[^.\s]\. Next: \w/);
    }
    expect((await at.integ(["apply", "--yes"])).code).toBe(0);
    await service.settle();
    const { stdout } = await at.integ(["oauth-clients", "audit", "--max-age", "0s", "-o", "sarif"]);
    expect([JSON.parse(stdout).runs[0].results.length > 0, isSarif(JSON.parse(stdout))]).toEqual([true, true]);
  });

  it("is only for audits, and refused elsewhere before anything is sent", async () => {
    const ended = await home().integ(["keys", "list", "-o", "sarif"]);
    expect([ended.code, ended.stdout]).toEqual([2, ""]);
    expect(ended.stderr).toContain("integ keys audit");
  });
});

describe("markdown", () => {
  it("renders a plan as a table", async () => {
    const { stdout, stderr } = await home().integ(["plan", "-o", "markdown"]);
    expect(stdout, stderr).toMatch(
      /^\| name \| kind \| grants \| action \|.*\n\| --- \| --- \|.*\n\| a \| oauth\\_client \| client of .* \| create \|/,
    );
  });

  it("escapes hostile text, so that it renders unchanged", async () => {
    let text = "";
    const sink = { write: async (data: string | Buffer) => void (text += data.toString()) };
    const view = { columns: [{ path: "name", heading: "name" }], singular: "row", plural: "rows" };
    const list = markdown.list(view, { sink } as unknown as ListTarget);
    await list.page(
      pageOf([JSON.stringify({ name: "a|b\n<img src=x onerror=y> [l](javascript:z) `c` @all **d** a@b.example #1" })]),
    );
    expect(text.split("\n")).toHaveLength(4);
    expect(text).toContain(String.raw`a&#64;b.example \#1`);
    expect(text).toContain(String.raw`a\|b`);
    for (const part of ["<img", "[l]", " `c`", "@all", "**d**"]) expect(text).not.toContain(part);
  });
});

describe("the job summary", () => {
  const actions = (at: Home, name = "summary.md") => ({ GITHUB_ACTIONS: "true", GITHUB_STEP_SUMMARY: at.path(name) });

  it("contains the tables of plan and apply, one after the other", async () => {
    const at = home();
    await at.integ(["plan", "--json"], { env: actions(at) });
    const applied = await at.integ(["apply", "--yes"], { env: actions(at) });
    expect(applied.code, applied.stderr).toBe(0);
    const summary = readFileSync(at.path("summary.md"), "utf8");
    expect(summary).toMatch(
      /^### integ plan\n\n\| name .*\n.*\n\| a \|[\s\S]*\n### integ apply\n\n\| name .*\n.*\n\| a \|.*done/,
    );
    expect(summary).toMatch(/a.secret, command \\?\(sha256 [0-9a-f]{12}…\\?\) \|/);
    for (const hidden of [readFileSync(at.path("a.secret"), "utf8"), "b.secret"]) expect(summary).not.toContain(hidden);
  });

  it("that cannot be written is a warning and keeps the exit code", async () => {
    const at = home();
    execFileSync("mkfifo", [at.path("pipe")]);
    for (const [name, result] of [
      ["no-folder/summary.md", "done"],
      ["pipe", "none"],
    ] as const) {
      const applied = await at.integ(["apply", "--yes"], { env: actions(at, name) });
      expect([applied.code, applied.stderr], name).toEqual([
        0,
        expect.stringContaining("Warning: The summary of this step was not written"),
      ]);
      expect(applied.stdout).toContain(result);
    }
  });

  it("is written only on GitHub Actions", async () => {
    const at = home();
    await at.integ(["plan"], { env: { GITHUB_STEP_SUMMARY: at.path("summary.md") } });
    expect(() => readFileSync(at.path("summary.md"))).toThrow(/ENOENT/);
  });
});
