// What undici's modules get in the bundle in place of others gives what the others gave.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { describe, expect, it } from "vitest";

const require = createRequire(import.meta.url);
const undici = (module: string): string => require.resolve(`undici/lib/core/${module}.js`);
const ours = (name: string): string => require.resolve(`../../../../scripts/substitutes/${name}.cjs`);

interface Names {
  getServerName: (host: string | null) => string | null;
}

/** What a module takes from another: `util.isIP`, or `{ InvalidArgumentError }`. */
function takenFrom(source: string, module: string): string[] {
  const [, name, names] =
    new RegExp(`const (?:(\\w+)|\\{([^}]*)\\}) = require\\('\\./${module}'\\)`).exec(source) ?? [];
  if (names !== undefined) return names.split(",").map((one) => one.trim());
  return [...source.matchAll(new RegExp(`\\b${name}\\.(\\w+)`, "g"))].map(([, member]) => member!);
}

describe("undici's connect.js", () => {
  const source = readFileSync(undici("connect"), "utf8");

  it.each([
    ["util", "connect-alone"],
    ["errors", "connect-errors"],
  ])("finds all that it takes from %s", (module, substitute) => {
    const taken = takenFrom(source, module);
    expect(taken.length).toBeGreaterThan(0);
    expect(Object.keys(require(ours(substitute)) as object)).toEqual(expect.arrayContaining(taken));
  });

  it.each([
    null,
    "",
    "api.example.com",
    "api.example.com:8443",
    "localhost:1",
    "127.0.0.1",
    "127.0.0.1:443",
    "[::1]",
    "[::1]:443",
    "[2001:db8::1]:8080",
    "xn--nxasmq6b.example:443",
    "a.b:",
  ])("asks for the same name in a handshake with %j", (host) => {
    const before = (require(undici("util")) as Names).getServerName(host);
    expect((require(ours("connect-alone")) as Names).getServerName(host)).toBe(before);
  });

  it("is given no time for a connection", () => {
    const { setupConnectTimeout } = require(ours("connect-alone")) as {
      setupConnectTimeout: (socket: unknown, options: { timeout: number }) => () => void;
    };
    expect(setupConnectTimeout({}, { timeout: 0 })()).toBeUndefined();
    expect(() => setupConnectTimeout({}, { timeout: 1 })).toThrow("exchange");
  });
});

describe("undici's names of headers", () => {
  const { headerNameLowerCasedRecord: known } = require(undici("constants")) as {
    headerNameLowerCasedRecord: Readonly<Record<string, string>>;
  };

  it("are those that a header without a table has", () => {
    const names = Object.keys(known);
    expect(names.length).toBeGreaterThan(100);
    expect(names.map((name) => known[name])).toEqual(names.map((name) => name.toLowerCase()));
    const { tree } = require(undici("tree")) as { tree: { lookup: (name: Buffer) => string | null } };
    for (const name of names) expect(tree.lookup(Buffer.from(name))).toBe(name.toLowerCase());
  });

  it("are looked up with something else beside them", () => {
    const { headerNameLowerCasedRecord } = require(ours("no-known-headers")) as {
      headerNameLowerCasedRecord: object;
    };
    expect(Object.getPrototypeOf(headerNameLowerCasedRecord)).toBeNull();
    for (const module of ["util", "request"]) {
      const source = readFileSync(undici(module), "utf8");
      const lookups = source.match(/headerNameLowerCasedRecord\[[^\]]+\][^\n]*|tree\.lookup\([^\n]*/g) ?? [];
      expect(lookups.length).toBeGreaterThan(0);
      for (const lookup of lookups) expect(lookup).toMatch(/ \?\? .*toLowerCase\(\)|=== undefined|\[key\]$/);
    }
  });
});
