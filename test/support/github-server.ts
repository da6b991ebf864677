// GitHub's REST API for Actions secrets, written from its public description. libsodium decrypts the values.
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { afterAll } from "vitest";
import { type Box, openSealed } from "./sodium.ts";
import { startStoreServer, type StoreRequest, type StoreResponse, type StoreServer } from "./store-server.ts";

interface Stored {
  readonly box: Box;
  readonly changes: number;
  readonly updatedAt: string;
}

export interface GitHubServer extends StoreServer {
  readonly token: string;
  readonly repository: { archived: boolean; push: boolean };
  /** A valid token without access to secrets. */
  readonly blindToken: string;
  /** Replaces the public key; the server then refuses values encrypted for the previous key. */
  rotateKey(): void;
  /** @param name `<name>`, `<environment>#<name>` or `acme#<name>`. @returns the secret's value, if there is one */
  secret(name: string): string | undefined;
  changes(name: string): number;
  forgetSecrets(): void;
  /** Which repositories may use a secret of the organization acme, by the secret's name. */
  readonly access: Map<string, { readonly visibility: string; readonly ids: readonly number[] | undefined }>;
  /** How many seconds `updated_at` is ahead of the time of the write. */
  skewSeconds: number;
}

const refuse = (status: number, message: string): StoreResponse => ({
  status,
  body: { message, documentation_url: "https://docs.github.com/rest", status: String(status) },
});
interface OrganizationRequest {
  readonly method: string;
  readonly authorization: string | undefined;
  /** The path after `/orgs/`. */
  readonly path: readonly string[];
  readonly body: unknown;
}

const selectable: ReadonlyMap<string, number> = new Map([
  ["api", 11],
  ["web", 12],
]);

const notFound = refuse(404, "Not Found");

function keyPair(): Omit<Box, "sealed"> & { readonly id: string } {
  const { d = "", x = "" } = generateKeyPairSync("x25519").privateKey.export({ format: "jwk" });
  const base64 = (text: string): string => Buffer.from(text, "base64url").toString("base64");
  return { public: base64(x), secret: base64(d), id: String(BigInt(`0x${randomBytes(7).toString("hex")}`)) };
}

export async function gitHubOfFile(): Promise<GitHubServer> {
  const github = await startGitHub();
  afterAll(() => github.close());
  return github;
}

export async function startGitHub(): Promise<GitHubServer> {
  const token = `token-${randomBytes(16).toString("hex")}`;
  const blindToken = `token-${randomBytes(16).toString("hex")}`;
  const stored = new Map<string, Stored>();
  const environments = new Set(["production", "eu/west"]);
  let key = keyPair();

  function answer({ method, segments, headers, body }: StoreRequest): StoreResponse {
    const { authorization } = headers;
    if (authorization !== `Bearer ${token}` && authorization !== `Bearer ${blindToken}`)
      return refuse(401, "Bad credentials");
    // A GitHub Enterprise server has its API below /api/v3.
    const isEnterprise = segments[0] === "api" && segments[1] === "v3";
    const [repos, owner, repository, ...rest] = isEnterprise ? segments.slice(2) : segments;
    if (repos === "orgs")
      return answerOfOrganization({ method, authorization, body, path: segments.slice(isEnterprise ? 3 : 1) });
    const id = repos === "repos" && owner === "acme" ? selectable.get(repository ?? "") : undefined;
    if (id !== undefined) return { status: 200, body: { id } };
    if (repos !== "repos" || owner !== "my-org" || repository !== "my-repo") return notFound;
    const { archived, push } = github.repository;
    if (rest.length === 0)
      return { status: 200, body: { full_name: "my-org/my-repo", archived, permissions: { pull: true, push } } };
    const [first, second = "", third, fourth] = rest;
    if (first === "environments" && !environments.has(second)) return notFound;
    if (first === "environments" && third === undefined) return { status: 200, body: { name: second } };
    const isSecrets =
      (first === "actions" && second === "secrets") || (first === "environments" && third === "secrets");
    if (!isSecrets) return notFound;
    if (authorization !== `Bearer ${token}`) return refuse(403, "Resource not accessible by integration");
    const name = first === "actions" ? (third ?? "") : (fourth ?? "");
    const path = first === "actions" ? name : `${second}#${name}`;
    if (name === "public-key") return { status: 200, body: { key_id: key.id, key: key.public } };
    if (method === "GET") {
      const found = stored.get(path);
      const { updatedAt = "" } = found ?? {};
      return found ? { status: 200, body: { name, created_at: updatedAt, updated_at: updatedAt } } : notFound;
    }
    return put(path, body);
  }

  function answerOfOrganization({ method, authorization, path, body }: OrganizationRequest): StoreResponse {
    const [organization, , , name, repositories] = path;
    if (organization !== "acme") return notFound;
    if (path.length === 1) return { status: 200, body: { login: "acme" } };
    if (authorization !== `Bearer ${token}`) return refuse(403, "Resource not accessible by integration");
    if (name === "public-key") return { status: 200, body: { key_id: key.id, key: key.public } };
    const before = stored.get(`acme#${name}`);
    const { visibility, ids } = github.access.get(String(name)) ?? {};
    if (method === "GET" && !before) return notFound;
    if (repositories !== undefined) return { status: 200, body: { repositories: ids?.map((id) => ({ id })) } };
    if (method === "GET") return { status: 200, body: { name, visibility, updated_at: before!.updatedAt } };
    const asked = body as { visibility?: string; selected_repository_ids?: number[] };
    if (!["all", "private", "selected"].includes(asked.visibility ?? "")) return refuse(422, "visibility is missing");
    github.access.set(String(name), { visibility: asked.visibility!, ids: asked.selected_repository_ids });
    return put(`acme#${name}`, body);
  }

  function put(path: string, body: unknown): StoreResponse {
    const { encrypted_value: sealed = "", key_id: id } = body as { encrypted_value?: string; key_id?: string };
    if (github.repository.archived) return refuse(403, "Repository was archived so is read-only.");
    if (id !== key.id) return refuse(422, "Bad request - key_id is not valid");
    if (!/^[A-Za-z0-9+/]+=*$/.test(sealed)) return refuse(422, "encrypted_value is not valid");
    const before = stored.get(path);
    const updatedAt = `${new Date(Date.now() + github.skewSeconds * 1000).toISOString().slice(0, 19)}Z`;
    const box = { sealed, public: key.public, secret: key.secret };
    stored.set(path, { box, changes: (before?.changes ?? 0) + 1, updatedAt });
    return { status: before ? 204 : 201 };
  }

  const github: GitHubServer = Object.assign(await startStoreServer(answer), {
    token,
    blindToken,
    repository: { archived: false, push: true },
    access: new Map(),
    skewSeconds: 0,
    rotateKey: () => void (key = keyPair()),
    secret: (name: string) => {
      const found = stored.get(name);
      return found && openSealed([found.box])[0];
    },
    changes: (name: string) => stored.get(name)?.changes ?? 0,
    forgetSecrets: () => stored.clear(),
  });
  return github;
}
