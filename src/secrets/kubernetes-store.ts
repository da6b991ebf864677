// `--secret-to k8s:<namespace>/<secret>#<key>`: one key of a Kubernetes Secret, through the user's kubectl. Server-side
// apply with one field manager per key preserves the Secret's other keys and those of other managers, and puts the
// secret in no annotation.
import { Failure, type FailureKind, invalidValue } from "../errors.ts";
import { variable } from "../profiles/resolution.ts";
import { runShell, type ShellRun } from "../profiles/shell-command.ts";
import type { Found } from "./destination.ts";
import { AddressedStore, type OpenStore, type Store, type StoreFacts } from "./store.ts";
import { type Advice, shell, flags } from "../next-step.ts";

interface Address {
  readonly namespace: string;
  readonly secret: string;
  readonly key: string;
}

const timeLimitMs = 60_000;
const tries = 3;
const notFoundStatus = 127;

export const open: OpenStore = (text, tools) => {
  const at = addressIn(text);
  return new KubernetesStore(at, { scheme: "k8s", address: `${at.namespace}/${at.secret}#${at.key}`, tools });
};

class KubernetesStore extends AddressedStore<Address> implements Store {
  async check(): Promise<StoreFacts> {
    const { run } = await this.#kubectl("config view --minify --output", jsonPath(".clusters[0].cluster.server"));
    if (run.status === notFoundStatus)
      throw new Failure("usage", `${this.name} needs kubectl, and it is not installed.`, {
        hint: "Install kubectl, or name another destination.",
      });
    const { env } = this.tools;
    const [host, port] = [variable(env, "KUBERNETES_SERVICE_HOST"), variable(env, "KUBERNETES_SERVICE_PORT")];
    const inside = host && `https://${host}:${port ?? "443"}`;
    const server = run.stdout.toString("utf8").trim() || inside;
    if (server) return { server };
    throw new Failure("usage", `${this.name}: kubectl has no cluster.`, {
      hint: "Set KUBECONFIG, or choose a context with kubectl config use-context.",
    });
  }

  /** The server's dry run checks permissions, the namespace and conflicts with other managers. */
  async prepare(): Promise<StoreFacts> {
    const failure = await this.#apply("integ asks whether it may write here", "--dry-run=server");
    if (failure === undefined) return {};
    throw failure.kind === "conflict" ? new Failure("usage", failure.message, failure.details) : failure;
  }

  async look(): Promise<Found> {
    const value = await this.#readEncoded();
    return value === "" ? { is: "absent" } : { is: "text", text: Buffer.from(value, "base64").toString("utf8") };
  }

  /** The field manager guards the write: the server refuses to change a key of another manager. */
  async write(text: string): Promise<boolean> {
    for (let attempt = 1; ; attempt += 1) {
      const failure = await this.#apply(text);
      if (failure === undefined) return true;
      // Applying again after a lost response is safe, because it is idempotent.
      if (failure.kind === "unreachable" && attempt < tries) await this.tools.sleep(500 * 2 ** attempt);
      else if (await this.#has(text)) return true;
      else throw failure;
    }
  }

  async #has(text: string): Promise<boolean> {
    const found = await this.look().catch(() => undefined);
    return found?.is === "text" && found.text === text;
  }

