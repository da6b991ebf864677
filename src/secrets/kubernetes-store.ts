// `--secret-to k8s:<namespace>/<secret>#<key>`: one key of a Kubernetes Secret, through kubectl. Server-side apply with a field
// manager per key preserves all other keys, and puts the secret in no annotation.
import { Failure, type FailureKind, invalidValue } from "../errors.ts";
import { variable } from "../profiles/resolution.ts";
import { runShell, type ShellRun } from "../profiles/shell-command.ts";
import type { Found } from "./destination.ts";
import { AddressedStore, type OpenStore, type Store, type StoreFacts } from "./store.ts";
import { type Advice, flags } from "../next-step.ts";

interface Address {
  readonly namespace: string;
  readonly secret: string;
  readonly key: string;
}

const timeLimitMs = 60_000;
const tries = 3;
/** Marks a failed write whose cause is a change of the Secret. */
const changedStatus = 409;
const versionPath = "{.metadata.resourceVersion}";
const notFoundStatus = 127;

export const open: OpenStore = (text, tools) => {
  const at = addressIn(text);
  return new KubernetesStore(at, { scheme: "k8s", address: `${at.namespace}/${at.secret}#${at.key}`, tools });
};

class KubernetesStore extends AddressedStore<Address> implements Store {
  async check(): Promise<StoreFacts> {
    const { run } = await this.#kubectl("config view --minify --output", "jsonpath={.clusters[0].cluster.server}");
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

  /** A server-side dry run checks permissions, the namespace and conflicts. */
  async prepare(): Promise<StoreFacts> {
    const failure = await this.#apply("integ asks whether it may write here", { more: "--dry-run=server" });
    if (failure === undefined) return {};
    throw failure.kind === "conflict" ? new Failure("usage", failure.message, failure.details) : failure;
  }

  async look(): Promise<Found> {
    const { namespace, secret, key } = this.at;
    const words = `get secret ${secret} --namespace ${namespace} --ignore-not-found --output`;
    // kubectl prints nothing if the Secret does not exist.
    const path = `${versionPath}/{.data.${key.replaceAll(".", "\\.")}}`;
    const { run, stderr } = await this.#kubectl(words, `jsonpath=${path}`);
    if (run.status !== 0) throw this.#refusal(stderr, "be read");
    const [, version, value] = /^(\w+)\/(.*)$/s.exec(run.stdout.toString("utf8").trim()) ?? [];
    return value
      ? { is: "text", text: Buffer.from(value, "base64").toString("utf8"), version }
      : { is: "absent", version };
  }

  /**
   * The resource version guards against later changes. A missing Secret is first created empty, because `apply` would overwrite
   * a Secret that appears meanwhile.
   */
  async write(text: string, _facts: StoreFacts, over: Found): Promise<boolean> {
    let { version } = over;
    for (let attempt = 1; ; attempt += 1) {
      const made = version ?? (await this.#create());
      if (typeof made === "string") version = made;
      const failure = typeof made === "string" ? await this.#apply(text, { version: made }) : made;
      if (failure === undefined) return true;
      // If the write succeeded and its response was lost, the repetition conflicts, and the read below finds the secret.
      if (failure.kind === "unreachable" && attempt < tries) {
        await this.tools.sleep(500 * 2 ** attempt);
        continue;
      }
      const isChanged = failure.details.problem?.status === changedStatus;
      // Only a read shows the cause of a conflict, so a failed read fails the write.
      const found = isChanged ? await this.look() : await this.look().catch(() => undefined);
      if (found?.is === "text" && found.text === text) return true;
      if (isChanged) return false;
      throw failure;
    }
  }

  /** @returns the version of the new, empty Secret, or the failure */
  async #create(): Promise<string | Failure> {
    const words = `create --field-manager=integ-${this.at.key} --validate=false --filename - --output`;
    const { run, stderr } = await this.#kubectl(words, `jsonpath=${versionPath}`, this.#manifest());
    return run.status === 0 ? run.stdout.toString("utf8").trim() : this.#refusal(stderr, "be created");
  }

  #manifest(version?: string, data?: Readonly<Record<string, string>>): string {
    const { namespace, secret: name } = this.at;
    const metadata = { name, namespace, resourceVersion: version };
    return JSON.stringify({ apiVersion: "v1", kind: "Secret", metadata, data });
  }

  async #apply(
    text: string,
    { version, more = "" }: { readonly version?: string; readonly more?: string },
  ): Promise<Failure | undefined> {
    const { key } = this.at;
    const manifest = this.#manifest(version, { [key]: Buffer.from(text).toString("base64") });
    const words = `apply --server-side --field-manager=integ-${key} --validate=false ${more} --filename -`;
    const { run, stderr } = await this.#kubectl(words, "", manifest);
    return run.status === 0 ? undefined : this.#refusal(stderr, "be written");
  }

  /** @param words need no quotes in a shell. @param path the last word, which is quoted here */
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

  /** Omits kubectl's error, which may contain the secret, except the name of a field manager. */
  #refusal(stderr: string, what: string): Failure {
    const manager = /conflict with "([^"\n]{1,128})"/.exec(stderr)?.[1];
    if (manager !== undefined)
      return new Failure("conflict", `${this.name}: the key is managed by ${manager}, and is not overwritten.`, {
        hint: `Name another key. If ${manager} no longer needs this one, remove it there and run the command again.`,
      });
    if (/Operation cannot be fulfilled|\(AlreadyExists\)/.test(stderr))
      return new Failure("conflict", `${this.name}: the Secret was changed meanwhile.`, {
        problem: { status: changedStatus },
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
