// In which other world a recovery may run: every variable and flag, profiles, folders, clocks, hosts, the journal by another path.
import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import type { Home } from "../support/program.ts";
import { type Dimension, shifted } from "./recovery-table-cells.ts";
import type { Table } from "./recovery-table-operations.ts";

const day = 24 * 60 * 60_000;
const otherOrganization = "00000000-0000-4000-8000-000000000000";

const gone =
  /not found|No journal entry|no longer exists|is gone|another profile of the same name|No entry|does not exist/i;
const moved = /points at|now, and the entry was|another organization|Organization|was given for/;

/** Another process, elsewhere, may have kept the secret: `--yes` alone replaces nothing. */
const keptElsewhere = /may be kept there|is kept in /;
/** What the list of keys shows can be of this creation or of another: its own key, or the times, do not tell. */
const inDoubt = /may be missing too|differs in time|clock was wrong|a moment ago|not known whether the key was rotated/;

/** The variable alone, or with what it is of no use without. */
function set(env: Dimension["env"], more: Omit<Dimension, "env"> = {}): Dimension {
  return { env, ...more };
}

const value = (name: string, text: string, more: Omit<Dimension, "env"> = {}): Dimension =>
  set(() => ({ [name]: text }), more);

/** A whole other account in the environment. */
const elsewhere = ({ trap, us }: Table): Record<string, string> => ({
  INTEG_BASE_URL: trap.origin,
  INTEG_REGION: "us",
  INTEG_API_KEY: us.other_account_api_key,
});

/** Variables with a value that could change something; the others that the program knows are set to 1. */
export const variables: Readonly<Record<string, Dimension>> = {
  INTEG_PROFILE: value("INTEG_PROFILE", "other"),
  INTEG_OUTPUT: value("INTEG_OUTPUT", "csv"),
  INTEG_SERVICE_VERSION: value("INTEG_SERVICE_VERSION", "2020-01-01"),
  INTEG_TIMEOUT: value("INTEG_TIMEOUT", "29s"),
  INTEG_RETRY_FOR: value("INTEG_RETRY_FOR", "1m"),
  INTEG_NO_INPUT: value("INTEG_NO_INPUT", "1"),
  INTEG_AGENT: value("INTEG_AGENT", "1"),
  INTEG_DEBUG: value("INTEG_DEBUG", "1"),
  INTEG_REGION: value("INTEG_REGION", "eu"),
  INTEG_BASE_URL: set(elsewhere),
  INTEG_API_KEY: value("INTEG_API_KEY", "another", { refuses: /INTEG_BASE_URL/ }),
  INTEG_CLIENT_ID: set(({ trap }) => ({
    INTEG_BASE_URL: trap.origin,
    INTEG_REGION: "us",
    INTEG_CLIENT_ID: "cid_1",
    INTEG_CLIENT_SECRET: "another",
    INTEG_TOKEN_ENDPOINT: `${trap.origin}/token`,
  })),
  INTEG_CLIENT_SECRET: value("INTEG_CLIENT_SECRET", "another", { refuses: /INTEG_BASE_URL/ }),
  INTEG_TOKEN_ENDPOINT: set(({ trap }) => ({ INTEG_TOKEN_ENDPOINT: `${trap.origin}/token` })),
  INTEG_AUDIENCE: value("INTEG_AUDIENCE", "another"),
  INTEG_ORGANIZATION_ID: value("INTEG_ORGANIZATION_ID", otherOrganization),
  INTEG_ACCESS_TOKEN: value("INTEG_ACCESS_TOKEN", "another", { refuses: /INTEG_BASE_URL/ }),
  INTEG_CONFIG_DIR: set((_table, at) => ({ INTEG_CONFIG_DIR: at.path("empty") }), { refuses: gone }),
  INTEG_STATE_DIR: set((_table, at) => ({ INTEG_STATE_DIR: at.path("empty") }), { refuses: gone }),
  INTEG_JOURNAL: set((_table, at) => ({ INTEG_JOURNAL: at.path("empty", "j") }), { refuses: gone }),
  INTEG_ESCROW: value("INTEG_ESCROW", "age1another", { refuses: /escrow/i }),
  INTEG_LEASE: value("INTEG_LEASE", "1m"),
  INTEG_JOURNAL_KEY: value("INTEG_JOURNAL_KEY", "another", { refuses: /INTEG_JOURNAL_KEY/ }),
  INTEG_DESTINATIONS_ALLOW: value("INTEG_DESTINATIONS_ALLOW", "file:/nowhere", { refuses: /INTEG_DESTINATIONS_ALLOW/ }),
  NO_COLOR: value("NO_COLOR", "1"),
  FORCE_COLOR: value("FORCE_COLOR", "1"),
  CLICOLOR: value("CLICOLOR", "0"),
  CLICOLOR_FORCE: value("CLICOLOR_FORCE", "1"),
  TERM: value("TERM", "dumb"),
  CI: value("CI", "true"),
  GITHUB_ACTIONS: value("GITHUB_ACTIONS", "true"),
  CI_JOB_URL: value("CI_JOB_URL", "https://ci.example/1"),
  CI_PIPELINE_URL: value("CI_PIPELINE_URL", "https://ci.example/2"),
  BUILD_URL: value("BUILD_URL", "https://ci.example/3"),
  // A loopback address is not asked for by a proxy.
  HTTPS_PROXY: set(({ trap }) => ({ HTTPS_PROXY: trap.origin })),
  NO_PROXY: value("NO_PROXY", "*"),
  NODE_EXTRA_CA_CERTS: value("NODE_EXTRA_CA_CERTS", "/nowhere.pem"),
  XDG_CONFIG_HOME: set((_table, at) => ({ XDG_CONFIG_HOME: at.path("empty") })),
  XDG_STATE_HOME: set((_table, at) => ({ XDG_STATE_HOME: at.path("empty") })),
  XDG_CACHE_HOME: set((_table, at) => ({ XDG_CACHE_HOME: at.path("empty") })),
  NODE_DISABLE_COMPILE_CACHE: value("NODE_DISABLE_COMPILE_CACHE", "1"),
};

