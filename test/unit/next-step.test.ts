import { describe, expect, it } from "vitest";
import { nodesBelow, treeOf } from "../../src/completion/tree.ts";
import { commandAfter, flags, shell, shortFlags, withoutConsent } from "../../src/next-step.ts";
import { wholeTree } from "../../src/program.ts";

describe("a next step", () => {
  it.each([
    [shell`integ apply --retry ci`, "apply -f prod.yaml", "integ apply --retry ci -f prod.yaml"],
    [shell`integ apply --retry ci`, "apply --file=prod.yaml -p eu", "integ apply --retry ci -p eu -f prod.yaml"],
    [shell`integ plan`, "apply -fprod.yaml", "integ plan -f prod.yaml"],
    [shell`integ plan --out p.json`, "apply p.json --file prod.yaml", "integ plan --out p.json -f prod.yaml"],
    [shell`integ policy check --offline`, "plan -f a.yaml -f b.yaml", "integ policy check --offline -f b.yaml"],
    [shell`integ apply -f own.yaml`, "plan -f prod.yaml", "integ apply -f own.yaml"],
    [shell`integ apply p.json`, "plan -f prod.yaml --out p.json", "integ apply p.json"],
    [shell`integ journal list`, "apply -f prod.yaml -p eu", "integ journal list"],
    [shell`integ entities list`, "api /v1/entities -f limit=2 -p eu", "integ entities list -p eu"],
    [shell`integ plan`, "apply -f 'x y.yaml'", "integ plan -f 'x y.yaml'"],
  ])("%s after integ %s", (next, typed, expected) => {
    const words = typed.match(/'[^']*'|\S+/g)!.map((word) => word.replaceAll("'", ""));
    expect(commandAfter(next, words)).toBe(expected);
  });

  it.each([
    ["create --new --scope a --force", { add: ["--retry-for", "9m"] }, "create --scope a --retry-for 9m"],
    ["rotate 1 -y --accept-unproven", { add: ["--force"] }, "rotate 1 --force"],
    ["recover 1 --revoke ak_1 --replace-lost-secret", { add: ["--yes"] }, "recover 1 --yes"],
  ])("of integ %s repeats no consent", (typed, next, expected) => {
    expect(commandAfter(next, typed.split(" "))).toBe(`integ ${expected}`);
  });

  it("for an agent has no --yes", () => {
    const own = withoutConsent({ nextCommand: shell`integ keys rotate ${"ak_1"} --update-profile --yes` });
    expect(own.nextCommand).toBe("integ keys rotate ak_1 --update-profile");
    expect(own.hint).toMatch(/^Ask a person/);
    const claim = withoutConsent({ nextCommand: shell`integ journal claim ${"1r2"}` });
    expect(claim).toEqual({ hint: expect.stringContaining("integ journal claim 1r2 --secret-file <path>") });
    const step = { nextCommand: { add: ["--force"] }, hint: "Look at it." } as const;
    expect(withoutConsent(step)).toEqual(step);
  });

  it("is left out for a command other than the typed one", () => {
    const another = { add: ["--new"], of: "create" };
    expect(commandAfter(another, ["oauth-clients", "create", "--scope", "a"])).toBe(
      "integ oauth-clients create --scope a --new",
    );
    expect(commandAfter(another, ["journal", "recover"])).toBeUndefined();
  });
});

describe("an option named in a message", () => {
  it("exists on a command", async () => {
    const { root, verbOf } = await wholeTree();
    const tree = treeOf(root, verbOf);
    const options = [...tree.globals, ...[...nodesBelow(tree.root)].flatMap((node) => node.flags)];
    const names = new Set(options.flatMap(({ long, short }) => [long, short]));
    const unknown = [...Object.values(flags), ...Object.values(shortFlags)].filter((name) => !names.has(name));
    expect(unknown).toEqual([]);
  });
});
