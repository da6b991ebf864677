// `--secret-to github:<owner>/<repo>[@<environment>]#<NAME>` or `github:org/<organization>#<NAME>`: a GitHub Actions secret.
// GitHub never returns the secret, so a delivery is proven by GitHub's response and the secret's time of change.
import { flags } from "../next-step.ts";
import { segment } from "../api/call/request.ts";
import { Failure, invalidValue } from "../errors.ts";
import { variable } from "../profiles/resolution.ts";
import { publicKeyBytes, sealedBox } from "./sealed-box.ts";
import type { Found } from "./destination.ts";
import { AddressedStore, type OpenStore, type Store, type StoreFacts } from "./store.ts";
import {
  waitSeconds,
  fieldOf,
  isTemporary,
  type LostResponse,
  serverAddress,
  StoreClient,
  type StoreResponse,
  storeTries,
} from "./store-http.ts";

interface Address {
  /** If `org`, `repository` is the name of the organization. */
  readonly owner: string;
  readonly repository: string;
  readonly environment: string | undefined;
  readonly name: string;
  /** Who may use an organization's secret. By default, an existing secret keeps its access, and a new one is `private`. */
  readonly access?: Access | undefined;
}

interface Access {
  readonly visibility: "all" | "private" | "selected";
  readonly repositories: readonly string[];
}

const organizations = "org";

interface PublicKey {
  readonly id: string;
  readonly key: Buffer;
}

/** GitHub's clocks for the time of change and the date header may differ by this much. */
const clockToleranceMs = 10_000;
/** The end of a longer wait is not shown: `toISOString` throws for dates too far ahead. */
const longestShownS = 366 * 86_400;

export const open: OpenStore = (text, tools) => {
  const at = addressIn(text);
  const { owner, repository, environment, name } = at;
  const address = `${owner}/${repository}${environment === undefined ? "" : `@${environment}`}#${name}`;
  return new GitHubStore(at, { scheme: "github", address, tools });
};

class GitHubStore extends AddressedStore<Address> implements Store {
  async check(): Promise<StoreFacts> {
    const server = this.#server();
    this.#token(server);
    const { access } = this.at;
    return { server, ...(access && { visibility: access.visibility }) };
  }