const flag = (...words: string[]): Dimension => ({ words: () => words });

/** A person sends the secret of the named entry elsewhere. One that is a profile's own credential goes to the profile or nowhere. */
const toFile = (...words: string[]): Dimension => ({
  ...flag("--secret-file", "another", ...words),
  refuses: /replaces the credential of profile/,
  isElsewhere: true,
});
const toCommand = (...words: string[]): Dimension => ({
  ...flag("--secret-command", "cat > another", ...words),
  refuses: /replaces the credential of profile/,
  isElsewhere: true,
});

/** The flags of `journal recover` and of every command. */
export const flags: Readonly<Record<string, Dimension>> = {
  "--profile": flag("--profile", "other"),
  "--output": flag("--output", "csv"),
  "--json": flag("--json"),
  "--ndjson": flag("--ndjson"),
  "--fields": flag("--fields", "id"),
  "--service-version": flag("--service-version", "2020-01-01"),
  "--timeout": flag("--timeout", "29s"),
  "--retry-for": flag("--retry-for", "1m"),
  "--no-input": flag("--no-input"),
  "--quiet": flag("--quiet"),
  "--debug": flag("--debug"),
  "--no-color": flag("--no-color"),
  "--wait": flag("--wait", "1s"),
  "--now": { words: () => ["--now"], refuses: /no overlap/i },
  "--replace-lost-secret": flag("--replace-lost-secret"),
  "--accept-unproven": flag("--accept-unproven"),
  "--secret-file": toFile(),
  "--secret-command": toCommand(),
  // Another account's, and one that is not there.
  "--secret-profile": {
    ...flag("--secret-profile", "other"),
    refuses: /cannot become|belongs to|replaces the credential/,
  },
  "--secret-to": { ...flag("--secret-to", "keychain:integ-table/secret"), refuses: /keychain|replaces the credential/ },
  "--escrow": { ...flag("--escrow", "age1another"), refuses: /escrow/i },
  "--secret-format": toFile("--secret-format", "line"),
  "--secret-env": toFile("--secret-format", "env", "--secret-env", "A=secret"),
  "--secret-check-command": toCommand("--secret-check-command", "cat another"),
  "--secret-check": toCommand("--secret-check-command", "true", "--secret-check", "exit"),
  "--secret-command-timeout": toCommand("--secret-command-timeout", "9s"),
  "--force": toFile("--force"),
};

