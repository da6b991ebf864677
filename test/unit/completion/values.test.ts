import { describe, expect, it } from "vitest";
import { nodesBelow, treeOf, type Tree } from "../../../src/completion/tree.ts";
import { byName, byPlace, completionOf } from "../../../src/completion/values.ts";
import { wholeTree } from "../../../src/program.ts";

async function realTree(): Promise<Tree> {
  const { root, verbOf } = await wholeTree();
  return treeOf(root, verbOf);
}

async function values(): Promise<{ place: string; name: string; declared: boolean }[]> {
  const { root, globals } = await realTree();
  const flags = globals.map((flag) => ({ path: [] as readonly string[], flag }));
  const found = [...nodesBelow(root)].flatMap((node) => [
    ...node.arguments.map((value) => ({ place: [...node.path, value.name].join(" "), value })),
    ...[...node.flags.map((flag) => ({ path: node.path, flag })), ...(node.path.length === 0 ? flags : [])]
      .filter(({ flag }) => flag.value)
      .map(({ path, flag }) => ({ place: [...path, flag.long].join(" "), value: flag.value! })),
  ]);
  return found.map(({ place, value: { name, completion } }) => ({
    place,
    name,
    declared: completion.kind === "words" && !completion.open,
  }));
}

describe("value completion", () => {
  it("handles every placeholder in angle brackets", async () => {
    const unknown = (await values()).filter(({ name, declared }) => !declared && !(name in byName));
    expect(unknown).toEqual([]);
  });

  it("has rules only for existing places", async () => {
    const places = (await values()).map(({ place }) => place);
    const gone = Object.keys(byPlace).filter(
      (named) => !places.some((place) => place === named || (named.startsWith("--") && place.endsWith(named))),
    );
    expect(gone).toEqual([]);
  });

  it("prefers the declared choices", () => {
    expect(completionOf({ path: [], name: "path", flag: "--x", choices: ["a", "b"] })).toEqual({
      kind: "words",
      words: ["a", "b"],
      open: false,
    });
  });

  it("looks up the place, then the flag, then the word", () => {
    expect(completionOf({ path: ["keys", "create"], name: "scope", flag: "--scope" })).toMatchObject({
      words: ["*", "push-ingest:*"],
    });
    expect(completionOf({ path: ["oauth-clients", "create"], name: "scope", flag: "--scope" })).toMatchObject({
      open: true,
    });
    expect(completionOf({ path: [], name: "name", flag: "--profile" })).toEqual({ kind: "live", names: "profiles" });
    expect(completionOf({ path: ["keys", "create"], name: "path", flag: "--secret-file" })).toEqual({ kind: "files" });
    expect(completionOf({ path: ["profiles", "add"], name: "name" })).toEqual({ kind: "nothing" });
  });
});