  async prepare(): Promise<StoreFacts> {
    const client = this.#client();
    await (this.at.owner === organizations ? this.#organization(client) : this.#repository(client));
    await this.#publicKey(client);
    const { repositories = [] } = this.at.access ?? {};
    if (repositories.length === 0) return {};
    const ids = await Promise.all(repositories.map((name) => this.#repositoryId(client, name)));
    return { repository_ids: ids.join(",") };
  }

  readonly isUnreadable = true;

  async look(): Promise<Found> {
    const version = await this.#changedAt(this.#client());
    return version === undefined ? { is: "absent" } : { is: "hidden", version };
  }

  async write(text: string, facts: StoreFacts, over: Found): Promise<boolean | Found> {
    const client = this.#client();
    const access = this.at.owner === organizations ? await this.#access(client, facts) : {};
    let key = await this.#publicKey(client);
    const before = await this.#changedAt(client);
    if (before !== (over.is === "hidden" ? over.version : undefined)) return false;
    for (let attempt = 1; ; attempt += 1) {
      const response = await client.send({
        method: "PUT",
        path: `${this.#secrets()}/${this.at.name}`,
        body: { encrypted_value: sealedBox(Buffer.from(text), key.key).toString("base64"), key_id: key.id, ...access },
        secret: text,
      });
      if (response.kind === "response" && (response.status === 201 || response.status === 204))
        return this.#confirm(client, response);
      const now = isUnknown(response) ? await this.#changedAt(client) : undefined;
      // Two changes within one second look like none: integ then writes again, which is harmless.
      if (now !== undefined && now !== before) return { is: "hidden", version: now };
      if (attempt < storeTries) {
        if (response.kind === "lost" || isTemporary(response)) {
          if (await client.pause(attempt, response)) continue;
        } else if (response.status === 422) {
          const newKey = await this.#publicKey(client);
          const isOther = newKey.id !== key.id;
          key = newKey;
          if (isOther) continue;
        }
      }
      throw response.kind === "lost" ? response.failure : this.#refusal(client.refuseRedirect(response), "be written");
    }
  }

  async #confirm(client: StoreClient, { headers }: StoreResponse): Promise<Found> {
    const changedAt = await this.#changedAt(client);
    const writtenAt = Date.parse(headers.date ?? "");
    if (changedAt !== undefined && !(Date.parse(changedAt) < writtenAt - clockToleranceMs))
      return { is: "hidden", version: changedAt };
    throw new Failure("undelivered", `${this.name}: GitHub took the secret, and does not show it as changed.`);
  }

  async #repository(client: StoreClient): Promise<void> {
    const { owner, repository, environment } = this.at;
    const response = await client.read({ method: "GET", path: this.#path() });
    if (response.status === 404)
      throw new Failure("usage", `${this.name}: the repository ${owner}/${repository} is not found.`, {
        hint: "Check its name, and that the token may see it.",
      });
    if (response.status !== 200) throw this.#refusal(response, "be found");
    if (fieldOf(response.body, "archived") === true)
      throw new Failure("usage", `${this.name}: the repository is archived, and takes no secret.`);
    if (fieldOf(response.body, "permissions", "push") === false)
      throw new Failure("auth", `${this.name}: the token may not write to the repository.`, { hint: tokenHint });
    if (environment === undefined) return;
    const found = await client.read({
      method: "GET",
      path: `${this.#path()}/environments/${encodedName(environment)}`,
    });
    if (found.status === 404)
      throw new Failure("usage", `${this.name}: the repository has no environment ${environment}.`, {
        hint: "Create it in the repository's settings first.",
      });
    if (found.status !== 200) throw this.#refusal(found, "be found");
  }

  async #organization(client: StoreClient): Promise<void> {
    const { status } = await client.read({ method: "GET", path: this.#path() });
    if (status === 200) return;
    throw new Failure("usage", `${this.name}: the organization ${this.at.repository} is not found.`, {
      hint: "Check its name, and that the token may see it.",
    });
  }

  async #repositoryId(client: StoreClient, repository: string): Promise<number> {
    const path = `/repos/${this.at.repository}/${repository}`;
    const { body } = await client.read({ method: "GET", path });
    const id = fieldOf(body, "id");
    if (typeof id === "number") return id;
    throw new Failure("usage", `${this.name}: the organization has no repository ${repository}.`, {
      hint: "Check its name, and that the token may see it.",
    });
  }

  /** A write must name who may use the secret: to keep an existing secret's access, integ reads it first. */
  async #access(client: StoreClient, { visibility, repository_ids: ids }: StoreFacts): Promise<object> {
    if (visibility === "selected") return { visibility, selected_repository_ids: (ids ?? "").split(",").map(Number) };
    if (visibility !== undefined) return { visibility };
    const path = `${this.#secrets()}/${this.at.name}`;
    const now = await client.read({ method: "GET", path });
    const before = fieldOf(now.body, "visibility");
    if (now.status !== 200 || before === undefined) return { visibility: "private" };
    if (before !== "selected") return { visibility: before };
    const selected: unknown[] = [];
    for (let page = 1; ; page += 1) {
      const { status, body } = await client.read({
        method: "GET",
        path: `${path}/repositories?per_page=100&page=${page}`,
      });
      const repositories = fieldOf(body, "repositories");
      if (status !== 200 || !Array.isArray(repositories))
        throw new Failure("unreachable", `${this.name}: GitHub does not say which repositories may use the secret.`);
      selected.push(...repositories.map((repository: unknown) => fieldOf(repository, "id")));
      if (repositories.length < 100) return { visibility: before, selected_repository_ids: selected };
    }
  }

  async #publicKey(client: StoreClient): Promise<PublicKey> {
    const response = await client.read({ method: "GET", path: `${this.#secrets()}/public-key` });
    if (response.status !== 200) throw this.#refusal(response, "be encrypted: GitHub does not give the public key");
    const id = fieldOf(response.body, "key_id");
    const key = Buffer.from(String(fieldOf(response.body, "key")), "base64");
    if (typeof id === "string" && key.length === publicKeyBytes) return { id, key };
    throw new Failure("unreachable", `${this.name}: GitHub's public key is not one.`);
  }

  async #changedAt(client: StoreClient): Promise<string | undefined> {
    const response = await client.read({ method: "GET", path: `${this.#secrets()}/${this.at.name}` });
    if (response.status === 404) return undefined;
    const changedAt = fieldOf(response.body, "updated_at");
    if (response.status === 200 && typeof changedAt === "string") return changedAt;
    throw this.#refusal(response, "be looked at");
  }

