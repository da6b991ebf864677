// Finds the actor of a record: the user, the host, and in CI the address of the run.

export interface Actor {
  readonly user: string;
  readonly host: string;
  readonly run?: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Reads the variables of GitHub Actions, GitLab and Jenkins. */
export function ciRunAddress(env: Environment): string | undefined {
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: repository, GITHUB_RUN_ID: run } = env;
  const ofGitHub = server && repository && run ? `${server}/${repository}/actions/runs/${run}` : undefined;
  return plainAddress(ofGitHub ?? (env.CI_JOB_URL || env.CI_PIPELINE_URL || env.BUILD_URL));
}

/** Omits user, password, query and fragment, which may contain credentials. */
function plainAddress(address: string | undefined): string | undefined {
  if (!address || !URL.canParse(address)) return undefined;
  const url = new URL(address);
  return /^https?:$/.test(url.protocol) ? `${url.origin}${url.pathname}` : undefined;
}

/** @returns the names by which the `actor` filter finds this actor's records */
export function namesOf({ user, host, run }: Actor): string[] {
  return [user, host, `${user}@${host}`, ...(run === undefined ? [] : [run])];
}

export function actorOf(env: Environment): Actor {
  const { hostname } = process.getBuiltinModule("node:os");
  return { user: userName() ?? (env.USER || env.LOGNAME || "unknown"), host: hostname(), run: ciRunAddress(env) };
}

/** @returns undefined if the user id has no name, as in many containers */
function userName(): string | undefined {
  try {
    return process.getBuiltinModule("node:os").userInfo().username;
  } catch {
    return undefined;
  }
}
