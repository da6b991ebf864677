import { describe, expect, test } from "vitest";
import { Failure } from "../../../../src/errors.ts";
import { type Environment, isLocal, readAddress, shownAddress } from "../../../../src/journal/postgres/address.ts";
import { nothingSent } from "../../../../src/journal/store.ts";

function refusal(text: string, env: Environment = {}): Failure {
  try {
    readAddress(text, { env });
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error(`${text} was accepted`);
}

const hostsOf = (...hosts: [name: string, port: number][]) => hosts.map(([name, port]) => ({ name, port }));

test.each<[string, Environment, object]>([
  ["postgresql://", {}, { hosts: hostsOf(["localhost", 5432]), user: undefined, database: undefined }],
  ["postgres://h/d", {}, { hosts: hostsOf(["h", 5432]), database: "d", schema: "public", applicationName: "integ" }],
  ["postgresql://u:p%40+@h:6000/d", {}, { user: "u", password: "p@+", hosts: hostsOf(["h", 6000]) }],
  ["postgresql://u@/d", {}, { user: "u", database: "d", hosts: hostsOf(["localhost", 5432]) }],
  ["postgresql://[::1]:6000/d", {}, { hosts: hostsOf(["::1", 6000]) }],
  ["postgresql://[2001:db8::1],[::1]:7/d", {}, { hosts: hostsOf(["2001:db8::1", 5432], ["::1", 7]) }],
  ["postgresql://h/d/e", {}, { database: "d/e" }],
  ["postgresql://h/?dbname=d%2Fe", {}, { database: "d/e" }],
  ["postgresql://%2Fvar%2Frun/d", {}, { hosts: hostsOf(["/var/run", 5432]) }],
  ["postgresql:///d?host=/run/pg&port=6000", {}, { hosts: hostsOf(["/run/pg", 6000]), database: "d" }],
  [
    "postgresql://u:p@a:1,b:2,c/d",
    {},
    { hosts: hostsOf(["a", 1], ["b", 2], ["c", 5432]), user: "u", password: "p", database: "d", mustBeWritable: true },
  ],
  ["postgresql://a,b/d?port=7", {}, { hosts: hostsOf(["a", 7], ["b", 7]) }],
  ["postgresql://a,b/d?target_session_attrs=any", {}, { mustBeWritable: false }],
  ["postgresql://a/d", {}, { mustBeWritable: false }],
  ["postgresql://a/d", { PGTARGETSESSIONATTRS: "read-write" }, { mustBeWritable: true }],
  ["postgresql://h/d?options=-c%20search_path%3Dteam", {}, { schema: "team" }],
  ["postgresql://h/d?options=-csearch_path%3Dteam,public", {}, { schema: "team" }],
  ["postgresql://h/d?options=--search_path%3Dteam", {}, { schema: "team" }],
  ["postgresql://h/d?user=a+b%2Bc%20d", {}, { user: "a+b+c d" }],
  ["postgresql://h?user=&application_name=ci", { PGUSER: "eve" }, { user: "eve", applicationName: "ci" }],
  [
    "postgresql://",
    { PGHOST: "127.0.0.1", PGPORT: "7", PGUSER: "u", PGDATABASE: "d", PGPASSWORD: "p", PGAPPNAME: "job" },
    { hosts: hostsOf(["127.0.0.1", 7]), user: "u", database: "d", password: "p", applicationName: "job" },
  ],
  [
    "postgresql://v:q@h:6/e",
    { PGHOST: "x", PGPORT: "7", PGUSER: "u", PGDATABASE: "d", PGPASSWORD: "p", PGSERVICE: "s" },
    { hosts: hostsOf(["h", 6]), user: "v", database: "e", password: "q" },
  ],
  [
    "postgresql://v@h/e?user=w&password=r&host=i&port=5",
    {},
    { hosts: hostsOf(["i", 5]), user: "w", database: "e", password: "r" },
  ],
  [
    "postgresql://h/d?sslrootcert=/r&sslcert=/c",
    { PGSSLROOTCERT: "/other", PGSSLKEY: "/k" },
    { files: { sslrootcert: "/r", sslcert: "/c", sslkey: "/k" } },
  ],
])("%s with %j is read as PostgreSQL's own programs do", (text, env, expected) => {
  expect(readAddress(text, { env })).toMatchObject(expected);
});

test.each(["require", "verify-ca", "verify-full"])("sslmode=%s always encrypts", (mode) => {
  for (const host of ["localhost", "db.example"])
    expect(readAddress(`postgresql://${host}/d?sslmode=${mode}`, { env: {} }).isEncrypted).toBe(true);
  expect(readAddress("postgresql://localhost/d", { env: { PGSSLMODE: mode } }).isEncrypted).toBe(true);
});

test.each(["disable", "allow", "prefer"])("sslmode=%s is only for this machine", (mode) => {
  for (const host of ["localhost", "127.0.0.1,[::1]", "%2Frun%2Fpg", ""])
    expect(readAddress(`postgresql://${host}/d?sslmode=${mode}`, { env: {} }).isEncrypted).toBe(false);
});

test("only loopback addresses and socket paths are local", () => {
  expect(readAddress("postgresql://db.example/d", { env: {} }).isEncrypted).toBeUndefined();
  const local = (name: string): boolean => isLocal({ name, port: 5432 });
  expect(["localhost", "127.0.0.1", "127.0.0.2", "::1", "/run/pg"].every(local)).toBe(true);
  expect(["127.0.0.1.example", "localhost.example", "10.0.0.1", "db", "localhost,db", "run/pg"].some(local)).toBe(
    false,
  );
});

describe("refused before any connection", () => {
  const usual = "Set INTEG_JOURNAL to postgresql://<user>@<host>:<port>/<database>.";
  const unreadable = "it cannot be read; a port is a number from 1 to 65535";
  const supported =
    "Use these alone: host, port, dbname, user, password, sslmode, sslrootcert, sslcert, sslkey, target_session_attrs, options, application_name; and PGPASSFILE for the path of a password file.";

  const options = "of options only -c search_path=<schema> is supported, in the address and not in PGOPTIONS";
  const setting =
    "Name a schema with ?options=-c%20search_path%3D<schema>; set other settings for the role: ALTER ROLE … SET ….";

  test.each<[string, Environment, string, string?]>([
    ["postgresq://u:canary@h/d", {}, "it does not begin with postgresql://"],
    ["POSTGRESQL://u:canary@h/d", {}, "it does not begin with postgresql://"],
    ["url=postgresql://u:canary@h/d", {}, "it does not begin with postgresql://"],
    ["h/d", {}, "it does not begin with postgresql://"],
    ["host=h password=canary", {}, "it does not begin with postgresql://"],
    ['"postgresql://u:canary@h/d"', {}, "it does not begin with postgresql://"],
    [" postgresql://u:canary@h/d", {}, "it does not begin with postgresql://"],
    ["postgresql://u:canary@h/d\n", {}, unreadable],
    ["postgresql://u:canary@h/\td", {}, unreadable],
    ["postgresql://u:canary@h:port/d", {}, unreadable],
    ["postgresql://u:canary@h:0/d", {}, unreadable],
    ["postgresql://u:canary@h:70000/d", {}, unreadable],
    ["postgresql://u:canary@h:-1/d", {}, unreadable],
    ["postgresql://u:canary@h/d?port=0", {}, unreadable],
    ["postgresql://u:canary@h/d?port=1,2", {}, unreadable],
    ["postgresql://u:canary@/d", { PGPORT: "0" }, unreadable],
    ["postgresql://u:can%ary@h/d", {}, unreadable],
    ["postgresql://u:canary%@h/d", {}, unreadable],
    ["postgresql://u:canary%4@h/d", {}, unreadable],
    ["postgresql://u:canary%ff@h/d", {}, unreadable],
    ["postgresql://u:canary%00@h/d", {}, unreadable],
    ["postgresql://u%00replication%00true:canary@h/d", {}, unreadable],
    ["postgresql://u:canary@h/d?user=u%00", {}, unreadable],
    ["postgresql://u:canary@[]/d", {}, unreadable],
    ["postgresql://u:canary@[::1/d", {}, unreadable],
    ["postgresql://u:canary@[::1]5432/d", {}, unreadable],
    ["postgresql://u:canary@2001:db8::1/d", {}, unreadable],
    ["postgresql://u:canary@b@h/d", {}, unreadable],
    ["postgresql://u:can/ary@h/d", {}, unreadable],
    ["postgresql://u:can?ary@h/d", {}, unreadable],
    ["postgresql://u:canary@h/d#x", {}, unreadable],
    ["postgresql://u:can#ary@h/d", {}, unreadable],
    [
      "postgresql://u:canary@h/d?sslmode=verify_full",
      {},
      "sslmode is one of disable, allow, prefer, require, verify-ca, verify-full",
    ],
    ["postgresql://u:canary@h/d?sslmode=no-verify", {}, "sslmode is one of"],
    ["postgresql://u:canary@h/d?sslmod=require", {}, 'the parameter "sslmod" is not supported', supported],
    ["postgresql://u@h/d?pasword=canary", {}, 'the parameter "pasword" is not supported', supported],
    ["postgresql://u@h/d?can+ary=x", {}, "the parameter is not supported", supported],
    ["postgresql://h/d?uselibpqcompat=true", {}, 'the parameter "uselibpqcompat" is not supported', supported],
    ["postgresql://h/d?ssl=false", {}, 'the parameter "ssl" is not supported', supported],
    ["postgresql://u:12?user=canary@h/d", {}, "it cannot be read"],
    ["postgresql://?service=team", {}, 'the parameter "service" is not supported', supported],
    ["postgresql://u@/d", { PGSERVICE: "team" }, "PGSERVICE is not supported"],
    ["postgresql://h/d?passfile=/p", {}, 'the parameter "passfile" is not supported', supported],
    ["postgresql://u:canary@h/d?target_session_attrs=standby", {}, "target_session_attrs is read-write or any"],
    ["postgresql://u:canary@h/d?options=-c%20work_mem%3D1", {}, options, setting],
    ["postgresql://h/d", { PGOPTIONS: "-c search_path=team" }, options, setting],
  ])("%s with %j", (text, env, what, hint = usual) => {
    const { kind, message, details } = refusal(text, env);
    expect([kind, details]).toEqual(["usage", { meaning: nothingSent, hint }]);
    expect(message).toContain(`The address of the journal cannot be used: ${what}`);
    expect(JSON.stringify([message, details])).not.toMatch(/canary|can.?ary/);
  });

  test.each<[string, Environment, string]>([
    ["postgresql://u:canary@h/d", { PGSSLMODE: "prefer" }, "sslmode=prefer would send the journal unprotected to h"],
    ["postgresql://u:canary@h/d?sslmode=disable", {}, "sslmode=disable would send"],
    ["postgresql://u:canary@h/d?sslmode=allow", {}, "sslmode=allow would send"],
    ["postgresql://u:canary@localhost,h/d?sslmode=disable", {}, "unprotected to h"],
    ["postgresql://u:canary@localhost/d?sslmode=disable&host=h", {}, "unprotected to h"],
    ["postgresql://u:canary@/d?sslmode=disable", { PGHOST: "h" }, "unprotected to h"],
  ])("%s with %j: an unencrypted remote connection", (text, env, words) => {
    const refused = refusal(text, env);
    expect(refused.kind).toBe("usage");
    expect(refused.message).toContain(words);
    expect(JSON.stringify([refused.message, refused.details])).not.toContain("canary");
  });
});

test.each([
  ["postgresql://u:canary@h/d", "postgresql://u@h/d"],
  ["postgresql://u:can@ary@h/d", "postgresql://u@h/d"],
  ["postgresql://u:can/ary@h/d", "postgresql://u@h/d"],
  ["postgresql://u:can?ary@h/d", "postgresql://u…"],
  ["postgresql://u:can@a?ry@h/d?sslmode=require", "postgresql://u…"],
  ["postgresql://u:12?user=canary@h/d", "postgresql://u…"],
  ["postgresql://h/d?password=can@ary", "postgresql://h…"],
  ["postgresql://h/d?password=canary&sslmode=require", "postgresql://h/d?sslmode=require"],
  ["postgresql://h/d?%70assword=canary", "postgresql://h/d"],
  ["postgresql://a:1,b:2/d?options=-csearch_path%3Dx", "postgresql://a:1,b:2/d?options=-csearch_path%3Dx"],
])("%s is shown as %s", (text, shown) => {
  expect(shownAddress(text)).toBe(shown);
});