  #refusal({ status, headers, body }: StoreResponse, what: string): Failure {
    const detail = fieldOf(body, "message");
    const details = { problem: { status, detail: typeof detail === "string" ? detail : undefined } };
    const name = this.name;
    if (status === 429 || headers["retry-after"] !== undefined || headers["x-ratelimit-remaining"] === "0") {
      const wait = waitSeconds(headers, Date.now()) ?? Number.POSITIVE_INFINITY;
      const when = wait > longestShownS ? undefined : new Date(Date.now() + wait * 1000).toISOString().slice(0, 19);
      return new Failure("rate_limited", `${name}: GitHub limits the rate of requests.`, {
        ...details,
        hint: when === undefined ? undefined : `Wait until ${when}Z, then run the command again.`,
      });
    }
    if (status === 401)
      return new Failure("auth", `${name}: GitHub does not accept the token.`, { ...details, hint: tokenHint });
    if (status === 403 || status === 404)
      return new Failure("auth", `${name}: permission denied: it cannot ${what}.`, { ...details, hint: tokenHint });
    const kind = status < 500 ? "usage" : "unreachable";
    return new Failure(kind, `${name} cannot ${what}: GitHub answered ${status}.`, details);
  }

  #path(): string {
    const { owner, repository } = this.at;
    return owner === organizations ? `/orgs/${repository}` : `/repos/${owner}/${repository}`;
  }

  #secrets(): string {
    const { environment } = this.at;
    return environment === undefined
      ? `${this.#path()}/actions/secrets`
      : `${this.#path()}/environments/${encodedName(environment)}/secrets`;
  }

  #server(): string {
    const { env } = this.tools;
    const host = variable(env, "GH_HOST")?.toLowerCase();
    if (host === undefined)
      return serverAddress(variable(env, "GITHUB_API_URL") ?? apiOf("github.com"), {
        what: "GITHUB_API_URL",
        example: apiOf("github.com"),
      });
    if (!/^[a-z0-9.-]+(?::\d+)?$/.test(host))
      throw invalidValue("GH_HOST", undefined, {
        why: "it is not the name of a host",
        hint: "Set GH_HOST to a name, like github.example.com.",
      });
    return serverAddress(apiOf(host), { what: "GH_HOST", example: apiOf("github.example.com") });
  }

  /** Chooses the token like `gh` (`gh help environment`): an enterprise host never gets a token of github.com. */
  #token(server: string): string {
    const { env } = this.tools;
    const { hostname } = new URL(server);
    const names = tokenNames(hostname);
    const token = names.map((name) => variable(env, name)).find((value) => value !== undefined);
    if (token !== undefined) return token;
    const [first] = names;
    const isEnterprise = names === enterpriseTokens;
    throw new Failure("auth", `${this.name} has no token.`, {
      ...(isEnterprise && { meaning: `Only github.com and hosts at ghe.com get ${cloudTokens.join(" and ")}.` }),
      hint: `Set ${first}, for example with export ${first}="$(gh auth token${isEnterprise ? ` --hostname ${hostname}` : ""})".`,
    });
  }

  #client(): StoreClient {
    const { http, sleep, signal } = this.tools;
    const baseUrl = this.#server();
    const token = this.#token(baseUrl);
    return new StoreClient({
      name: `GitHub at ${baseUrl}`,
      baseUrl,
      token,
      headers: {
        accept: "application/vnd.github+json",
        authorization: `Bearer ${token}`,
        "x-github-api-version": "2022-11-28",
      },
      http: () => http({}),
      sleep,
      signal,
    });
  }
}

/** True if the server may have executed the request. */
function isUnknown(response: StoreResponse | LostResponse): boolean {
  return response.kind === "lost" || response.status >= 500 || response.status === 408;
}

const tokenHint =
  "Use a token that may write the secrets there: classic with the scope repo (for an organization admin:org), or fine-grained with Secrets (write). The token of a workflow run cannot.";

/** Makes the secret's name uppercase, and owner, repository and environment lowercase. @throws Failure `usage` */
function addressIn(text: string): Address {
  const [, owner = "", repository = "", environment, name = "", options] =
    /^([\w-]{1,100})\/([\w.-]{1,100})(?:@([^#]{1,255}))?#([A-Za-z_]\w{0,254})(?:\?(.*))?$/u.exec(text) ?? [];
  const isOrganization = owner.toLowerCase() === organizations;
  const isPlace = !isOrganization || environment === undefined;
  const access = options === undefined ? undefined : accessIn(options);
  const isAccess = options === undefined || (isOrganization && access !== undefined);
  const isName = name !== "" && !/^github_/i.test(name);
  if (
    isName &&
    isPlace &&
    isAccess &&
    repository !== "." &&
    repository !== ".." &&
    !/[\p{Cc}\p{Cs}]/u.test(environment ?? "")
  )
    return {
      access,
      owner: owner.toLowerCase(),
      repository: repository.toLowerCase(),
      environment: environment?.toLowerCase(),
      name: name.toUpperCase(),
    };
  throw invalidValue(flags.secretTo, `github:${text}`, {
    why: "it is not github:<owner>/<repo>[@<environment>]#<NAME> or github:org/<organization>#<NAME>",
    meaning:
      "A name has letters, digits and underscores, and does not begin with a digit or GITHUB_. Behind an organization's secret there may be ?visibility=all, ?visibility=private or ?repositories=<name>,<name>.",
    hint: `Write it like ${flags.secretTo} github:my-org/my-repo#CLIENT_SECRET.`,
  });
}

function accessIn(options: string): Access | undefined {
  const [, visibility, repositories] =
    /^(?:visibility=(all|private)|repositories=([\w.-]{1,100}(?:,[\w.-]{1,100})*))$/.exec(options) ?? [];
  if (visibility === "all" || visibility === "private") return { visibility, repositories: [] };
  return repositories === undefined ? undefined : { visibility: "selected", repositories: repositories.split(",") };
}

const cloudTokens = ["GH_TOKEN", "GITHUB_TOKEN"] as const;
const enterpriseTokens = ["GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"] as const;

function tokenNames(hostname: string): typeof cloudTokens | typeof enterpriseTokens {
  const isCloud = hostname === "api.github.com" || hostname === "github.com" || hostname.endsWith(".ghe.com");
  return isCloud ? cloudTokens : enterpriseTokens;
}

function apiOf(host: string): string {
  if (host === "github.com" || host.endsWith(".ghe.com")) return `https://api.${host}`;
  return `https://${host}/api/v3`;
}

function encodedName(environment: string): string {
  return segment(environment, "environment");
}
