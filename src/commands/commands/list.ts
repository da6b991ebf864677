import { defineVerb, type Verb, type WholeTree } from "../verb.ts";
import type { ExitCode, Surface, Variable } from "../../completion/surface.ts";
import { exitCodes, type FailureKind } from "../../errors.ts";
import type { ListView } from "../../output/formats/format.ts";
import { pageOf } from "../../output/row-page.ts";

const view: ListView = {
  columns: [
    { path: "command", heading: "command", kind: "id" },
    { path: "summary", heading: "summary" },
  ],
  singular: "command",
  plural: "commands",
};

/** @param wholeTree what is listed; asked for when the command runs */
export function over(wholeTree: () => Promise<WholeTree>): { command: Verb } {
  const command = defineVerb({
    configure: (command) => command,
    examples: [
      { line: "integ commands", does: "every command, a line each" },
      { line: "integ commands --json | jq '.exit_codes'", does: "the exit codes, for a program" },
      { line: "integ commands --json | jq -r '.environment[].name'", does: "the environment variables" },
    ],
    more: "With --json or -o yaml: one document with every command, flag, argument, environment variable and exit code.",
    async run({ output, settings }) {
      const surface = await surfaceOf(wholeTree);
      const { surfaceDocument, nodeDocument } = await import("../../completion/surface.ts");
      if (output.format === "json" || output.format === "yaml")
        return output.document(surfaceDocument(surface, settings.version));
      const { nodesBelow } = await import("../../completion/tree.ts");
      const runnable = [...nodesBelow(surface.tree.root)].filter((node) => node.nodes.length === 0);
      const list = output.list(view);
      await list.page(pageOf(runnable.map((node) => JSON.stringify(nodeDocument(node)))));
      await list.end({ nextPageToken: null, hasMore: false });
    },
  });
  return { command };
}

/** The whole description of the program, for `commands`, the man pages and the reference. */
export async function surfaceOf(wholeTree: () => Promise<WholeTree>): Promise<Surface> {
  const { treeOf } = await import("../../completion/tree.ts");
  const { root, verbOf } = await wholeTree();
  return { tree: treeOf(root, verbOf), environment, exitCodes: exitCodeList };
}

