// A separate session with a real message bus and a real gnome-keyring, as on a desktop.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

export interface Keyring {
  readonly env: Readonly<Record<string, string>>;
  items(): number;
  /** The secret stored for an account of a service, read by another process. */
  secret(service: string, account: string): string;
  /** Later access needs the keyring's password. */
  lock(): void;
  end(): Promise<void>;
}

const collection = "/org/freedesktop/secrets/collection/login";
const script = `
printf a-password | gnome-keyring-daemon --unlock --components=secrets --foreground >/dev/null 2>&1 &
until dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.NameHasOwner \
  string:org.freedesktop.secrets 2>/dev/null | grep -q true; do sleep 0.1; done
echo "$DBUS_SESSION_BUS_ADDRESS"
read -r end
kill $!
`;

const reading = `const [library, service, account] = process.argv.slice(1);
const { Entry } = require(library);
process.stdout.write(new Entry(service, account, { linux: { store: "secret-service" } }).getPassword());`;

/** @param home a home folder, which keeps the keyring's secrets for later sessions */
export async function startKeyring(home: string): Promise<Keyring> {
  const runtime = join(home, "runtime");
  mkdirSync(runtime, { recursive: true, mode: 0o700 });
  const own = { PATH: process.env.PATH ?? "", HOME: home, XDG_RUNTIME_DIR: runtime };
  const session = spawn("dbus-run-session", ["--", "sh", "-c", script], {
    env: own,
    stdio: ["pipe", "pipe", "ignore"],
  });
  const ended = new Promise<void>((resolve) => session.on("close", () => resolve()));
  const address = await new Promise<string>((resolve, reject) => {
    session.stdout.once("data", (chunk: Buffer) => resolve(chunk.toString().trim()));
    session.on("error", reject).on("close", () => reject(new Error("the session ended before its keyring was there")));
  });
  const env = { ...own, DBUS_SESSION_BUS_ADDRESS: address };
  const send = (path: string, ...words: string[]): string => {
    const message = ["--session", "--print-reply", "--dest=org.freedesktop.secrets", path, ...words];
    const { status, stdout, stderr } = spawnSync("dbus-send", message, { env, encoding: "utf8" });
    if (status !== 0) throw new Error(`dbus-send ${words[0]}: ${stderr}`);
    return stdout;
  };
  return {
    env,
    items() {
      const words = ["string:org.freedesktop.Secret.Collection", "string:Items"];
      return send(collection, "org.freedesktop.DBus.Properties.Get", ...words).split("object path").length - 1;
    },
    secret(service, account) {
      const words = ["-e", reading, createRequire(import.meta.url).resolve("@napi-rs/keyring"), service, account];
      const { status, stdout, stderr } = spawnSync(process.execPath, words, { env, encoding: "utf8" });
      if (status !== 0) throw new Error(`the keyring cannot be read: ${stderr}`);
      return stdout;
    },
    lock: () =>
      void send("/org/freedesktop/secrets", "org.freedesktop.Secret.Service.Lock", `array:objpath:${collection}`),
    end: () => {
      session.stdin.end("\n");
      return ended;
    },
  };
}
