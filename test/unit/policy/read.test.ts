import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/errors.ts";
import type { Policy } from "../../../src/policy/policy.ts";
import { readPolicy } from "../../../src/policy/read.ts";

const now = Date.parse("2026-11-22T03:00:00.000Z");

function withId(text: string): string {
  return /^\uFEFF?version: 1\r?\n/.test(text) && !text.includes("\nid:")
    ? `${text.trimEnd()}\nid: pol_of_this_test\n`
    : text;
}

function read(text: string): Policy {
  return readPolicy({ text: withId(text), file: "integ.yaml", folder: "/srv/policy", nowMs: now });
}

function refusal(text: string): string {
  try {
    read(text);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    expect(error.kind).toBe("usage");
    return `${error.message}\n${error.details.meaning ?? ""}`;
  }
  return "accepted";
}

const client = (more = "", secret = "{ file: a }"): string =>
  `version: 1\noauth_clients:\n  a:\n    service_account: sa_1\n    scopes: [entity:read]\n    secret: ${secret}\n${more}`;
const key = (more = ""): string =>
  `version: 1\naccess_keys:\n  k:\n    type: service_account\n    scopes: ["*"]\n    secret: unknown\n${more}`;
const many = (count: number): string =>
  `version: 1\noauth_clients:\n  a:\n    service_account: sa\n    secret: unknown\n    scopes: [${Array.from({ length: count }, (_, i) => `s${i}`).join(", ")}]\n`;

const byUse = (most: string): string => `overlap: { unused_for: 24h, at_most: ${most} }`;

