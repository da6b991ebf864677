import { defineVerb, type Verb, type WholeTree } from "../verb.ts";
import type { ExitCode, Surface, Variable } from "../../completion/surface.ts";
import { exitCodes, type FailureKind } from "../../errors.ts";
import type { ListView } from "../../output/formats/format.ts";
import { agentVariables } from "../../profiles/agent-mode.ts";

const view: ListView = {
  columns: [
    { path: "command", heading: "command", kind: "id" },
    { path: "summary", heading: "summary", kind: "sentence" },
  ],
  singular: "command",
  plural: "commands",
};

/** @param wholeTree loads the modules of all commands, so it is called only when `integ commands` runs */
export function describe(wholeTree: () => Promise<WholeTree>): { command: Verb } {
  const command = defineVerb({
    configure: (command) => command,
    examples: [
      { line: "integ commands", does: "every command, one per line" },
      { line: "integ commands --json | jq '.exit_codes'", does: "the exit codes, for a program" },
      { line: "integ commands --json | jq -r '.environment[].name'", does: "the environment variables" },
    ],
    more: "With --json or -o yaml: one document with every command, flag, argument, environment variable and exit code.",
    async run({ output, settings }) {
      const surface = await surfaceOf(wholeTree);
      const { surfaceDocument, nodeDocument } = await import("../../completion/surface.ts");
      if (output.format === "json" || output.format === "yaml")
        return output.document(surfaceDocument(surface, settings.version), { isRead: true });
      const { isRunnable, nodesBelow } = await import("../../completion/tree.ts");
      const runnable = [...nodesBelow(surface.tree.root)].filter((node) => node.path.length > 0 && isRunnable(node));
      await output.list(view).whole(runnable.map(nodeDocument));
    },
  });
  return { command };
}

export async function surfaceOf(wholeTree: () => Promise<WholeTree>): Promise<Surface> {
  const { treeOf } = await import("../../completion/tree.ts");
  const { root, verbOf } = await wholeTree();
  return { tree: treeOf(root, verbOf), environment, exitCodes: exitCodeList };
}

