// The operating system's keychain.
// Each request runs in its own process, which integ can kill: the library connects in a constructor, and a message bus
// that accepts the connection but never responds (seen on Linux) blocks timers and Ctrl-C. On Linux the entry is bound
// to the Secret Service, because the library's fallback, the kernel's key ring, is cleared at boot.
import { requireInstalled } from "../disk/installed-packages.ts";
import { childEnvironment } from "./child-environment.ts";
import type { Environment } from "./resolution.ts";

export type KeychainAnswer =
  | { readonly ok: true; readonly secret: string | null }
  | { readonly ok: false; readonly why: string };

export interface Keychain {
  set(account: string, secret: string): Promise<KeychainAnswer>;
  /** `secret` is null if there is no such entry. */
  get(account: string): Promise<KeychainAnswer>;
  delete(account: string): Promise<KeychainAnswer>;
  /** Writes, reads and deletes an entry to prove that the keychain works. */
  probe(account: string): Promise<KeychainAnswer>;
}

const childScript = `
const { AsyncEntry } = require(process.argv[1]);
let text = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (chunk) => (text += chunk));
process.stdin.on("end", () => answer(JSON.parse(text)).then(
  (secret) => reply({ ok: true, secret }),
  (error) => reply({ ok: false, why: String(error && error.message) }),
));
function reply(message) { process.stdout.write(JSON.stringify(message)); }
async function answer({ action, service, account, secret }) {
  const entry = new AsyncEntry(service, account, { linux: { store: "secret-service" } });
  if (action === "get") return (await entry.getPassword()) ?? null;
  if (action === "delete") { await entry.deletePassword(); return null; }
  await entry.setPassword(secret);
  if (action === "set") return null;
  const back = await entry.getPassword();
  await entry.deletePassword();
  if (back !== secret) throw new Error("it gave back something else than was put in");
  return null;
}`;

/** The limit is long, because a locked keychain may ask the user for a password. */
const requestLimitMs = 60_000;
const probeLimitMs = 5_000;

export interface KeychainOptions {
  readonly env: Environment;
  readonly service?: string;
  readonly library?: string;
  readonly requestLimitMs?: number;
  readonly probeLimitMs?: number;
  readonly signal?: AbortSignal;
}

function findLibrary(): string | undefined {
  try {
    return requireInstalled()?.resolve("@napi-rs/keyring");
  } catch {
    return undefined;
  }
}

function parseAnswer(text: string): KeychainAnswer {
  try {
    const reply: unknown = JSON.parse(text);
    if (typeof reply === "object" && reply !== null && "ok" in reply) {
      if (reply.ok === true && "secret" in reply && (typeof reply.secret === "string" || reply.secret === null)) {
        return { ok: true, secret: reply.secret };
      }
      if ("why" in reply && typeof reply.why === "string") return { ok: false, why: reply.why.replace(/\.$/, "") };
    }
  } catch {
    // The child process wrote no complete response: the library failed to load, or crashed.
  }
  return { ok: false, why: "the keychain library does not run here" };
}

async function ask(request: object, options: KeychainOptions & { readonly limitMs: number }): Promise<KeychainAnswer> {
  const library = options.library ?? findLibrary();
  if (library === undefined) return { ok: false, why: "the keychain library is not installed" };
  const { spawn } = await import("node:child_process");
  const { signal } = options;
  signal?.throwIfAborted();
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ["-e", childScript, library], {
      env: childEnvironment(options.env),
      stdio: ["pipe", "pipe", "ignore"],
      windowsHide: true,
    });
    const giveUp = (): void => {
      child.kill("SIGKILL");
      reject(signal!.reason as Error);
    };
    signal?.addEventListener("abort", giveUp, { once: true });
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      resolve({ ok: false, why: `no response within ${options.limitMs / 1000} s` });
    }, options.limitMs);
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    child.on("error", () => resolve({ ok: false, why: "its helper process could not be started" }));
    child.on("close", () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", giveUp);
      resolve(parseAnswer(text));
    });
    child.stdin.on("error", () => {});
    child.stdin.end(JSON.stringify({ service: options.service ?? "integ", ...request }));
  });
}

export function openKeychain(options: KeychainOptions): Keychain {
  const limited = { ...options, limitMs: options.requestLimitMs ?? requestLimitMs };
  return {
    set: (account, secret) => ask({ action: "set", account, secret }, limited),
    get: (account) => ask({ action: "get", account }, limited),
    delete: (account) => ask({ action: "delete", account }, limited),
    probe: (account) =>
      ask({ action: "probe", account, secret: account }, { ...options, limitMs: options.probeLimitMs ?? probeLimitMs }),
  };
}
