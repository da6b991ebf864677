import { describe, expect, it } from "vitest";
import { environment } from "../../../src/commands/commands/list.ts";
import { secretFormats } from "../../../src/secrets/secret-format.ts";
import { helpTopics } from "../../../src/completion/help-topics.ts";
import { exitCodes, Failure } from "../../../src/errors.ts";
import { readCommandLine } from "../../../src/edge/run.ts";
import { nodesBelow, treeOf } from "../../../src/completion/tree.ts";
import { wholeTree, type Typed } from "../../../src/program.ts";

const screen = { width: 80, version: "0.0.0" };

async function typed(line: string): Promise<Typed> {
  const found = await readCommandLine(line.split(" "), screen);
  if ("help" in found) throw new Error(`a help screen: ${found.help}`);
  return found;
}

async function help(line: string): Promise<string> {
  const found = await readCommandLine(line.split(" "), screen);
  if (!("help" in found)) throw new Error(`the verb ${found.name}`);
  return found.help;
}

describe("the command line", () => {
  it.each([
    "--no-input --no-color -p prod -o json entities list",
    "entities --no-input --no-color -p prod -o json list",
    "entities list --no-input --no-color -p prod -o json",
    "--no-input entities -p prod list --no-color -o json",
  ])("takes global options before and after the command: %s", async (line) => {
    expect((await typed(line)).globals).toMatchObject({ input: false, color: false, profile: "prod", output: "json" });
  });

  it.each([
    "-p sandbox entities list --al",
    "entities list --profile keys --al",
    "--profile sandbox entities list --al",
  ])("suggests the help of the command, not of a profile's name: %s", async (line) => {
    await expect(readCommandLine(line.split(" "), screen)).rejects.toMatchObject({
      details: { nextCommand: "integ help entities list" },
    });
  });

  it.each([
    ["keys list --out f", { hint: "Use > <file> to write the output to a file." }],
    ["keys list --out f", expect.not.objectContaining({ meaning: expect.anything() })],
    ["policy plan integ.yaml", { nextCommand: "integ help plan" }],
    ["plan integ.yaml", { hint: "Name the policy file with -f <file>." }],
    ["apply --auto-approve", { meaning: expect.stringContaining("--yes") }],
    ["keys list --auto-approve", expect.not.objectContaining({ meaning: expect.anything() })],
    ["plan --target x", { meaning: expect.stringContaining("--only") }],
    ["keys list --target x", expect.not.objectContaining({ meaning: expect.anything() })],
    ["oauth-clients create --target x", expect.not.objectContaining({ meaning: expect.anything() })],
  ])("answers words of other programs: %s", async (line, details) => {
    await expect(readCommandLine(line.split(" "), screen)).rejects.toMatchObject({ details });
  });

  it("says that -out has two hyphens", async () => {
    await expect(readCommandLine(["plan", "-out=x"], screen)).rejects.toThrow("-out is --out");
  });

  it("keeps --no-input apart from a command's own --input", async () => {
    const { globals, options } = await typed("--no-input api /v1/x --input file.json");
    expect([globals.input, options.input]).toEqual([false, "file.json"]);
    expect((await typed("api /v1/x --input file.json")).globals.input).toBeUndefined();
    expect((await typed("api /v1/x --no-input")).globals.input).toBe(false);
  });

  it("sets only typed options", async () => {
    const { input, color, profile } = (await typed("entities list")).globals;
    expect([input, color, profile]).toEqual([undefined, undefined, undefined]);
  });

  it("uses the last of repeated options", async () => {
    expect((await typed("-p one entities list -p two")).globals.profile).toBe("two");
  });

  it("finds verbs of a noun, by its alias too, and verbs without a noun", async () => {
    expect((await typed("oauth-client get oac_1")).name).toBe("oauth-clients get");
    expect((await typed("completion bash")).name).toBe("completion");
    expect(await typed("commands --json")).toMatchObject({ name: "commands", globals: { json: true } });
    expect((await typed("completion zsh")).args).toEqual(["zsh"]);
  });

  it.each(["help entites", "help entities lst", "help entites --help", "audit --help", "keys aduit -h"])(
    "refuses help for an unknown command: %s",
    async (line) => {
      await expect(readCommandLine(line.split(" "), { width: 80, version: "0.0.0" })).rejects.toMatchObject({
        kind: "usage",
        message: expect.stringContaining("Unknown command"),
      });
    },
  );

  it.each([
    "--json help keys",
    "help --json keys",
    "help keys --json",
    "-p prod help keys",
    "--profile=prod --no-color help keys",
    "help -p prod keys",
    "-o json -q help keys --timeout 3s",
  ])("accepts global options before and after help: %s", async (line) => {
    expect(await help(line)).toBe(await help("help keys"));
  });

  it.each(["--json help output", "help --json output", "help output -p prod"])(
    "accepts global options with help topics: %s",
    async (line) => expect(await help(line)).toBe(await help("help output")),
  );

  it.each(["completion --help", "help completion"])("shows the help of a verb without a noun: %s", async (line) => {
    const text = await help(line);
    expect(text).toContain("Usage: integ completion [options] <shell>");
    expect(text).toMatch(/^Global options: -p, -o, -y, -q, --json[^]*\(integ help options\)$/m);
    expect(text).not.toContain("INTEG_PROFILE");
    expect(text).toContain("Examples:");
  });

  it("groups the commands on the first screen and names the help topics", async () => {
    const text = await help("--help");
    expect(await readCommandLine([], screen)).toEqual({ help: text, toStderr: false });
    const headings = [...text.matchAll(/^(\S.*):$/gm)].map((match) => match[1]);
    expect(headings).toEqual(
      expect.arrayContaining(["Everyday commands", "Changes", "Setup", "Help topics", "Options", "Examples"]),
    );
    const { root } = await wholeTree();
    for (const name of [...root.commands.map((command) => command.name()), ...Object.keys(helpTopics)])
      expect(text.match(new RegExp(`^  ${name}  +[A-Z]`, "gm")), name).toHaveLength(1);
  });

  it("describes every command with a verb", async () => {
    const { root, verbOf } = await wholeTree();
    const summaries = [...nodesBelow(treeOf(root, verbOf).root)].map(({ summary }) => summary.replace(/\.$/, ""));
    const verbs =
      /^(Add|Administer|Adopt|Apply|Change|Check|Compare|Create|Delete|Deliver|Exchange|Find|Finish|Inspect|List|Make|Manage|Print|Release|Remove|Replace|Revoke|Rotate|Run|Send|Serve|Show|Sign|Stop|Take|Write) [^.]*$/;
    expect(summaries.filter((summary) => !verbs.test(summary))).toEqual([]);
  });

  it("prints each topic, and all global options only on their own page", async () => {
    const options = await help("help options");
    for (const { flags, long } of (await wholeTree()).root.options)
      if (long !== "--version") expect(options).toContain(`  ${flags} `);
    const states = await help("help states");
    expect(states).toMatch(/Unfinished:\n[\s\S]* undelivered [\s\S]*Finished:\n[\s\S]* done /);
    const codes = await help("help exit-codes");
    for (const [kind, code] of Object.entries(exitCodes))
      expect(codes).toMatch(new RegExp(`^  ${code} +${kind} `, "m"));
    const variables = await help("help environment");
    for (const { name } of environment) expect(variables).toContain(`  ${name} `);
    expect(await help("help output")).toMatch(/^  ndjson /m);
    const create = (await wholeTree()).root.commands.find((command) => command.name() === "oauth-clients")!
      .commands[0]!;
    const secretOptions = create.options.filter(({ long }) => long?.startsWith("--secret-"));
    expect(secretOptions.length).toBeGreaterThan(5);
    const secrets = await help("help secrets");
    for (const { flags } of secretOptions) expect(secrets).toContain(`  ${flags} `);
    for (const format of secretFormats) expect(secrets).toMatch(new RegExp(`^  ${format} +[A-Z]`, "m"));
  });

  it.each([40, 60, 80, 100])("fits every help screen into %i columns, except lines to type", async (width) => {
    const { root } = await wholeTree();
    const wide: string[] = [];
    const commands = [...nodesBelow(treeOf(root, () => undefined).root)].map(({ path }) => [...path, "--help"]);
    for (const words of [...commands, ...Object.keys(helpTopics).map((topic) => ["help", topic])]) {
      const found = await readCommandLine(words, { width, version: "0.0.0" });
      if (!("help" in found)) throw new Error(`no help: ${words.join(" ")}`);
      const examples = found.help.indexOf("\nExamples:");
      const lines = found.help.split("\n").filter((line) => line.length > width);
      const isLineToType = (line: string): boolean =>
        /^ +[^\s<]\S*<\S+,?$/.test(line) || (found.help.indexOf(line) >= examples && /^( {2}[^#\s]|\{)/.test(line));
      wide.push(...lines.filter((line) => !isLineToType(line)));
    }
    expect(wide).toEqual([]);
  });

  it("reports a missing argument, except where a question can ask for it", async () => {
    const { name, args, missing, globals } = await typed("oauth-clients get -p prod");
    expect([name, args, missing?.message]).toEqual(["oauth-clients get", [], "<id> is missing."]);
    expect(globals.profile).toBe("prod");
    expect((await typed("oauth-clients rotate oac_1 --overlap 36h")).options.overlap).toBe("36h");
    expect((await typed("oauth-clients get oac_1")).missing).toBeUndefined();
    await expect(typed("cohorts members")).rejects.toThrow("<cohort-id> is missing.");
    await expect(typed("oauth-clients rotate --overlop 36h")).rejects.toThrow('Unknown option "--overlop".');
  });

  it("hides commands for programs from the first screen", async () => {
    const text = await help("--help");
    expect(text).toContain("completion ");
    expect(text).not.toContain("__complete");
  });

  it.each([
    ["complet bash", "Did you mean completion?"],
    ["entities lst", "Did you mean list?"],
    ["entities list --limt 3", "Did you mean --limit?"],
    ["oauth-clients create --forc", "Did you mean --force?"],
    ["oauth-clients create --servce sa_1", undefined],
  ])("suggests for %s", async (line, meaning) => {
    const error = await typed(line).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Failure);
    expect((error as Failure).kind).toBe("usage");
    expect((error as Failure).details.meaning).toBe(meaning);
  });

  it.each([
    ["whoami", "integ profiles show"],
    ["auth", "integ help profiles add"],
    ["login", "integ help profiles add"],
    ["config", "integ profiles list"],
    ["version", "integ --version"],
    ["clients list", "integ help oauth-clients"],
    ["tokens", "integ help oauth-clients token"],
    ["oauth-clients show oac_1", "integ help oauth-clients get"],
    ["profiles delete prod", "integ help profiles remove"],
    ["keys frob", "integ help keys"],
    ["recover", "integ help journal recover"],
    ["revoke oac_1", "integ --help"],
    ["frob", "integ --help"],
    ["help whoami", "integ profiles show"],
    ["help keys frob", "integ help keys"],
  ])("answers an unknown command with a known one: %s", async (line, step) => {
    const error: unknown = await typed(line).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ kind: "usage", details: { nextCommand: step } });
    const next = step.split(" ").slice(1);
    if (next[0] === "help" || next.at(-1) === "--help") expect(await help(next.join(" "))).toContain("Usage:");
    else if (step !== "integ --version") expect((await typed(next.join(" "))).missing).toBeUndefined();
  });

  it.each([
    ["entities list -o xml", "output format", "xml"],
    ["profiles add --region moon", "region", "moon"],
    ["journal list --state x", "state", "x"],
    ["profiles add --basic-style x", "basic style", "x"],
    ["keys audit --fail-on x", "--fail-on", "x"],
    ["completion tcsh", "shell", "tcsh"],
  ])("names the invalid value, then the choices: %s", async (line, what, value) => {
    await expect(typed(line)).rejects.toMatchObject({
      message: `Invalid ${what} "${value}".`,
      details: {
        hint: expect.stringMatching(/^Choose one of .+, .+\.$/),
        nextCommand: expect.stringMatching(/^integ help /),
      },
    });
  });

  it("lists the verbs of a noun", async () => {
    await expect(typed("keys frob ak_1")).rejects.toMatchObject({
      details: { meaning: "The commands of integ keys: list, get, create, rotate, revoke, audit." },
    });
    await expect(typed("revoke oac_1")).rejects.toMatchObject({
      details: { meaning: "revoke follows a noun: integ oauth-clients revoke and integ keys revoke." },
    });
  });

  it.each([
    ["profiles add p --api-key canary", "Use --api-key-stdin, or --api-key-command '<command>'."],
    ["profiles add p --api-key=canary", "Use --api-key-stdin, or --api-key-command '<command>'."],
    [
      "profiles add p --client-id c --client-secret canary",
      "Use --client-secret-stdin, or --client-secret-command '<command>'.",
    ],
    ["keys list --access-token canary", "Use --access-token-command '<command>', or set INTEG_ACCESS_TOKEN."],
  ])("suggests no insecure flag for a secret: %s", async (line, step) => {
    const error = await typed(line).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      kind: "usage",
      details: { hint: step, meaning: expect.stringMatching(/^No flag takes/) },
    });
    expect(JSON.stringify(error) + String(error)).not.toContain("canary");
  });

  it.each([
    ["sandbox start --log=3", "--log"],
    ["entities list --all=yes", "--all"],
    ["--json=yes entities list", "--json"],
  ])("explains a value after a flag that has none: %s", async (line, flag) => {
    await expect(typed(line)).rejects.toMatchObject({
      kind: "usage",
      message: `${flag} takes no value.`,
      details: { hint: `Write ${flag} without a value.` },
    });
  });

  it.each(["-v", "--vresion"])("refers a flag without a command to the first screen: %s", async (line) => {
    await expect(typed(line)).rejects.toMatchObject({ kind: "usage", details: { nextCommand: "integ --help" } });
  });
});