export const environment: readonly Variable[] = [
  { name: "INTEG_PROFILE", meaning: "Profile to act as", flag: "--profile" },
  {
    name: "INTEG_OUTPUT",
    meaning: "Output format: table, json, ndjson, csv, yaml, markdown, sarif, html or openmetrics",
    flag: "--output",
  },
  {
    name: "INTEG_SERVICE_VERSION",
    meaning: "Contract version to pin, a date; the word none sends no version",
    flag: "--service-version",
  },
  { name: "INTEG_TIMEOUT", meaning: "Time limit for one request, a duration (default: 30s)", flag: "--timeout" },
  {
    name: "INTEG_RETRY_FOR",
    meaning: "Time to keep retrying, a duration; 0: one attempt (default: 2m)",
    flag: "--retry-for",
  },
  { name: "INTEG_NO_INPUT", meaning: "Never prompt", flag: "--no-input" },
  { name: "INTEG_PAGER", meaning: "Pager for long output at a terminal; overrides PAGER; empty or cat: no pager" },
  {
    name: "INTEG_AGENT",
    meaning:
      "1: agent mode (JSON, no prompts, no secret on standard output); 0: off, even if another variable turns it on",
  },
  { name: "INTEG_DEBUG", meaning: "Print requests and responses on standard error, secrets redacted", flag: "--debug" },
  { name: "INTEG_REGION", meaning: "Instead of a profile: us or eu" },
  {
    name: "INTEG_BASE_URL",
    meaning: "Instead of a profile: the organization's regional API host; it needs a credential too",
  },
  { name: "INTEG_API_KEY", meaning: "Instead of a profile: the API key" },
  { name: "INTEG_CLIENT_ID", meaning: "Instead of a profile: the OAuth client's id" },
  { name: "INTEG_CLIENT_SECRET", meaning: "Instead of a profile: the OAuth client's secret" },
  {
    name: "INTEG_CLIENT_ASSERTION_COMMAND",
    meaning: "Instead of INTEG_CLIENT_SECRET: a command that prints a new assertion (a JWT) for each exchange",
  },
  { name: "INTEG_TOKEN_ENDPOINT", meaning: "Instead of a profile: token endpoint of the OAuth client" },
  { name: "INTEG_AUDIENCE", meaning: "Instead of a profile: audience of the tokens" },
  { name: "INTEG_TOKEN_SCOPE", meaning: "Instead of a profile: scope of the tokens, if the token endpoint needs it" },
  { name: "INTEG_ORGANIZATION_ID", meaning: "The organization's id, needed by the legacy contract (keys, people)" },
  { name: "INTEG_ACCESS_TOKEN", meaning: "Instead of a profile: bearer token of the legacy contract" },
  { name: "INTEG_CONFIG_DIR", meaning: "Folder of the profiles, instead of the platform's" },
  {
    name: "INTEG_STATE_DIR",
    meaning: "Folder of the journal, kept secrets and the sandbox, instead of the platform's",
  },
  {
    name: "INTEG_JOURNAL",
    meaning:
      "Journal: path of a file, such as one on a volume that the next job can read, or postgresql://… for a team",
  },
  {
    name: "INTEG_JOURNAL_KEY",
    meaning: "Keys of a journal, separated by commas: the first signs its records, all verify them",
  },
  {
    name: "INTEG_DESTINATIONS_ALLOW",
    meaning: "Destinations that a secret may go to, one on each line (unset: all)",
  },
  {
    name: "INTEG_LEASE",
    meaning: "Lease of an entry in a team's journal, a duration of at least --timeout + 1s (default: --timeout + 15s)",
  },
  {
    name: "INTEG_ESCROW",
    meaning: "Public age keys, separated by commas: integ encrypts undelivered secrets to them in a team's journal",
  },
  { name: "INTEG_ESCROW_IDENTITY", meaning: "File of age identities, with which journal claim decrypts such secrets" },
  {
    name: "INTEG_COMMAND_ENV",
    meaning: "Additional variables for your commands, such as VAULT_TOKEN, separated by commas",
  },
  ...[
    "PGHOST",
    "PGPORT",
    "PGDATABASE",
    "PGUSER",
    "PGPASSWORD",
    "PGPASSFILE",
    "PGSSLMODE",
    "PGSSLROOTCERT",
    "PGSSLCERT",
    "PGSSLKEY",
  ].map((name) => ({ name, meaning: "Connection to a team's journal, as for psql" })),
  { name: "NO_COLOR", meaning: "No color", flag: "--no-color" },
  {
    name: "FORCE_COLOR",
    meaning: "Force color: 1, 2 or 3 for 16, 256 or 16 million colors, 0 for none",
  },
  { name: "CLICOLOR", meaning: "0: no color" },
  { name: "CLICOLOR_FORCE", meaning: "Force color" },
  { name: "TERM", meaning: "dumb: a terminal without color and redrawn lines" },
  { name: "CI", meaning: "Set in continuous integration: never prompt" },
  {
    name: "GITHUB_ACTIONS",
    meaning: "Set by GitHub Actions: a secret for standard output is masked in the log first",
  },
  { name: "GITHUB_STEP_SUMMARY", meaning: "Set by GitHub Actions: plan and apply add their table to this file" },
  ...agentVariables.map((name) => ({ name, meaning: "Set by a coding agent: agent mode, as with INTEG_AGENT=1" })),
  { name: "CI_JOB_URL", meaning: "Set by GitLab: the address of the run that the journal records with a change" },
  { name: "CI_PIPELINE_URL", meaning: "The same, if CI_JOB_URL is not set" },
  { name: "BUILD_URL", meaning: "Set by Jenkins: the same, if neither is set" },
  { name: "HTTPS_PROXY", meaning: "Proxy of the requests" },
  { name: "NO_PROXY", meaning: "Hosts to reach without the proxy" },
  { name: "NODE_EXTRA_CA_CERTS", meaning: "File of additional certificate authorities to trust" },
  { name: "XDG_CONFIG_HOME", meaning: "Folder that contains configuration folders (Linux)" },
  { name: "XDG_STATE_HOME", meaning: "Folder that contains state folders (Linux)" },
  { name: "XDG_CACHE_HOME", meaning: "Folder that contains folders of caches (Linux)" },
  { name: "NODE_DISABLE_COMPILE_CACHE", meaning: "1: keep no compiled code of integ for the next start" },
];

const when: Readonly<Record<FailureKind, string>> = {
  failed: "Any other failure; a read that still gets a 5xx response",
  usage: "Invalid flags or input; the change was not sent",
  auth: "No credential, or 401 or 403",
  not_found: "The client, key or other resource was not found (404)",
  conflict: "The change conflicts with the account, another change or existing content (409)",
  rate_limited: "429, and the time of --retry-for has run out",
  outcome_unknown: "A change may or may not have happened; the journal keeps it",
  pending:
    "Accepted and not complete, a new credential is not proven, or an older change to the same destination is unfinished",
  secret_lost: "The resource exists and its one-time secret is lost",
  findings: "A check found something wrong, apply left an item to a person, or plan --exit-code has changes",
  unreachable:
    "Nothing was sent, or a read got no usable response: host name, connection, TLS, proxy, timeout, invalid response",
  undelivered: "The change happened, but its secret could not be delivered; it is kept for integ journal claim",
  unusable: "The resource is revoked, disabled or expired, or differs from the request",
  interrupted: "Interrupted with Ctrl-C; the journal is accurate (7 if the outcome of a sent change is unknown)",
  terminated: "Ended by SIGTERM or SIGHUP, as with Ctrl-C",
};

export const exitCodeList: readonly ExitCode[] = [
  { code: 0, kind: null, when: "Done" },
  ...Object.entries(exitCodes).map(([kind, code]) => ({ code, kind, when: when[kind as FailureKind] })),
];
