// The part of the Kubernetes API that the real kubectl needs for Secrets, written from the public description of the API.
import { randomBytes } from "node:crypto";
import { startTlsFront } from "./tls-front.ts";
import { startStoreServer, type StoreRequest, type StoreResponse, type StoreServer } from "./store-server.ts";

/** Each kubectl is a short process, which needs neither threads nor garbage collection. */
export const briefKubectl = { GOMAXPROCS: "1", GOGC: "off" } as const;

interface StoredSecret {
  /** The values are in Base64. */
  readonly data: Record<string, string>;
  readonly owners: Record<string, string>;
  /** Changes with each write. */
  readonly version: string;
  isImmutable: boolean;
}

export interface KubernetesServer extends StoreServer {
  readonly token: string;
  /** The verbs that the token may use. */
  readonly may: Set<string>;
  readonly config: string;
  /** Writes a key for any field manager, without conflict checks. */
  put(name: string, key: string, text: string, manager: string): void;
  freeze(name: string): void;
  /** The keys of a Secret, decoded; undefined if the Secret does not exist. */
  secret(name: string): Readonly<Record<string, string>> | undefined;
  owner(name: string, key: string): string | undefined;
  /** The number of applies, without dry runs. */
  writes: number;
  forgetSecrets(): void;
  /** Redirects new connections to `origin`; without an origin, back to this server. */
  through(origin: string | undefined): void;
}

const namespaces = ["apps", "default"];

function status(code: number, reason: string, message: string, details: object = {}): StoreResponse {
  return {
    status: code,
    body: { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, details, code },
  };
}

const resources = {
  kind: "APIResourceList",
  groupVersion: "v1",
  resources: [
    { name: "namespaces", singularName: "namespace", namespaced: false, kind: "Namespace", verbs: ["get"] },
    { name: "secrets", singularName: "secret", namespaced: true, kind: "Secret", verbs: ["create", "get", "patch"] },
  ],
};

