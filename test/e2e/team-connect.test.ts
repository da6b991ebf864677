// How libpq finds a server: every way leads to the same journal.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { isWithoutPostgres, PostgresServer, role } from "../support/postgres.ts";
import { Home } from "../support/program.ts";

let server: PostgresServer;

interface Way {
  readonly what: string;
  readonly journal: () => string;
  readonly env?: (home: Home) => Record<string, string>;
}

const password = { PGPASSWORD: role.password };
const variables = (): Record<string, string> => ({
  PGUSER: role.name,
  PGDATABASE: role.name,
  PGPORT: `${server.port}`,
});

/** A file of that home, readable by its owner alone. */
function file(home: Home, name: string, text: string): string {
  const path = home.path(name);
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

const having =
  (name: string, text: () => string) =>
  (home: Home): Record<string, string> => {
    file(home, name, text());
    return {};
  };

const passwords = (): string =>
  `# a comment\nother:*:*:*:x\n127.0.0.1:${server.port}:${role.name}:*:${role.password}\n`;
const services = (): string =>
  `# ours\n[other]\nhost=db.invalid\n\n[team]\nhost=127.0.0.1\nport=${server.port}\nuser=${role.name}\ndbname=${role.name}\npassword=${role.password}\n`;

const ways: readonly Way[] = [
  { what: "the address and PGPASSWORD", journal: () => server.address(), env: () => password },
  {
    what: "a password in the address",
    journal: () => server.address().replace("@", `:${role.password}@`),
  },
  {
    what: "variables alone",
    journal: () => "postgresql://",
    env: () => ({ ...variables(), ...password, PGHOST: "127.0.0.1" }),
  },
  {
    what: "~/.pgpass",
    journal: () => server.address(),
    env: having(".pgpass", passwords),
  },
  {
    what: "PGPASSFILE",
    journal: () => server.address(),
    env: (home) => ({ PGPASSFILE: file(home, "p", passwords()) }),
  },
  {
    what: "passfile of the address",
    journal: () => `${server.address()}?passfile=${encodeURIComponent("/dev/null")}`,
    env: () => password,
  },
  { what: "a socket in the query", journal: () => `postgresql:///?host=${server.folder}`, env: variables },
  {
    what: "a socket in place of the host",
    journal: () => `postgresql://${encodeURIComponent(server.folder)}/`,
    env: variables,
  },
  {
    what: "a socket in PGHOST",
    journal: () => "postgresql://",
    env: () => ({ ...variables(), PGHOST: server.folder }),
  },
  {
    what: "the service of the address",
    journal: () => "postgresql://?service=team",
    env: having(".pg_service.conf", services),
  },
  {
    what: "PGSERVICE and PGSERVICEFILE, before other variables",
    journal: () => "postgresql://",
    env: (home) => ({ PGSERVICE: "team", PGSERVICEFILE: file(home, "s", services()), PGHOST: "db.invalid" }),
  },
  {
    what: "a service that all users share, and the address before it",
    journal: () => `postgresql://127.0.0.1:${server.port}`,
    env: (home) => ({
      PGSERVICE: "shared",
      PGSYSCONFDIR: join(
        file(home, "etc/pg_service.conf", `[shared]\nhost=db.invalid\nuser=${role.name}\ndbname=${role.name}\n`),
        "..",
      ),
      ...password,
    }),
  },
  {
    what: "several hosts, the first is down",
    journal: () => `postgresql://${role.name}@127.0.0.1:9,127.0.0.1:${server.port}/${role.name}`,
    env: () => password,
  },
  ...["any", "read-write", "primary", "prefer-standby"].map((kind) => ({
    what: `target_session_attrs=${kind}`,
    journal: () => `${server.address()}?target_session_attrs=${kind}`,
    env: () => password,
  })),
  {
    what: "PGTARGETSESSIONATTRS",
    journal: () => server.address(),
    env: () => ({ ...password, PGTARGETSESSIONATTRS: "primary" }),
  },
  ...["disable", "allow", "prefer"].map((mode) => ({
    what: `sslmode=${mode} on this machine`,
    journal: () => `${server.address()}?sslmode=${mode}`,
    env: () => password,
  })),
];

describe.skipIf(isWithoutPostgres("how libpq finds a server"))("a team's journal is found by", () => {
  beforeAll(async () => {
    server = await PostgresServer.start();
    const home = new Home({ INTEG_JOURNAL: server.address(), ...password });
    const made = await home.integ(["journal", "init"]);
    home.remove();
    expect(made.code, made.stderr).toBe(0);
  });
  afterAll(() => server?.remove());

  function at(journal: string, env: (home: Home) => Record<string, string> = () => ({})): Home {
    const home = new Home({ INTEG_JOURNAL: journal });
    onTestFinished(() => home.remove());
    Object.assign(home.env, env(home));
    return home;
  }

  it.each(ways)("$what", async ({ journal, env }) => {
    const home = at(journal(), env);
    const verified = await home.integ(["journal", "verify", "--json"]);
    expect(verified.code, verified.stderr).toBe(0);
    expect((await home.integ(["journal", "path"])).stdout).not.toContain(role.password);
  });

  it.each<[string, Way, number, string]>([
    [
      "a standby that is not there",
      { what: "", journal: () => `${server.address()}?target_session_attrs=standby`, env: () => password },
      11,
      "is not",
    ],
    ["a service that is not there", { what: "", journal: () => "postgresql://?service=tame" }, 2, 'service "tame"'],
    [
      "a service with a typing mistake",
      {
        what: "",
        journal: () => "postgresql://?service=team",
        env: having(".pg_service.conf", () => "[team]\nhots=127.0.0.1\n"),
      },
      2,
      "line 2 of",
    ],
    [
      "a plain connection off this machine, of a service",
      {
        what: "",
        journal: () => "postgresql://?service=team",
        env: having(".pg_service.conf", () => "[team]\nhost=db.example\nsslmode=disable\n"),
      },
      2,
      "unprotected to db.example",
    ],
  ])("not by %s", async (_name, { journal, env }, code, says) => {
    const { code: met, stderr } = await at(journal(), env).integ(["journal", "list"]);
    expect([met, stderr]).toEqual([code, expect.stringContaining(says)]);
  });
});