const edit =
  (...words: string[]): Dimension["before"] =>
  async (_table, at) => {
    for (const name of ["p", "k"]) {
      const { code, stderr } = await at.integ(["profiles", "edit", name, ...words]);
      if (code !== 0) throw new Error(stderr);
    }
  };

function profilesIn(at: Home): { readonly path: string; readonly text: string } {
  const path = at.path("config", "profiles.json");
  return { path, text: readFileSync(path, "utf8") };
}

/** The profiles' file is put back as it was. */
function undone(before: (table: Table, at: Home) => unknown, more: Omit<Dimension, "before" | "undo"> = {}): Dimension {
  let kept: string | undefined;
  return {
    ...more,
    async before(table, at) {
      cpSync(at.path("config"), at.path("kept"), { recursive: true });
      kept = at.path("kept");
      await before(table, at);
    },
    undo(_table, at) {
      rmSync(at.path("config"), { recursive: true });
      cpSync(kept!, at.path("config"), { recursive: true });
    },
  };
}

export const worlds: Readonly<Record<string, Dimension>> = {
  "another default profile": { before: (_table, at) => at.integ(["profiles", "use", "other"]) },
  "an edited service version": { before: edit("--service-version", "2020-01-01") },
  "an edited token endpoint": {
    before: ({ trap }, at) => at.integ(["profiles", "edit", "p", "--token-endpoint", `${trap.origin}/token`]),
  },
  "an edited audience": { before: async (_table, at) => at.integ(["profiles", "edit", "p", "--audience", "another"]) },
  "an edited key id": { before: edit("--api-key-id", "key_somebody"), doubts: inDoubt },
  "an edited address": undone(({ trap }, at) => edit("--base-url", trap.origin)!(undefined as never, at), {
    refuses: moved,
  }),
  "an edited organization": undone((table, at) => edit("--organization-id", otherOrganization)!(table, at), {
    refuses: moved,
  }),
  "a renamed profile": undone(
    (_table, at) => {
      const { path, text } = profilesIn(at);
      writeFileSync(path, text.replaceAll(/"(p|k)"/g, '"renamed-$1"'));
    },
    { refuses: gone },
  ),
  "a removed profile": undone(
    async (_table, at) => {
      for (const name of ["p", "k"]) await at.integ(["profiles", "remove", name, "--yes"]);
    },
    { refuses: gone },
  ),
  "a profile that was removed and added again": undone(
    async (table, at) => {
      for (const name of ["p", "k"]) {
        await at.integ(["profiles", "remove", name, "--yes"]);
        await table.add(at, name);
      }
    },
    { refuses: gone },
  ),
  "another working folder": {
    before: (_table, at) => mkdirSync(at.path("work")),
    cwd: (at) => at.path("work"),
  },
  "a moved state folder": {
    before: (_table, at) => {
      renameSync(at.path("state"), at.path("moved"));
      at.env.INTEG_STATE_DIR = at.path("moved");
    },
    doubts: keptElsewhere,
  },
  "a copied state folder": {
    before: (_table, at) => {
      cpSync(at.path("state"), at.path("copied"), { recursive: true });
      at.env.INTEG_STATE_DIR = at.path("copied");
    },
    doubts: keptElsewhere,
  },
  "a moved home": {
    before: (_table, at) => {
      for (const folder of ["state", "config"]) cpSync(at.path(folder), at.path("moved", folder), { recursive: true });
      Object.assign(at.env, {
        INTEG_STATE_DIR: at.path("moved", "state"),
        INTEG_CONFIG_DIR: at.path("moved", "config"),
      });
    },
    doubts: keptElsewhere,
  },
  "another host": {
    under: ["unshare", "--uts", "sh", "-c", 'hostname elsewhere && exec "$@"', "sh"],
    doubts: keptElsewhere,
  },
  "a clock three days behind": { env: () => shifted(-3 * day), doubts: inDoubt },
  "a clock three days ahead": { env: () => shifted(3 * day), doubts: inDoubt },
  "a clock that was three days behind": { firstClock: -3 * day, doubts: inDoubt },
  "a clock that was three days ahead": { firstClock: 3 * day, doubts: inDoubt },
  "the journal by a symbolic link": {
    env: (_table, at) => ({ INTEG_JOURNAL: at.path("link") }),
    before: (_table, at) => symlinkSync(at.path("state", "journal.ndjson"), at.path("link")),
    refuses: /link/i,
  },
  "the journal's folder by a symbolic link": {
    env: (_table, at) => ({ INTEG_JOURNAL: at.path("folder", "journal.ndjson") }),
    before: (_table, at) => symlinkSync(at.path("state"), at.path("folder")),
  },
  "the journal copied elsewhere": {
    env: (_table, at) => ({ INTEG_JOURNAL: at.path("journal-copy") }),
    before: (_table, at) => cpSync(at.path("state", "journal.ndjson"), at.path("journal-copy")),
    doubts: keptElsewhere,
  },
};