export async function startKubernetes(): Promise<KubernetesServer> {
  const token = `token-${randomBytes(16).toString("hex")}`;
  const stored = new Map<string, StoredSecret>();
  const may = new Set(["get", "patch", "create"]);
  let versions = 100;
  const nextVersion = (): string => String((versions += 1));

  function answer(request: StoreRequest): StoreResponse {
    const { method, segments, headers } = request;
    if (headers.authorization !== `Bearer ${token}`) return status(401, "Unauthorized", "Unauthorized");
    const path = segments.join("/");
    if (path === "api") return { status: 200, body: { kind: "APIVersions", versions: ["v1"] } };
    if (path === "apis") return { status: 200, body: { kind: "APIGroupList", apiVersion: "v1", groups: [] } };
    if (path === "api/v1") return { status: 200, body: resources };
    const [, , , namespace = "", kind, name = ""] = segments;
    if (kind === "secrets" && name === "" && method === "POST") return create(request, namespace);
    if (kind !== "secrets" || name === "") return status(404, "NotFound", "the server could not find the resource");
    const verb = method === "GET" ? "get" : "patch";
    if (!may.has(verb))
      return status(403, "Forbidden", `secrets "${name}" is forbidden: User "ci" cannot ${verb} resource "secrets"`);
    const found = stored.get(`${namespace}/${name}`);
    if (method === "GET")
      return found
        ? { status: 200, body: shown(namespace, name, found) }
        : status(404, "NotFound", `secrets "${name}" not found`, { name, kind: "secrets" });
    return apply(request, { namespace, name, found });
  }

  function create({ body, query }: StoreRequest, namespace: string): StoreResponse {
    const { metadata, data = {} } = body as { metadata: { name: string }; data?: Record<string, string> };
    const { name } = metadata;
    if (!may.has("create")) return status(403, "Forbidden", `secrets is forbidden: User "ci" cannot create resource`);
    if (!namespaces.includes(namespace)) return status(404, "NotFound", `namespaces "${namespace}" not found`);
    if (stored.has(`${namespace}/${name}`))
      return status(409, "AlreadyExists", `secrets "${name}" already exists`, { name, kind: "secrets" });
    // A created key belongs to the operation Update, which conflicts with a later apply of the same manager.
    const owner = `${query.get("fieldManager")} (Update)`;
    const owners = Object.fromEntries(Object.keys(data).map((key) => [key, owner]));
    const made: StoredSecret = { data, owners, version: nextVersion(), isImmutable: false };
    stored.set(`${namespace}/${name}`, made);
    return { status: 201, body: shown(namespace, name, made) };
  }

  function apply(
    { body, headers, query }: StoreRequest,
    {
      namespace,
      name,
      found,
    }: { readonly namespace: string; readonly name: string; readonly found: StoredSecret | undefined },
  ): StoreResponse {
    if (headers["content-type"] !== "application/apply-patch+yaml")
      return status(415, "UnsupportedMediaType", "only server-side apply is here");
    if (!namespaces.includes(namespace)) return status(404, "NotFound", `namespaces "${namespace}" not found`);
    if (!found && !may.has("create")) return status(403, "Forbidden", `secrets "${name}" is forbidden: cannot create`);
    const manager = query.get("fieldManager") ?? "";
    const { data = {}, metadata } = body as {
      data?: Record<string, string>;
      metadata: { resourceVersion?: string };
    };
    const conflicts = Object.keys(data).filter(
      (key) => found?.owners[key] !== undefined && found.owners[key] !== manager && found.data[key] !== data[key],
    );
    if (conflicts.length > 0 && query.get("force") !== "true")
      return status(
        409,
        "Conflict",
        `Apply failed with ${conflicts.length} conflict: conflict with "${found?.owners[conflicts[0]!]}" using v1: .data.${conflicts[0]}`,
        {
          causes: conflicts.map((key) => ({
            reason: "FieldManagerConflict",
            message: "conflict",
            field: `.data.${key}`,
          })),
        },
      );
    // A version in the request must be the object's. The API ignores a version for an object that does not exist.
    if (found && metadata.resourceVersion !== undefined && metadata.resourceVersion !== found.version)
      return status(
        409,
        "Conflict",
        `Operation cannot be fulfilled on secrets "${name}": the object has been modified; please apply your changes to the latest version and try again`,
        { name, kind: "secrets" },
      );
    if (found?.isImmutable === true)
      return status(
        422,
        "Invalid",
        `Secret "${name}" is invalid: data: Forbidden: field is immutable when \`immutable\` is set`,
      );
    const next: StoredSecret = {
      data: { ...found?.data },
      owners: { ...found?.owners },
      version: nextVersion(),
      isImmutable: false,
    };
    for (const [key, owner] of Object.entries(next.owners))
      if (owner === manager && !(key in data)) {
        delete next.data[key];
        delete next.owners[key];
      }
    for (const [key, value] of Object.entries(data)) {
      next.data[key] = value;
      next.owners[key] = manager;
    }
    if (query.get("dryRun") === null) {
      stored.set(`${namespace}/${name}`, next);
      kubernetes.writes += 1;
    }
    return { status: found ? 200 : 201, body: shown(namespace, name, next) };
  }

  function shown(namespace: string, name: string, { data, version, isImmutable }: StoredSecret): object {
    const metadata = { name, namespace, uid: "u", resourceVersion: version };
    return { kind: "Secret", apiVersion: "v1", metadata, data, immutable: isImmutable, type: "Opaque" };
  }

  const server = await startStoreServer(answer);
  // kubectl sends a token only over TLS.
  const front = await startTlsFront(server.origin);
  const kubernetes: KubernetesServer = Object.assign(server, {
    through: front.through,
    close: ((close) => async () => {
      await front.close();
      await close();
    })(server.close),
    token,
    may,
    writes: 0,
    config: JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      "current-context": "test",
      clusters: [
        {
          name: "test",
          cluster: {
            server: front.origin,
            "certificate-authority-data": Buffer.from(front.authority).toString("base64"),
          },
        },
      ],
      contexts: [{ name: "test", context: { cluster: "test", user: "ci" } }],
      users: [{ name: "ci", user: { token } }],
    }),
    put(name: string, key: string, text: string, manager: string) {
      const { data = {}, owners = {}, isImmutable = false } = stored.get(name) ?? {};
      const value = Buffer.from(text).toString("base64");
      stored.set(name, {
        data: { ...data, [key]: value },
        owners: { ...owners, [key]: manager },
        version: nextVersion(),
        isImmutable,
      });
    },
    freeze: (name: string) => void (stored.get(name)!.isImmutable = true),
    secret(name: string) {
      const found = stored.get(name);
      const decoded = (text: string): string => Buffer.from(text, "base64").toString("utf8");
      return found && Object.fromEntries(Object.entries(found.data).map(([key, text]) => [key, decoded(text)]));
    },
    owner: (name: string, key: string) => stored.get(name)?.owners[key],
    forgetSecrets: () => stored.clear(),
  });
  return kubernetes;
}
