// Owns: the environment variables that are a promise to scripts, and what each means. A test finds every variable that
// the program reads here. Source: cli.md §1.
import type { Variable } from "../../completion/surface.ts";

export const environment: readonly Variable[] = [
  { name: "INTEG_PROFILE", meaning: "profile to act as", flag: "--profile" },
  { name: "INTEG_OUTPUT", meaning: "output format: table, json, ndjson, csv or yaml", flag: "--output" },
  { name: "INTEG_SERVICE_VERSION", meaning: "contract version to pin, a date", flag: "--service-version" },
  { name: "INTEG_TIMEOUT", meaning: "limit for one attempt, a duration (30s)", flag: "--timeout" },
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
    meaning: "instead of a profile: the organization's regional API host; it needs a credential beside it",
  },
  { name: "INTEG_API_KEY", meaning: "instead of a profile: the API key" },
  { name: "INTEG_CLIENT_ID", meaning: "instead of a profile: the OAuth client's id" },
  { name: "INTEG_CLIENT_SECRET", meaning: "instead of a profile: the OAuth client's secret" },
  { name: "INTEG_TOKEN_ENDPOINT", meaning: "instead of a profile: where the OAuth client gets its tokens" },
  { name: "INTEG_AUDIENCE", meaning: "instead of a profile: audience of the tokens" },
  { name: "INTEG_ORGANIZATION_ID", meaning: "the organization's id, needed by the legacy contract (keys, people)" },
  { name: "INTEG_ACCESS_TOKEN", meaning: "instead of a profile: bearer token of the legacy contract" },
  { name: "INTEG_CONFIG_DIR", meaning: "folder of the profiles, instead of the platform's" },
  {
    name: "INTEG_STATE_DIR",
    meaning: "folder of the journal, kept secrets and the sandbox, instead of the platform's",
  },
  { name: "INTEG_JOURNAL", meaning: "the journal's file, on a volume that outlives the machine" },
  { name: "NO_COLOR", meaning: "no colour", flag: "--no-color" },
  {
    name: "FORCE_COLOR",
    meaning: "colour where it would not be: 1, 2 or 3 for 16, 256 or 16 million colours, 0 for none",
  },
  { name: "CLICOLOR", meaning: "0: no colour" },
  { name: "CLICOLOR_FORCE", meaning: "colour where it would not be" },
  { name: "TERM", meaning: "dumb: a terminal without colour and without lines that change" },
  { name: "CI", meaning: "set in continuous integration: never prompt" },
  {
    name: "GITHUB_ACTIONS",
    meaning: "set by GitHub Actions: a secret bound for standard output is masked in the log first",
  },
  { name: "HTTPS_PROXY", meaning: "proxy of the requests" },
  { name: "NO_PROXY", meaning: "hosts that are reached without the proxy" },
  { name: "NODE_EXTRA_CA_CERTS", meaning: "file of further certificate authorities to trust" },
  { name: "XDG_CONFIG_HOME", meaning: "folder of configuration folders (Linux)" },
  { name: "XDG_STATE_HOME", meaning: "folder of state folders (Linux)" },
];