  /** @returns base64, or an empty text if the key does not exist */
  async #readEncoded(): Promise<string> {
    const { namespace, secret, key } = this.at;
    const field = jsonPath(`.data.${key.replaceAll(".", "\\.")}`);
    const words = `get secret ${secret} --namespace ${namespace} --ignore-not-found --output`;
    const { run, stderr } = await this.#kubectl(words, field);
    if (run.status === 0) return run.stdout.toString("utf8").trim();
    throw this.#refusal(stderr, "be read");
  }

  async #apply(text: string, more = ""): Promise<Failure | undefined> {
    const { namespace, secret, key } = this.at;
    const data = { [key]: Buffer.from(text).toString("base64") };
    const manifest = { apiVersion: "v1", kind: "Secret", metadata: { name: secret, namespace }, data };
    const words = `apply --server-side --field-manager=integ-${key} --validate=false ${more} --filename -`;
    const { run, stderr } = await this.#kubectl(words, "", JSON.stringify(manifest));
    return run.status === 0 ? undefined : this.#refusal(stderr, "be written");
  }

  /** @param words need no quoting: letters, digits and `-_.=`. @param path the last word, which this method quotes */
  async #kubectl(
    words: string,
    path: string,
    input?: string,
  ): Promise<{ readonly run: ShellRun; readonly stderr: string }> {
    const { env, signal } = this.tools;
    const quoted = process.platform === "win32" || path === "" ? path : `'${path}'`;
    const chunks: Buffer[] = [];
    const run = await runShell(`kubectl ${words} ${quoted}`, {
      env,
      facts: { LC_ALL: "C" },
      input,
      timeLimitMs,
      onStderr: (chunk) => void chunks.push(chunk),
      isStderrQuoted: false,
      signal,
    });
    return { run, stderr: Buffer.concat(chunks).toString("utf8") };
  }

  /** Does not quote kubectl's error, which may contain the manifest with the secret. */
  #refusal(stderr: string, what: string): Failure {
    const manager = /conflict with "([^"\n]{1,128})"/.exec(stderr)?.[1];
    const { namespace, secret, key } = this.at;
    if (manager !== undefined)
      return new Failure("conflict", `${this.name}: the key is managed by ${manager}, and is not overwritten.`, {
        hint: "Remove it there, then run the command again.",
        nextCommand: shell`kubectl patch secret ${secret} --namespace ${namespace} --type=json -p ${JSON.stringify([{ op: "remove", path: `/data/${key}` }])}`,
      });
    const [kind, why, hint] = causes.find(([pattern]) => pattern.test(stderr))?.[1] ?? otherCause;
    return new Failure(kind, `${this.name} cannot ${what}: ${why}.`, { hint });
  }
}

type Cause = readonly [kind: FailureKind, why: string, hint?: Advice];

const otherCause: Cause = [
  "usage",
  "kubectl failed",
  "Check what kubectl says: kubectl apply --server-side --dry-run=server.",
];

const causes: readonly (readonly [RegExp, Cause])[] = [
  [/\(Forbidden\)/, ["auth", "permission denied", "Give the account the verbs get, create and patch on this Secret."]],
  [
    /logged in to the server|\(Unauthorized\)/,
    ["auth", "the cluster does not accept the credential", "Renew the login to the cluster."],
  ],
  [/namespaces "[^"]*" not found/, ["usage", "the namespace does not exist", "Create it, or name another one."]],
  [/field is immutable/, ["usage", "the Secret is immutable", "Name another Secret."]],
  [
    /Unable to connect|connection to the server|timed? ?out|\(ServiceUnavailable\)|\(InternalError\)|\(TooManyRequests\)|EOF|connection re/i,
    ["unreachable", "the cluster gave no response"],
  ],
];

function jsonPath(path: string): string {
  return `jsonpath={${path}}`;
}

function addressIn(text: string): Address {
  const name = "[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?";
  const pattern = new RegExp(`^(${name})/(${name}(?:\\.${name})*)#([-._a-zA-Z0-9]{1,120})$`);
  const [, namespace = "", secret = "", key = ""] = pattern.exec(text) ?? [];
  if (namespace !== "" && secret.length <= 253 && key !== "." && !key.startsWith(".."))
    return { namespace, secret, key };
  throw invalidValue(flags.secretTo, `k8s:${text}`, {
    why: "it is not k8s:<namespace>/<secret>#<key>",
    hint: `Write it like ${flags.secretTo} k8s:my-namespace/my-app#client-secret.`,
  });
}