describe("a policy file", () => {
  it("is read with its defaults", () => {
    const policy = read(`version: 1
profile: prod
defaults: { overlap: 12h, window: "02:00-04:00 UTC", max_failures: 5, unknown_age: rotate }
limits: { changes_per_run: 7, keep_free_slots: 2 }
oauth_clients:
  reporting:
    service_account: sa_reporting
    scopes: [entity:read, cohort:read]
    rotate: { every: 60d }
    accept_unproven: true
    secret: { command: deploy, format: json }
access_keys:
  deploy:
    type: service_account
    scopes: ["push-ingest:*"]
    expires_in: 90d
    rotate: { before_expiry: 14d, overlap: 36h, unknown_age: report }
    secret: { file: keys/deploy }
unmanaged: ignore
`);
    const [day, hour] = [86_400_000, 3_600_000];
    expect(policy).toEqual({
      id: "pol_of_this_test",
      profile: "prod",
      unmanaged: "ignore",
      window: { from: 120, to: 240, zone: "UTC" },
      maxFailures: 5,
      changesPerRun: 7,
      keepFreeSlots: 2,
      items: [
        {
          policy: "pol_of_this_test",
          kind: "oauth_client",
          name: "reporting",
          serviceAccount: "sa_reporting",
          scopes: ["entity:read", "cohort:read"],
          rotate: { everyMs: 60 * day, beforeExpiryMs: undefined, overlapMs: 12 * hour, unknownAge: "rotate" },
          destinations: [{ command: "deploy", format: "json" }],
          acceptsUnproven: true,
        },
        {
          policy: "pol_of_this_test",
          kind: "access_key",
          name: "deploy",
          type: "service_account",
          scopes: ["push-ingest:*"],
          expiresInMs: 90 * day,
          expiresAt: undefined,
          rotate: { everyMs: undefined, beforeExpiryMs: 14 * day, overlapMs: 36 * hour, unknownAge: "report" },
          destinations: [{ file: "/srv/policy/keys/deploy" }],
          acceptsUnproven: false,
        },
      ],
    });
  });

  it("may have no items, Windows line ends, or JSON", () => {
    expect(read("\uFEFFversion: 1\r\naccess_keys: {}\r\n").items).toEqual([]);
    expect(read('{"$schema":"./policy.json","version":1,"id":"pol_of_this_test"}').items).toEqual([]);
  });

  it("without an id is refused with a line that adds one", () => {
    const message = refusal("{ version: 1 }");
    expect(message).toMatch(/^integ\.yaml:1:12: the file has no id.+ a line such as id: pol_[0-9a-f]{16}\.$/m);
    const [line] = /id: pol_\w+/.exec(message) ?? [];
    expect(read(`${line}\nversion: 1\n`).items).toEqual([]);
  });

  it.each<readonly [what: string, text: string, at: string, ...words: string[]]>([
    ["nothing", "", "1:1", "the file is empty", "a map with version: 1"],
    ["no map", "- 1\n", "1:1", "the file is [1]"],
    ["no YAML", "version: [1\n", "2:1", "not valid YAML", "a ] is missing", "lists as [a, b]"],
    ["a quotation mark that is missing", client().replace("sa_1", '"sa_1'), "8:1", "quotation mark is missing"],
    ["a colon that is missing", client().replace("service_account:", "service_account"), "4:5", "a colon is missing"],
    ["a star without quotes", key().replace('"*"', "*"), "5:14", "cannot begin with *"],
    ["a reserved character", client().replace("sa_1", "@sa"), "4:22", "cannot begin with @"],
    ["a key that is used twice", `${client()}version: 1\n`, "7:1", "the key version is used twice"],
    ["a home folder", client("", "{ file: ~/a }"), "6:21", '"~/a"', "~ stands for no folder here"],
    [
      "two destinations in one",
      client("", "{ file: a, command: b }"),
      "6:24",
      '"command" together with another',
      "a list of several",
    ],
    [
      "every scope",
      client().replace("entity:read", '"*"'),
      "5:14",
      '"*"',
      "one scope by its name, such as entity:read",
    ],
    ["one scope without a list", client().replace("[entity:read]", "entity:read"), "5:13", "such as [entity:read]"],
    ["another version", "version: 2\n", "1:10", "version is 2", "Allowed: 1."],
    ["no version", "unmanaged: report\n", "1:1", "version is missing"],
    ["an unknown key", "version: 1\nlimit: {}\n", "2:1", 'unknown key "limit"', "limits"],
    ["an unknown key of an item", client("    rotat: {}\n"), "7:5", 'unknown key "rotat" in oauth_clients.a', "rotate"],
    ["an unknown key of a place", client("", "{ file: a, mode: 1 }"), "6:24", 'unknown key "mode"', "file, format"],
    ["a key twice", "version: 1\nversion: 1\n", "2:1", "used twice"],
    ["an item twice", `${client()}  a: {}\n`, "7:3", "used twice"],
    ["a tab", "version: 1\ndefaults:\n\toverlap: 1h\n", "3:1", "a tab"],
    ["an anchor", "version: &v 1\n", "1:13", "anchor"],
    ["an alias", "version: &v 1\nunmanaged: *v\n", "2:12", 'alias "*v"'],
    ["a tag", "version: !!int 1\n", "1:16", "tag"],
    ["two documents", "version: 1\n---\nversion: 1\n", "2:1", "second document"],
    ["a key that is not a text", "version: 1\n? [a]\n: 1\n", "2:3", "not a text"],
    ["deep nesting", `version: ${"[".repeat(1000)}\n`, "1:1", "nested too deep"],
    ["a name with a space", "version: 1\naccess_keys:\n  a b: {}\n", "3:3", 'the name "a b"', "letters, digits"],
    ["a reserved name", "version: 1\naccess_keys:\n  __proto__: {}\n", "3:3", "__proto__"],
    [
      "no service account",
      "version: 1\noauth_clients: { a: { scopes: [x], secret: unknown } }\n",
      "2:21",
      "service_account is missing",
    ],
    ["a number as account", client().replace("sa_1", "7"), "4:22", "service_account is 7", "id of a service account"],
    ["no scope", client().replace("[entity:read]", "[]"), "5:13", "scopes is []", "1 to 100 scopes"],
    ["101 scopes", many(101), "6:13", "1 to 100 scopes"],
    ["a wildcard", client().replace("entity:read", '"entity:*"'), "5:14", "wildcard"],
    ["two scopes in one", client().replace("[entity:read]", '["a b"]'), "5:14", "not one scope"],
    ["a scope twice", client().replace("[entity:read]", "[a, b, a]"), "5:20", 'scope is "a"', "each scope once"],
    ["scopes of 4,097 characters", client().replace("entity:read", "x".repeat(4097)), "5:", "4096"],
    ["an unknown key scope", key().replace('"*"', "entity:read"), "5:14", 'Invalid key scope "entity:read"'],
    ["a type", key().replace("service_account", "robot"), "4:11", 'type is "robot"', "user_bound or service_account"],
    ["an impossible date", key("    expires_at: 2027-02-30T00:00:00Z\n"), "7:17", "2027-02-30", "ISO 8601"],
    ["a date that is past", key("    expires_at: 2026-01-01T00:00:00Z\n"), "7:17", "in the future"],
    ["two expiries", key("    expires_at: 2027-03-01T00:00:00Z\n    expires_in: 90d\n"), "7:17", "not both"],
    ["a duration without a unit", client('    rotate: { every: "90" }\n'), "7:22", '"90"', "with its unit"],
    ["a duration that is a number", client("    rotate: { every: 90 }\n"), "7:22", "every is 90", "60d"],
    ["an invalid duration", client("    rotate: { every: soon }\n"), "7:22", '"soon"', "90d"],
    ["an age of zero", client("    rotate: { every: 0d, overlap: 0s }\n"), "7:22", "longer than zero"],
    ["an empty rule", key("    rotate: {}\n"), "7:13", "every or before_expiry"],
    ["an overlap above the age", client("    rotate: { every: 1d, overlap: 2d }\n"), "7:35", 'overlap is "2d"', "1d"],
    ["by use, of a client", client(`    rotate: { every: 60d, ${byUse("14d")} }\n`), "7:36", "is for access keys"],
    ["by default", `defaults: { ${byUse("14d")} }\n${client("    rotate: { every: 60d }\n")}`, "8:13", "overlap: 14d"],
    ["by use, without effect", key(`    rotate: { every: 60d, ${byUse("1d")} }\n`), "7:50", "below at_most (1d)"],
    ["by use, without end", key("    rotate: { every: 60d, overlap: { unused_for: 1d } }\n"), "7:36", "at_most: 14d }"],
    ["the default overlap longer than the age", client("    rotate: { every: 12h }\n"), "7:22", "24h (the default)"],
    [
      "an overlap longer than the remaining lifetime",
      key("    expires_in: 90d\n    rotate: { before_expiry: 1d, overlap: 1d }\n"),
      "8:43",
      "before_expiry (1d)",
    ],
    [
      "due from the start",
      key("    expires_in: 10d\n    rotate: { before_expiry: 10d }\n"),
      "8:30",
      "less than expires_in (10d)",
    ],
    ["due without an expiry", key("    rotate: { before_expiry: 10d }\n"), "7:30", "together with expires_in"],
    ["no place", "version: 1\naccess_keys: { k: { type: user_bound, scopes: ['*'] } }\n", "2:19", "secret is missing"],
    ["another destination", client("", "{ vault: a }"), "6:13", "{ file: <path> }"],
    ["a store, no field", client("", '"vault:secret/a"'), "6:13", '"vault:secret/a"', "vault:<mount>/<path>#<field>"],
    ["a store without a path", client("", "[{ file: a }, github:acme]"), "6:27", "github:<owner>/<repo>"],
    ["no store", client("", "vaultt:secret/a#b"), "6:13", "vault:<mount>/<path>#<field> or github:"],
    ["another format", client("", "{ file: a, format: xml }"), "6:32", '"xml"', "raw (the default), line, json or env"],
    ["an empty file name", client("", '{ file: "" }'), "6:21", "a path"],
    ["a bad window", 'version: 1\ndefaults: { window: "25:00-04:00 UTC" }\n', "2:21", "25:00", "02:00-04:00 UTC"],
    ["no id", "version: 1\n\nid: \n", "3:5", "id is null", "integ policy init"],
    ["an invalid id", 'version: 1\nid: "a/b"\n', "2:5", 'id is "a/b"', "a random id"],
    ["an empty window", 'version: 1\ndefaults: { window: "04:00-04:00 UTC" }\n', "2:21", "04:00-04:00"],
    ["an unknown time zone", 'version: 1\ndefaults: { window: "02:00-04:00 Mars/X" }\n', "2:21", "Europe/Berlin"],
    ["too many failures", "version: 1\ndefaults: { max_failures: 0 }\n", "2:27", "from 1 to 100"],
    ["too many free slots", "version: 1\nlimits: { keep_free_slots: 20 }\n", "2:28", "from 0 to 19"],
  ])("is refused with %s", (_what, text, at, ...words) => {
    const message = refusal(text);
    expect(message).toContain(`integ.yaml:${at}`);
    for (const word of words) expect(message).toContain(word);
    expect(message).toContain("Allowed:".slice(0, message.includes("Allowed:") ? 8 : 0));
    expect(message).toContain("nothing was sent");
  });

  it("is refused if both kinds share a name or two items a destination", () => {
    const both = `${client()}${key().replace("version: 1\n", "").replace("  k:", "  a:")}`;
    expect(refusal(both)).toContain('integ.yaml:8:3: the name "a" is used twice');
    const shared = `${client()}  b:\n    service_account: sa_2\n    scopes: [x]\n    secret: { file: ./x/../a, format: json }\n`;
    expect(refusal(shared)).toContain("integ.yaml:10:13: the secrets of b and a go to the same destination");
    const linked = shared.replace(/file: ([^ ,}]+)/, "file: link/$1");
    const source = { text: withId(linked), file: "integ.yaml", folder: "/srv/policy", nowMs: now };
    expect(() => readPolicy(source)).not.toThrow();
    const realFolder = (folder: string): string => folder.replace("/link", "");
    expect(() => readPolicy({ ...source, realFolder })).toThrow("go to the same destination");
  });

  it.each([
    ["files", "{ file: a }", "{ file: b/../a, format: env }", "/a"],
    ["commands with and without a check", "{ command: put }", "{ command: put, check: get }", "command: put"],
    ["profiles", "{ profile: p }", "{ profile: p }", "profile p"],
    ["stores in any case", '"github:Acme/App#SECRET"', '"github:acme/app#secret"', "github:acme/app#secret"],
    ["lists", "[{ file: c }, { file: a }]", "[{ file: a }, { file: d }]", "/a"],
  ])("is refused with two items on one destination, which it names: %s", (_what, one, other, named) => {
    const second = `  b:\n    service_account: sa_2\n    scopes: [x]\n    secret: ${other}\n`;
    expect(refusal(`${client("", one)}${second}`)).toMatch(
      new RegExp(`:10:13: the secrets of b and a go to the same destination, \\S*${named}\\. Allowed`),
    );
  });

  it.each([
    ["a tab", client().replace("    scopes", "\tscopes"), "a tab indents the line"],
    ["other indentation before a key", client().replace("    scopes", "   scopes"), "not as many spaces"],
  ])("with %s reports only that, not the lines that it makes invalid", (_what, text, words) => {
    const message = refusal(text).split("\n");
    expect([message.length, message[0]]).toEqual([2, expect.stringContaining(words)]);
  });

  it("reports all its defects together, in order", () => {
    const message = refusal("version: 3\nunmanaged: x\nlimits: 1\n").split("\n");
    expect(message.slice(0, 3).map((line) => line.slice(0, 14))).toEqual([
      "integ.yaml:1:1",
      "integ.yaml:2:1",
      "integ.yaml:3:9",
    ]);
  });

  it("is refused above 1 MiB before it is parsed", () => {
    expect(refusal(`version: 1\n#${"x".repeat(10_000_000)}`)).toContain("too large. Allowed: up to 1 MiB");
    expect(refusal("[".repeat(1_000_000))).toContain("nested too deep");
    expect(refusal("- ".repeat(500_000))).toContain("nested too deep");
    expect(refusal("[\n".repeat(500_000))).toContain("nested too deep");
  });

  it("may hold a thousand items", () => {
    const items = Array.from(
      { length: 1000 },
      (_, i) =>
        `  c${i}: { service_account: sa_${i % 60}, scopes: [a], rotate: { every: 60d }, secret: { file: c${i} } }`,
    );
    const started = performance.now();
    expect(read(`version: 1\noauth_clients:\n${items.join("\n")}\n`).items).toHaveLength(1000);
    expect(performance.now() - started).toBeLessThan(15_000);
  });
});

describe("an invisible character", () => {
  it.each([
    ["NUL", "sa\0x", "U+0000"],
    ["an escape", '"sa\\e[31mx"', "U+001B"],
    ["a bidi control", "sa\u202ex", "U+202E"],
  ])("is refused with its place: %s", (_what, value, code) => {
    const text = client().replace("sa_1", value);
    expect(refusal(text)).toContain(
      `integ.yaml:4:22: the character ${code}. Allowed: text without control characters.`,
    );
  });

  it("may be a newline in a command, a byte order mark or a carriage return", () => {
    expect(refusal(client("", "{ command: |\n  a }").replace("{ command: |\n  a }", '{ command: "a\\nb" }'))).toBe(
      "accepted",
    );
    expect(refusal(`\ufeff${client()}`)).toBe("accepted");
    expect(refusal(client().replaceAll("\n", "\r\n"))).toBe("accepted");
  });
});
