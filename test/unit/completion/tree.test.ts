import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { nodesBelow, treeOf } from "../../../src/completion/tree.ts";
import { usageOf } from "../../../src/completion/surface.ts";
import { wholeTree } from "../../../src/program.ts";

function declared(): Command {
  const root = new Command("integ").description("the program").version("1", "-V, --version", "print the version");
  root.option("-p, --profile <name>", "profile").option("--no-input", "never prompt");
  const keys = root.command("keys").alias("key").description("keys").option("-p, --profile <name>", "profile");
  const create = keys
    .command("create")
    .description("make one")
    .argument("<id>", "the id")
    .argument("[file...]", "files");
  create
    .option("-p, --profile <name>", "profile")
    .option("--no-input", "never prompt")
    .requiredOption("--name <name>", "its name")
    .option("--scope <scope...>", "what it may")
    .option("--wait <duration>", "how long", "1m")
    .addOption(create.createOption("--type <type>", "which").choices(["a", "b"]))
    .addOption(create.createOption("--inner", "not for people").hideHelp())
    .option("--dry-run", "send nothing");
  return root;
}

const notes = { examples: [{ line: "integ keys create k", does: "a key" }], more: "More." };
const tree = treeOf(declared(), (command) => (command.name() === "create" ? notes : undefined));
const create = tree.root.nodes[0]!.nodes[0]!;

describe("the tree", () => {
  it("has every command, with its aliases", () => {
    expect([...nodesBelow(tree.root)].map(({ path }) => path.join(" "))).toEqual(["", "keys", "keys create"]);
    expect(tree.root.nodes[0]).toMatchObject({ aliases: ["key"], summary: "keys", examples: [] });
  });

  it("has the global flags once, and help, which commander stores separately", () => {
    expect(tree.globals.map(({ long, short }) => [long, short])).toEqual([
      ["--profile", "-p"],
      ["--no-input", undefined],
      ["--help", "-h"],
    ]);
    expect(tree.root.flags.map(({ long }) => long)).toEqual(["--version"]);
    expect(create.flags.map(({ long }) => long)).toEqual(["--name", "--scope", "--wait", "--type", "--dry-run"]);
  });

  it("has the value of every flag", () => {
    const [name, scope, wait, type, dryRun] = create.flags;
    expect(name).toEqual({
      long: "--name",
      summary: "its name",
      mandatory: true,
      value: { name: "name", required: true, repeatable: false, completion: { kind: "nothing" } },
    });
    expect(scope!.value).toMatchObject({ name: "scope", repeatable: true });
    expect(wait).toMatchObject({ standard: "1m", mandatory: false });
    expect(type!.value!.completion).toEqual({ kind: "words", words: ["a", "b"], open: false });
    expect(dryRun).toEqual({ long: "--dry-run", summary: "send nothing", mandatory: false });
  });

  it("has every argument, and if it is required and repeatable", () => {
    expect(create.arguments).toMatchObject([
      { name: "id", required: true, repeatable: false, summary: "the id" },
      { name: "file", required: false, repeatable: true, completion: { kind: "files" } },
    ]);
    expect(usageOf(create)).toBe("integ keys create [options] <id> [file...]");
    expect(create).toMatchObject(notes);
  });
});

describe("the real tree", () => {
  it("has examples for every runnable command, each starting as a user types it", async () => {
    const { root, verbOf } = await wholeTree();
    const verbs = [...nodesBelow(treeOf(root, verbOf).root)].filter(({ nodes }) => nodes.length === 0);
    expect(verbs.length).toBeGreaterThan(25);
    const without = verbs.filter(
      ({ path, examples }) => !examples.some(({ line }) => line.includes(`integ ${path.join(" ")}`)),
    );
    expect(without.map(({ path }) => path.join(" "))).toEqual([]);
  });

  it("has no repeated flag on a command, and no global one", async () => {
    const { root, verbOf } = await wholeTree();
    const tree = treeOf(root, verbOf);
    const names = (flags: typeof tree.globals): string[] =>
      flags.flatMap(({ long, short }) => (short ? [long, short] : [long]));
    for (const node of nodesBelow(tree.root)) {
      const all = [...names(tree.globals), ...names(node.flags)];
      expect(all.filter((name, at) => all.indexOf(name) !== at)).toEqual([]);
    }
  });
});
