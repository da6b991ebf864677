// Uses a command tree of test declarations. test/terminal/completion.test.ts uses the real shells and tree.
import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { candidatesAt, type Candidates } from "../../../src/completion/candidates.ts";
import { treeOf } from "../../../src/completion/tree.ts";

function declared(): Command {
  const root = new Command("integ").version("1", "-V, --version", "print the version");
  root.option("-p, --profile <name>", "profile").option("--no-input", "never prompt");
  const keys = root.command("keys").alias("key").description("the keys");
  const create = keys.command("create").argument("<id>", "the id").argument("[file...]", "files");
  create
    .option("--scope <scope...>", "what it may")
    .option("--wait <duration>", "how long")
    .addOption(create.createOption("-t, --type <type>", "which").choices(["a", "b"]))
    .option("--dry-run", "send nothing");
  keys.command("prune").option("--older-than <duration>", "how old");
  return root;
}

const tree = treeOf(declared(), () => undefined);

function at(line: string): Candidates {
  const words = line.split(" ");
  return candidatesAt(tree, words.slice(0, -1), words.at(-1)!);
}

function textsAt(line: string): string[] {
  const found = at(line);
  return "list" in found ? found.list.map(({ text }) => text) : [];
}

const own = ["--scope", "--wait", "--type", "-t", "--dry-run"];
const globals = ["--profile", "-p", "--no-input", "--help", "-h"];

describe("completion offers", () => {
  it("commands with their summaries, and help next to the first", () => {
    expect(at("ke")).toEqual({
      kind: "commands",
      prefix: "",
      list: [
        { text: "keys", summary: "the keys" },
        { text: "help", summary: "Show help for a command or topic" },
      ],
    });
    expect(textsAt("key ")).toEqual(["create", "prune"]);
    const topics = ["options", "output", "exit-codes", "environment", "states", "secrets"];
    expect(textsAt("help ")).toEqual(["keys", ...topics]);
    expect(textsAt("help keys create ")).toEqual([]);
  });

  it("an alias only if no name matches", () => {
    const aliased = new Command("integ");
    aliased.command("people").alias("person");
    aliased.command("pens");
    const list = (current: string): unknown =>
      candidatesAt(
        treeOf(aliased, () => undefined),
        [],
        current,
      );
    expect(list("pe")).toMatchObject({ list: [{ text: "people" }, { text: "pens" }, { text: "help" }] });
    expect(list("per")).toMatchObject({ list: [{ text: "person" }] });
  });

  it("flags that were given under neither name, and repeatable ones", () => {
    expect(textsAt("keys create -")).toEqual([...own, ...globals]);
    expect(textsAt("-p x keys create -t a --scope=b --no-input -")).toEqual([
      "--scope",
      "--wait",
      "--dry-run",
      "--help",
      "-h",
    ]);
    expect(textsAt("keys prune ")).toEqual(["--older-than"]);
    expect(textsAt("keys prune -- ")).toEqual([]);
  });

  it("the values of a flag, after a space or an equals sign", () => {
    expect(textsAt("keys create --type ")).toEqual(["a", "b"]);
    expect(at("keys create --type=")).toMatchObject({ kind: "values", prefix: "--type=", list: [{ text: "a" }, {}] });
    expect(at("-p ")).toEqual({ kind: "live", names: "profiles", prefix: "" });
    expect(at("--profile=")).toEqual({ kind: "live", names: "profiles", prefix: "--profile=" });
    expect(textsAt("keys create --wait ")).toEqual([]);
    expect(textsAt("keys create --dry-run=")).toEqual([]);
  });

  it("further values of a variadic flag, until another flag starts", () => {
    const scopes = ["*", "push-ingest:*"];
    expect(textsAt("keys create --scope ")).toEqual(scopes);
    expect(textsAt("keys create --scope x ")).toEqual(scopes);
    expect(textsAt("keys create --scope=x ")).toEqual(scopes);
    expect(textsAt("keys create --scope x --")).toContain("--wait");
  });

  it("arguments by position, the last one repeatedly, also after --", () => {
    expect(textsAt("keys create ")).toEqual([]);
    expect(at("keys create one ").kind).toBe("files");
    expect(at("keys create one --dry-run two -- three ").kind).toBe("files");
    expect(at("keys create one -- -").kind).toBe("files");
  });
});

describe("the names of --fields", () => {
  const root = new Command("integ").option("--fields <a,b.c>", "fields");
  root.command("list").option("--fields <a,b.c>", "fields");
  root.command("other").option("--fields <a,b.c>", "fields");
  const withFields = treeOf(root, (command) =>
    command.name() === "list" ? { examples: [], fields: ["id", "email", "status"] } : undefined,
  );
  const at = (words: string[], current: string): Candidates => candidatesAt(withFields, words, current);
  const values = (prefix: string, ...texts: string[]) => ({
    kind: "values",
    prefix,
    list: texts.map((text) => ({ text })),
  });

  it("are those of the command, except the names already typed", () => {
    expect(at(["list", "--fields"], "")).toEqual(values("", "id", "email", "status"));
    expect(at(["list", "--fields"], "id,em")).toEqual(values("", "id,email", "id,status"));
    expect(at(["list", "--fields"], "status,id,")).toEqual(values("", "status,id,email"));
    expect(at(["list"], "--fields=id,")).toEqual(values("--fields=", "id,email", "id,status"));
  });

  it("are none for a command without known fields", () => {
    expect(at(["other", "--fields"], "")).toEqual(values(""));
    expect(at(["--fields"], "")).toEqual(values(""));
  });
});