export const environment: readonly Variable[] = [
  { name: "INTEG_PROFILE", meaning: "profile to act as", flag: "--profile" },
  { name: "INTEG_OUTPUT", meaning: "output format: table, json, ndjson, csv or yaml", flag: "--output" },
  { name: "INTEG_SERVICE_VERSION", meaning: "contract version to pin, a date", flag: "--service-version" },
  { name: "INTEG_TIMEOUT", meaning: "time limit for one request, a duration (30s)", flag: "--timeout" },
  {
    name: "INTEG_RETRY_FOR",
    meaning: "how long to keep retrying altogether, a duration (2m; 0: one attempt)",
    flag: "--retry-for",
  },
  { name: "INTEG_NO_INPUT", meaning: "never prompt", flag: "--no-input" },
  { name: "INTEG_DEBUG", meaning: "requests and responses on standard error, secrets redacted", flag: "--debug" },
  { name: "INTEG_REGION", meaning: "instead of a profile: us or eu" },
  {
    name: "INTEG_BASE_URL",
    meaning: "instead of a profile: the organization's regional API host; it needs a credential too",
  },
  { name: "INTEG_API_KEY", meaning: "instead of a profile: the API key" },
  { name: "INTEG_CLIENT_ID", meaning: "instead of a profile: the OAuth client's id" },
  { name: "INTEG_CLIENT_SECRET", meaning: "instead of a profile: the OAuth client's secret" },
  { name: "INTEG_TOKEN_ENDPOINT", meaning: "instead of a profile: token endpoint of the OAuth client" },
  { name: "INTEG_AUDIENCE", meaning: "instead of a profile: audience of the tokens" },
  { name: "INTEG_ORGANIZATION_ID", meaning: "the organization's id, needed by the legacy contract (keys, people)" },
  { name: "INTEG_ACCESS_TOKEN", meaning: "instead of a profile: bearer token of the legacy contract" },
  { name: "INTEG_CONFIG_DIR", meaning: "folder of the profiles, instead of the platform's" },
  {
    name: "INTEG_STATE_DIR",
    meaning: "folder of the journal, kept secrets and the sandbox, instead of the platform's",
  },
  {
    name: "INTEG_JOURNAL",
    meaning: "the journal: a file on a volume that outlives the machine, or postgresql://… for one that a team shares",
  },
  { name: "INTEG_LEASE", meaning: "how long an entry of a team's journal is leased, at least --timeout + 1s" },
  {
    name: "INTEG_ESCROW",
    meaning: "age public keys that secrets are encrypted to for a team's journal, with commas",
  },
  { name: "INTEG_ESCROW_IDENTITY", meaning: "file of the age identities that open such secrets for journal claim" },
  ...["PGHOST", "PGPORT", "PGDATABASE", "PGUSER", "PGPASSWORD", "PGPASSFILE", "PGSSLMODE", "PGSSLROOTCERT"].map(
    (name) => ({ name, meaning: "as PostgreSQL's own programs read it, for a team's journal" }),
  ),
  { name: "NO_COLOR", meaning: "no colour", flag: "--no-color" },
  {
    name: "FORCE_COLOR",
    meaning: "force colour: 1, 2 or 3 for 16, 256 or 16 million colours, 0 for none",
  },
  { name: "CLICOLOR", meaning: "0: no colour" },
  { name: "CLICOLOR_FORCE", meaning: "force colour" },
  { name: "TERM", meaning: "dumb: a terminal without colour and without lines that change" },
  { name: "CI", meaning: "set in continuous integration: never prompt" },
  {
    name: "GITHUB_ACTIONS",
    meaning: "set by GitHub Actions: a secret bound for standard output is masked in the log first",
  },
  { name: "CI_JOB_URL", meaning: "set by GitLab: the run that the journal names with a change" },
  { name: "CI_PIPELINE_URL", meaning: "the same, if CI_JOB_URL is not set" },
  { name: "BUILD_URL", meaning: "set by Jenkins: the same, if neither is set" },
  { name: "HTTPS_PROXY", meaning: "proxy of the requests" },
  { name: "NO_PROXY", meaning: "hosts to reach without the proxy" },
  { name: "NODE_EXTRA_CA_CERTS", meaning: "file of further certificate authorities to trust" },
  { name: "XDG_CONFIG_HOME", meaning: "folder of configuration folders (Linux)" },
  { name: "XDG_STATE_HOME", meaning: "folder of state folders (Linux)" },
];

const when: Readonly<Record<FailureKind, string>> = {
  failed: "any other failure; a read that still gets 5xx",
  usage: "bad flags or input, caught before anything was sent",
  auth: "no credential, or 401 or 403",
  not_found: "404",
  conflict: "409",
  rate_limited: "429, and the time of --retry-for is spent",
  outcome_unknown: "a change may or may not have happened; the journal keeps it",
  pending: "accepted, not complete",
  secret_lost: "the resource exists and its one-time secret is lost",
  findings: "a check ran and found something wrong; warnings alone are 0",
  unreachable:
    "nothing was sent or no change was requested: name, connection, TLS, proxy, timeout of a read, a broken response",
  undelivered: "the change happened, its secret could not be delivered; it is kept for integ journal claim",
  unusable: "the resource is revoked, disabled or expired",
  interrupted: "interrupted with Ctrl-C, the journal is accurate; 7 instead if the outcome of a sent change is unknown",
  terminated: "ended by SIGTERM, as with Ctrl-C",
};

/** Every exit code, in order. */
export const exitCodeList: readonly ExitCode[] = [
  { code: 0, kind: null, when: "done" },
  ...Object.entries(exitCodes).map(([kind, code]) => ({ code, kind, when: when[kind as FailureKind] })),
];