const words = (text: string): string[] => text.trim().split(/\s+/);

/**
 * What shows something otherwise, names the run, or speaks of a journal in PostgreSQL, of a token or of an answer that does not
 * come here. None of a group takes back what another does: what all of them together do not change, none changes. Each by itself
 * is played at the request that changes something.
 */
const together: Readonly<Record<string, readonly string[]>> = {
  "all variables that only show": words(`
    INTEG_OUTPUT INTEG_TIMEOUT INTEG_RETRY_FOR INTEG_NO_INPUT INTEG_DEBUG INTEG_LEASE
    INTEG_AUDIENCE INTEG_ESCROW_IDENTITY NO_COLOR CLICOLOR TERM CI GITHUB_ACTIONS CI_JOB_URL
    NO_PROXY NODE_EXTRA_CA_CERTS XDG_CONFIG_HOME XDG_STATE_HOME XDG_CACHE_HOME
    GITHUB_STEP_SUMMARY INTEG_AGENT AI_AGENT AGENT CLAUDECODE CURSOR_AGENT GEMINI_CLI CODEX_SANDBOX CODEX_THREAD_ID CODEX_CI COPILOT_CLI OPENCODE
    NODE_DISABLE_COMPILE_CACHE PGHOST PGPORT PGDATABASE PGUSER PGPASSWORD PGPASSFILE PGSSLMODE PGSSLROOTCERT
  `),
  "colour, and another run": ["FORCE_COLOR", "CI_PIPELINE_URL"],
  "all flags that only show": ["--output", "--fields", "--timeout", "--no-input", "--quiet", "--debug", "--no-color"],
  "another format, and another run": ["--json", "--retry-for", "CLICOLOR_FORCE", "BUILD_URL"],
};

/** Those that are played with others, but for one end of each operation. */
export const grouped: ReadonlySet<string> = new Set(Object.values(together).flat());

/**
 * The command ends before it has an entry: there is no journal. What the entry says cannot matter, so that one end of each
 * operation stands for all: one that does not exist ends the same way.
 */
export const isBeforeAnyEntry: ReadonlySet<string> = new Set(words("INTEG_STATE_DIR INTEG_JOURNAL"));

/** @param known the variables and flags, each by its name */
export function groupsOf(known: Readonly<Record<string, Dimension>>): Readonly<Record<string, Dimension>> {
  return Object.fromEntries(
    Object.entries(together).map(([group, names]) => {
      const members = names.map((name) => known[name]!);
      const env: Dimension["env"] = (table, at) => Object.assign({}, ...members.map((one) => one.env?.(table, at)));
      return [group, { env, words: (table, at) => members.flatMap((one) => one.words?.(table, at) ?? []) }];
    }),
  );
}

export const dimensions: Readonly<Record<string, Dimension>> = { ...variables, ...flags, ...worlds };
