import { describe, expect, test } from "vitest";
import { Failure } from "../../../../src/errors.ts";
import {
  type Environment,
  parameters,
  readAddress,
  shownAddress,
  sslModeOf,
} from "../../../../src/journal/postgres/address.ts";
import { sectionOf } from "../../../../src/journal/postgres/service-file.ts";
import { passwordIn } from "../../../../src/journal/postgres/password.ts";

function refusal(text: string, env: Environment = {}): Failure {
  try {
    readAddress(text, { env });
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error(`${text} was taken`);
}

describe("what libpq understands", () => {
  test.each<[string, Environment, object]>([
    ["postgresql://", {}, { hosts: [], user: undefined, database: undefined, port: 5432, schema: "public" }],
    ["postgres://h/d", {}, { hosts: [{ name: "h", port: 5432 }], database: "d" }],
    ["postgresql://u:p%40@h:6000/d", {}, { user: "u", password: "p@", hosts: [{ name: "h", port: 6000 }] }],
    ["postgresql://[::1]:6000/d", {}, { hosts: [{ name: "::1", port: 6000 }] }],
    [
      "postgresql://[2001:db8::1],[::1]:7/d",
      {},
      {
        hosts: [
          { name: "2001:db8::1", port: 5432 },
          { name: "::1", port: 7 },
        ],
      },
    ],
    ["postgresql://h/d/e", {}, { database: "d/e" }],
    ["postgresql://h/d%2Fe", {}, { database: "d/e" }],
    ["postgresql://%2Fvar%2Frun/d", {}, { hosts: [{ name: "/var/run", port: 5432 }] }],
    ["postgresql:///d?host=/run/pg&port=6000", {}, { hosts: [{ name: "/run/pg", port: 6000 }], database: "d" }],
    [
      "postgresql://a:1,b:2,c/d",
      {},
      {
        hosts: [
          { name: "a", port: 1 },
          { name: "b", port: 2 },
          { name: "c", port: 5432 },
        ],
        sessionKind: "read-write",
      },
    ],
    [
      "postgresql://a,b/d?port=7",
      {},
      {
        hosts: [
          { name: "a", port: 7 },
          { name: "b", port: 7 },
        ],
      },
    ],
    ["postgresql://a,b/d?target_session_attrs=any", {}, { sessionKind: "any" }],
    ["postgresql://h/d?sslmode=verify-ca&sslrootcert=/c", {}, { sslMode: "verify-ca", rootCertificate: "/c" }],
    ["postgresql://h/d?options=-c%20search_path%3Dteam", {}, { schema: "team" }],
    ["postgresql://h/d?options=-csearch_path%3Dteam,public", {}, { schema: "team" }],
    ["postgresql://h/d?options=--search_path%3Dteam", {}, { schema: "team" }],
    [
      "postgresql://",
      { PGHOST: "127.0.0.1", PGPORT: "7", PGUSER: "u", PGDATABASE: "d", PGPASSWORD: "p", PGSSLMODE: "require" },
      { hosts: [{ name: "127.0.0.1", port: 7 }], user: "u", database: "d", password: "p", sslMode: "require" },
    ],
    [
      "postgresql://v@h/e",
      { PGHOST: "x", PGUSER: "u", PGDATABASE: "d" },
      { hosts: [{ name: "h", port: 5432 }], user: "v", database: "e" },
    ],
    ["postgresql://h", { PGOPTIONS: "-c search_path=team", PGPASSFILE: "/f" }, { schema: "team", passwordFile: "/f" }],
  ])("%s with %j", (text, env, expected) => {
    expect(readAddress(text, { env })).toMatchObject(expected);
  });

  test.each([
    ["db.example", undefined, "verify-full"],
    ["db.example", "require", "require"],
    ["10.0.0.1", undefined, "verify-full"],
    ["127.0.0.2", undefined, "disable"],
    ["localhost", undefined, "disable"],
    ["localhost", "verify-full", "verify-full"],
    ["/run/pg", "verify-full", "disable"],
    ["127.0.0.1.example", undefined, "verify-full"],
  ] as const)("a connection to %s with sslmode %s is %s", (name, sslMode, expected) => {
    expect(sslModeOf({ sslMode }, { name, port: 5432 })).toBe(expected);
  });
});

test("a service says what the address does not, and before the variables; a section ends where the next begins", () => {
  const text = "[a]\n# one\n host=h \nuser=u\nuser=v\n\n[b]\nport=7\n";
  const service = (name: string) => sectionOf(text, name, "f") ?? {};
  const env = { PGHOST: "x", PGPORT: "6", PGDATABASE: "d" };
  const found = readAddress("postgresql://w@/?service=a", { env, service });
  expect(found).toMatchObject({ hosts: [{ name: "h", port: 6 }], user: "w", database: "d" });
  expect(readAddress("postgresql://", { env: { PGSERVICE: "b" }, service })).toMatchObject({ hosts: [], port: 7 });
  expect(sectionOf(text, "c", "f")).toBeUndefined();
  for (const line of ["hots=canary", "canary", "service=canary"])
    expect(() => sectionOf(`[a]\n${line}`, "a", "f")).toThrow(/line 2 of f: (?!.*canary)/);
});

describe("what is refused before anything is connected", () => {
  test.each<[string, Environment, string]>([
    ["postgresq://u:canary@h/d", {}, "postgresq:// is not supported"],
    ["mysql://u:canary@h/d", {}, "mysql:// is not supported"],
    ["https://u:canary@h/d", {}, "https:// is not supported"],
    ["postgresql://u:canary@h:port/d", {}, "a port is a number"],
    ["postgresql://u:canary@h:0/d", {}, "a port is a number"],
    ["postgresql://u:canary@h:70000/d", {}, "a port is a number"],
    ["postgresql://u:canary@h:99999/d", {}, "a port is a number"],
    ["postgresql://u:canary@h:-1/d", {}, "a port is a number"],
    ["postgresql://u:canary@h/d?port=0", {}, "a port is a number"],
    ["postgresql://u:canary@h/d", { PGPORT: "0" }, "a port is a number"],
    ["postgresql://u:can%ary@h/d", {}, "hexadecimal"],
    ["postgresql://u:canary%@h/d", {}, "hexadecimal"],
    ["postgresql://u:canary%4@h/d", {}, "hexadecimal"],
    ["postgresql://u:canary%ff@h/d", {}, "in UTF-8"],
    ["postgresql://u:canary%00@h/d", {}, "%00"],
    ["postgresql://u%00replication%00true:canary@h/d", {}, "%00"],
    ["postgresql://u:canary@h/d%00", {}, "%00"],
    ["postgresql://u:canary@h/d?user=u%00", {}, "%00"],
    ["postgresql://u:canary@[]/d", {}, "[ ]"],
    ["postgresql://u:canary@[::1/d", {}, "[ ]"],
    ["postgresql://u:canary@[::1]5432/d", {}, "[ ]"],
    ["postgresql://u:canary@2001:db8::1/d", {}, "[ ]"],
    ["postgresql://u:canary@a,b/d?port=1,2,3", {}, "2 hosts and 3 ports"],
    ["postgresql://u:canary@a,b,c/d?port=1,2", {}, "3 hosts and 2 ports"],
    ["postgresql://u:canary@b@h/d", {}, "%40"],
    ["postgresql://u:canary@h/d#x", {}, "%23"],
    ["postgresql://u:canary@::1:5/d", {}, "[ ]"],
    ["postgresql://u:canary@a:1,b:2/d?port=1,2,3", {}, "2 hosts and 3 ports"],
    ["postgresql://u:canary@a,,b/d", {}, "no name"],
    ["postgresql://u:canary@a b/d", {}, "characters that no host has"],
    ["postgresql://u:canary@h/d?sslmode=verify_full", {}, "sslmode is one of"],
    ["postgresql://u:canary@h/d?sslmod=require", {}, 'parameter "sslmod" is not supported'],
    ["postgresql://u@h/d?pasword=canary", {}, 'parameter "pasword" is not supported'],
    ["postgresql://u:canary@h/d?target_session_attrs=master", {}, "target_session_attrs is one of"],
    ["postgresql://u:canary@h/d?options=-c%20work_mem%3D1", {}, "search_path"],
    ["postgresql://u:canary@h/d", { PGSSLMODE: "prefer" }, "sslmode=prefer would send"],
    ["postgresql://u:canary@h/d?sslmode=disable", {}, "sslmode=disable would send"],
    ["postgresql://u:canary@h/d?sslmode=allow", {}, "sslmode=allow would send"],
    ["postgresql://u:canary@localhost,h/d?sslmode=disable", {}, "unprotected to h"],
    ["postgresql://u:canary@localhost,127.0.0.1,10.0.0.1/d?sslmode=prefer", {}, "unprotected to 10.0.0.1"],
  ])("%s with %j", (text, env, words) => {
    const refused = refusal(text, env);
    expect(refused.kind).toBe("usage");
    expect(refused.message).toContain(words);
    expect(JSON.stringify([refused.message, refused.details])).not.toContain("canary");
  });
});

describe("a refusal", () => {
  const usual = "Set INTEG_JOURNAL to postgresql://<user>@<host>:<port>/<database>.";
  const known =
    "host, port, dbname, user, password, passfile, sslmode, sslrootcert, sslcert, sslkey, target_session_attrs, options, application_name, service, connect_timeout";
  const shown = " (postgresql://…)";
  const spaces = "it begins or ends with a space, or has a tab or a line break in it";

  test.each<[text: string, shown: string, what: string, hint?: string]>([
    [" postgresql://h/d", "", spaces],
    ["postgresql://h/d\n", shown, spaces],
    ["postgresql://h/\td", shown, spaces],
    ["h/d", "", "it does not begin with postgresql://"],
    ['"postgresql://h/d"', "", "it is in quotation marks"],
    ["POSTGRESQL://h/d", " (POSTGRESQL://…)", "POSTGRESQL:// is not supported"],
    ["mysql+x://h/d", " (mysql+x://…)", "mysql+x:// is not supported"],
    ["postgres://h#i/d", " (postgres://…)", "a # in it has to be written as %23"],
    ["postgresql://h/d?sslmode=on", shown, "sslmode is one of disable, allow, prefer, require, verify-ca, verify-full"],
    [
      "postgresql://h/d?target_session_attrs=on",
      shown,
      "target_session_attrs is one of any, read-write, read-only, primary, standby, prefer-standby",
    ],
    ["postgresql://h/d?ssl_mode=x", shown, 'the parameter "ssl_mode" is not supported', `Use these alone: ${known}.`],
    ["postgresql://h/d?ssl+mode=x", shown, "the parameter is not supported", `Use these alone: ${known}.`],
    ["postgresql://h/d?=x", shown, "the parameter is not supported", `Use these alone: ${known}.`],
    [`postgresql://h/d?${"x".repeat(41)}`, shown, "the parameter is not supported", `Use these alone: ${known}.`],
    [
      "postgresql://h/d?options=-x",
      shown,
      "of options only -c search_path=<schema> is supported",
      "Set other settings for the role: ALTER ROLE … SET ….",
    ],
  ])("of %j says what is wrong, and what can be written", (text, beginning, what, hint = usual) => {
    const { kind, message, details } = refusal(text);
    expect([kind, message]).toEqual(["usage", `The address of the journal${beginning} cannot be used: ${what}.`]);
    expect(details).toEqual({ meaning: "Nothing was sent and nothing changed.", hint });
  });
});

describe("an address that says everything", () => {
  const said = {
    host: "/run/a,/run/b",
    port: "1,2",
    dbname: "d",
    user: "u",
    password: "p",
    passfile: "/p",
    sslmode: "disable",
    sslrootcert: "/r",
    sslcert: "/c",
    sslkey: "/k",
    target_session_attrs: "standby",
    options: "--search_path=team",
    application_name: "ci",
  };
  const read = {
    hosts: [
      { name: "/run/a", port: 1 },
      { name: "/run/b", port: 2 },
    ],
    port: 1,
    user: "u",
    database: "d",
    password: "p",
    passwordFile: "/p",
    sslMode: "disable",
    rootCertificate: "/r",
    certificate: "/c",
    key: "/k",
    sessionKind: "standby",
    schema: "team",
    applicationName: "ci",
  };
  const query = (more: object = said): string => new URLSearchParams({ ...more }).toString().replaceAll("+", "%20");
  const others = Object.fromEntries(Object.keys(said).map((name) => [parameters[name]!, "other"]));

  test("is read as it is, whatever else is said elsewhere", () => {
    const service = () => Object.fromEntries(Object.keys(said).map((name) => [name, "other"]));
    const text = `postgresql://?${query({ ...said, service: "s", connect_timeout: "5" })}`;
    const { shown, ...rest } = readAddress(text, { env: others, service });
    expect(rest).toEqual(read);
    expect(shown).toBe(text.replace("&password=p", "").replace("&passfile=%2Fp", ""));
  });

  test("may say it by variables, and by a service before those", () => {
    const env = Object.fromEntries(Object.entries(said).map(([name, value]) => [parameters[name]!, value]));
    expect(readAddress("postgresql://", { env })).toEqual({ ...read, shown: "postgresql://" });
    const named = { env: { ...others, PGSERVICE: "s" }, service: () => said };
    expect(readAddress("postgresql://", named)).toEqual({ ...read, shown: "postgresql://" });
  });

  test("says nothing by what is empty", () => {
    const empty = Object.fromEntries(Object.keys(said).map((name) => [name, ""]));
    const found = readAddress(`postgresql://?${query(empty)}&`, { env: {} });
    expect(found).toMatchObject({ hosts: [], port: 5432, user: undefined, sessionKind: "any", schema: "public" });
    expect(readAddress("postgresql://?user", { env: { PGUSER: "eve" } }).user).toBe("eve");
  });
});

test.each(["disable", "allow", "prefer"])("sslmode=%s is for this machine", (mode) => {
  for (const host of ["localhost", "127.0.0.1,[::1]", "%2Frun%2Fpg", ""])
    expect(readAddress(`postgresql://${host}/d?sslmode=${mode}`, { env: {} }).sslMode).toBe(mode);
});

test.each([
  ["postgresql://u:canary@h/d", "postgresql://u@h/d"],
  ["postgresql://u:can@ary@h/d", "postgresql://u@h/d"],
  ["postgresql://u:can/ary@h/d", "postgresql://u@h/d"],
  ["postgresql://h/d?password=canary&sslmode=require", "postgresql://h/d?sslmode=require"],
  ["postgresql://h/d?%70assword=canary", "postgresql://h/d"],
  ["postgresql://a:1,b:2/d?options=-csearch_path%3Dx", "postgresql://a:1,b:2/d?options=-csearch_path%3Dx"],
])("%s is shown as %s", (text, shown) => {
  expect(shownAddress(text)).toBe(shown);
});

test.each([
  ["h:5432:d:u:secret", "secret"],
  ["# h:5432:d:u:no\n*:*:*:*:any", "any"],
  ["h:5433:d:u:no\nh:*:d:u:colon:in it", "colon:in it"],
  ["h:5432:other:u:no", undefined],
  ["h:5432:d:u:back\\\\slash\\:colon\r\n", "back\\slash:colon"],
  ["h:5432", undefined],
  ["\\h:5432:d:u:escaped", "escaped"],
  ["", undefined],
])("of the password file %j the password is %s", (text, password) => {
  expect(passwordIn(text, { host: { name: "h", port: 5432 }, database: "d", user: "u" })).toBe(password);
});

test("a socket's password is that of its folder or of localhost", () => {
  const question = { host: { name: "/run/pg", port: 5432 }, database: "d", user: "u" };
  expect(passwordIn("/run/pg:*:*:*:folder", question)).toBe("folder");
  expect(passwordIn("localhost:*:*:*:local", question)).toBe("local");
});
