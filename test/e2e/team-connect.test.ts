// How libpq finds a server: every way leads to the same journal.
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { PostgresServer, role, teamAccess } from "../support/postgres.ts";
import { Home } from "../support/program.ts";
import { isMissing } from "../support/tools.mjs";

let server: PostgresServer;

interface Way {
  readonly what: string;
  readonly journal: () => string;
  readonly env?: (home: Home) => Record<string, string>;
}

const password = teamAccess;
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
    what: "several hosts, the first is down",
    journal: () => `postgresql://${role.name}@127.0.0.1:9,127.0.0.1:${server.port}/${role.name}`,
    env: () => password,
  },
  ...["any", "read-write"].map((kind) => ({
    what: `target_session_attrs=${kind}`,
    journal: () => `${server.address()}?target_session_attrs=${kind}`,
    env: () => password,
  })),
  {
    what: "PGTARGETSESSIONATTRS",
    journal: () => server.address(),
    env: () => ({ ...password, PGTARGETSESSIONATTRS: "read-write" }),
  },
  ...["disable", "allow", "prefer"].map((mode) => ({
    what: `sslmode=${mode} on this machine`,
    journal: () => `${server.address()}?sslmode=${mode}`,
    env: () => password,
  })),
];

describe.skipIf(isMissing("PostgreSQL"))("a team's journal is found by", () => {
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
    const verified = await home.spawned(["journal", "verify", "--json"]);
    expect(verified.code, verified.stderr).toBe(0);
    expect((await home.integ(["journal", "path"])).stdout).not.toContain(role.password);
  });

  it.each<[string, Way, number, string]>([
    [
      "a service",
      { what: "", journal: () => "postgresql://?service=team" },
      2,
      'the parameter "service" is not supported',
    ],
    [
      "PGSERVICE",
      { what: "", journal: () => "postgresql://", env: () => ({ PGSERVICE: "team" }) },
      2,
      "PGSERVICE is not supported",
    ],
    [
      "PGSSLMODE=disable off this machine",
      { what: "", journal: () => "postgresql://db.example/d", env: () => ({ PGSSLMODE: "disable" }) },
      2,
      "unprotected to db.example",
    ],
    [
      "a password file that others can read",
      {
        what: "",
        journal: () => server.address(),
        env: (home) => {
          const path = file(home, "p", passwords());
          chmodSync(path, 0o640);
          return { PGPASSFILE: path };
        },
      },
      2,
      "has group or world access; permissions should be u=rw (0600) or less",
    ],
  ])("not by %s", async (_name, { journal, env }, code, says) => {
    const { code: met, stderr } = await at(journal(), env).integ(["journal", "list"]);
    expect([met, stderr]).toEqual([code, expect.stringContaining(says)]);
  });
});
