// Simulates the KV engine (version 2) of HashiCorp Vault and OpenBao, written from their API documents.
import { randomBytes } from "node:crypto";
import { afterAll } from "vitest";
import { startStoreServer, type StoreRequest, type StoreResponse, type StoreServer } from "./store-server.ts";

type Fields = Readonly<Record<string, unknown>>;

interface Version {
  readonly fields: Fields;
  readonly isDeleted: boolean;
}

interface Mount {
  readonly type: string;
  readonly options: Readonly<Record<string, string>> | null;
}

export interface VaultServer extends StoreServer {
  readonly root: string;
  readonly mounts: Map<string, Mount>;
  isSealed: boolean;
  /** Maps `<mount>/<path>` to all versions of the secret. */
  readonly secrets: Map<string, Version[]>;
  /** @returns a token with these capabilities below `<mount>/data/` */
  token(...capabilities: string[]): string;
  revoke(token: string): void;
  /** Writes a new version directly, without check-and-set. */
  put(path: string, fields: Fields, state?: { readonly isDeleted: boolean }): void;
  /** The newest version's fields, or undefined if the secret does not exist or that version is deleted. */
  current(path: string): Fields | undefined;
}

const created = "2026-01-02T03:04:05.678901234Z";
const errors = (status: number, ...messages: string[]): StoreResponse => ({ status, body: { errors: messages } });
const denied = errors(403, "permission denied");
const success = (data: unknown): StoreResponse => ({
  status: 200,
  body: { request_id: "r", lease_id: "", renewable: false, lease_duration: 0, data, wrap_info: null, warnings: null },
});

export async function vaultOfFile(): Promise<VaultServer> {
  const vault = await startVault();
  afterAll(() => vault.close());
  return vault;
}

export async function startVault(): Promise<VaultServer> {
  const root = `root-${randomBytes(12).toString("hex")}`;
  const tokens = new Map<string, readonly string[]>([[root, ["root"]]]);
  const secrets = new Map<string, Version[]>();
  const mounts = new Map<string, Mount>([
    ["secret/", { type: "kv", options: { version: "2" } }],
    ["team/apps/", { type: "kv", options: { version: "2" } }],
    ["old/", { type: "kv", options: { version: "1" } }],
    ["pki/", { type: "pki", options: null }],
  ]);
  const put: VaultServer["put"] = (path, fields, { isDeleted } = { isDeleted: false }) => {
    const versions = secrets.get(path) ?? [];
    secrets.set(path, [...versions, { fields, isDeleted }]);
  };
  const current: VaultServer["current"] = (path) => {
    const newest = secrets.get(path)?.at(-1);
    return newest === undefined || newest.isDeleted ? undefined : newest.fields;
  };

  const metadataOf = (path: string): Fields => {
    const versions = secrets.get(path) ?? [];
    const isDeleted = versions.at(-1)?.isDeleted === true;
    return {
      created_time: created,
      custom_metadata: null,
      deletion_time: isDeleted ? created : "",
      destroyed: false,
      version: versions.length,
    };
  };

  function answer({ method, segments, headers, body }: StoreRequest): StoreResponse {
    const [api, ...rest] = segments;
    const path = rest.join("/");
    if (api !== "v1") return errors(404);
    if (path === "sys/seal-status") return { status: 200, body: { type: "shamir", sealed: vault.isSealed } };
    if (vault.isSealed) return errors(503, "Vault is sealed");
    const capabilities = tokens.get(String(headers["x-vault-token"] ?? ""));
    const namespace = headers["x-vault-namespace"];
    if (capabilities === undefined || (namespace !== undefined && namespace !== "admin")) return denied;
    if (path === "auth/token/lookup-self") return success({ policies: ["default"] });
    const may = (name: string): boolean => capabilities.includes(name) || capabilities.includes("root");
    if (path === "sys/capabilities-self" && method === "POST") {
      const { paths } = body as { paths: string[] };
      const named = Object.fromEntries(paths.map((one) => [one, capabilities.length > 0 ? capabilities : ["deny"]]));
      return { status: 200, body: { ...named, capabilities: named[paths[0] ?? ""], data: named } };
    }
    if (path.startsWith("sys/internal/ui/mounts/")) {
      const wanted = `${path.slice("sys/internal/ui/mounts/".length)}/`;
      const found = mountOf(wanted);
      if (found === undefined || capabilities.length === 0) return denied;
      return success({ accessor: "a", path: found, ...mounts.get(found) });
    }
    const mount = mountOf(path);
    const inside = path.slice(mount?.length ?? 0);
    if (mount === undefined || !inside.startsWith("data/")) return errors(404);
    const name = `${mount}${inside.slice("data/".length)}`;
    if (method === "GET") return may("read") ? readAt(name) : denied;
    return write(name, { method, may, body, contentType: headers["content-type"] });
  }

  function mountOf(path: string): string | undefined {
    return [...mounts.keys()].filter((name) => path.startsWith(name)).sort((a, b) => b.length - a.length)[0];
  }

  function readAt(name: string): StoreResponse {
    if (!secrets.has(name)) return errors(404);
    const response = success({ data: current(name) ?? null, metadata: metadataOf(name) });
    return current(name) === undefined ? { ...response, status: 404 } : response;
  }

  function write(
    name: string,
    {
      method,
      may,
      body,
      contentType,
    }: Pick<StoreRequest, "method" | "body"> & {
      readonly may: (name: string) => boolean;
      readonly contentType: string | undefined;
    },
  ): StoreResponse {
    const { options = {}, data } = body as { options?: { cas?: number }; data?: Fields };
    const isPatch = method === "PATCH";
    if (isPatch && contentType !== "application/merge-patch+json") return errors(415, "unsupported content type");
    const needed = isPatch ? "patch" : secrets.has(name) ? "update" : "create";
    if (!may(needed)) return denied;
    if (data === undefined) return errors(400, "no data provided");
    if (isPatch && current(name) === undefined) return readAt(name);
    if (options.cas === undefined) return errors(400, "check-and-set parameter required for this call");
    if (options.cas !== (secrets.get(name)?.length ?? 0))
      return errors(400, "check-and-set parameter did not match the current version");
    put(name, isPatch ? { ...current(name), ...data } : data);
    return success(metadataOf(name));
  }

  const vault: VaultServer = Object.assign(await startStoreServer(answer), {
    root,
    mounts,
    secrets,
    isSealed: false,
    put,
    current,
    token: (...capabilities: string[]) => {
      const token = `token-${randomBytes(12).toString("hex")}`;
      tokens.set(token, capabilities);
      return token;
    },
    revoke: (token: string) => void tokens.delete(token),
  });
  return vault;
}
