// Tests credentials in a real gnome-keyring on a real message bus.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Ended, Home, isOtherBinary } from "../support/program.ts";
import { type Keyring, startKeyring } from "../support/keyring.ts";
import { serviceOfFile } from "../support/service.ts";
import { isMissing } from "../support/tools.mjs";

const isSkipped = isOtherBinary("the keychain, which needs the package's native library") || isMissing("a keyring");

const service = await serviceOfFile();
let at: Home;
let keyring: Keyring | undefined;
let server: Server | undefined;

beforeEach(() => {
  at = new Home();
});

afterEach(async () => {
  await keyring?.end();
  keyring = undefined;
  server?.close();
  server = undefined;
  at.remove();
});

async function logIn(): Promise<Keyring> {
  keyring = await startKeyring(at.folder);
  Object.assign(at.env, keyring.env);
  return keyring;
}

function add(name: string): Promise<Ended> {
  const where = ["--region", "us", "--base-url", service.us.base_url];
  const words = ["profiles", "add", "--no-verify", name, ...where, "--api-key-stdin", "--json"];
  return at.integ(words, { input: `${service.us.api_key}\n` });
}

const keptIn = ({ stdout }: Ended): string =>
  (JSON.parse(stdout) as { credential: { kept_in: string } }).credential.kept_in;

const read = (name: string): Promise<Ended> => at.integ(["entities", "list", "-p", name, "--json"]);

function filesWithKey(): string[] {
  return ["config", "state"]
    .filter((folder) => existsSync(at.path(folder)))
    .flatMap((folder) =>
      readdirSync(at.path(folder), { recursive: true, encoding: "utf8" })
        .map((name) => at.path(folder, name))
        .filter((path) => statSync(path).isFile() && readFileSync(path, "utf8").includes(service.us.api_key)),
    );
}

describe.skipIf(isSkipped)("an unlocked keyring", () => {
  it("keeps the key, provides it at each use, and loses it with its profile", async () => {
    const { items } = await logIn();
    const added = await add("p");
    expect([added.code, keptIn(added), added.stderr]).toEqual([0, "keychain", expect.not.stringContaining("keychain")]);
    // The probe leaves no item: the only item is the key.
    expect([items(), filesWithKey(), existsSync(at.path("config", "credentials"))]).toEqual([1, [], false]);
    expect((await read("p")).code).toBe(0);
    await add("q");
    expect(items()).toBe(2);
    await at.integ(["profiles", "remove", "p", "--yes"]);
    expect(items()).toBe(1);
    const edited = await at.integ(["profiles", "edit", "q", "--base-url", service.eu.base_url]);
    expect([edited.code, items()], edited.stderr).toEqual([0, 0]);
  });

  it("still has the key in the next session", async () => {
    const first = await logIn();
    await add("p");
    await first.end();
    expect((await read("p")).code).toBe(3);
    await logIn();
    expect((await read("p")).code).toBe(0);
  });

  it("keeps the keys of two profiles apart", async () => {
    await logIn();
    await add("p");
    const words = [
      ["profiles", "add", "bad", "--no-verify", "--region", "us", "--base-url", service.us.base_url],
      ["--api-key-stdin"],
    ].flat();
    expect((await at.integ(words, { input: "another-key\n" })).code).toBe(0);
    expect([(await read("bad")).code, (await read("p")).code]).toEqual([3, 0]);
  });
});

describe.skipIf(isSkipped)("a locked keyring that is not unlocked", () => {
  it("makes commands fail soon, and no other credential is used instead", async () => {
    const { lock } = await logIn();
    await add("p");
    lock();
    const { code, stderr } = await read("p");
    expect([code, stderr]).toEqual([3, expect.stringMatching(/keychain did not return[\s\S]*Unlock the keychain/)]);
  });

  it("is replaced by a file: reported once, remembered, and not probed again for a day", async () => {
    const { lock, items } = await logIn();
    await add("p");
    lock();
    for (const name of ["q", "r"]) {
      const added = await add(name);
      expect([added.code, keptIn(added)]).toEqual([0, "file"]);
      const note = /The keychain is not available \(.+\): credentials are kept in .*credentials/;
      expect(note.test(added.stderr)).toBe(name === "q");
      expect((await read(name)).code).toBe(0);
    }
    expect(JSON.parse(readFileSync(at.path("config", "keychain.json"), "utf8"))).toMatchObject({ keychain: "absent" });
    expect(items()).toBe(1);
  });
});

describe.skipIf(isSkipped)("a missing keyring", () => {
  it("is reported once, with the file that replaces it", async () => {
    for (const name of ["p", "q"]) {
      const added = await add(name);
      expect([added.code, keptIn(added)]).toEqual([0, "file"]);
      expect(added.stderr.includes("The keychain is not available")).toBe(name === "p");
    }
    expect((await read("p")).code).toBe(0);
  });

  it("is assumed within seconds if the message bus never replies, and the next command does not wait", async () => {
    let connections = 0;
    server = createServer((socket) => void (connections++, socket.on("error", () => {})));
    await new Promise<void>((resolve) => server!.listen(at.path("bus"), resolve));
    at.env.DBUS_SESSION_BUS_ADDRESS = `unix:path=${at.path("bus")}`;
    const added = await add("p");
    expect([added.code, keptIn(added)]).toEqual([0, "file"]);
    expect(added.stderr).toContain("no response within 5 s");
    const before = connections;
    expect(keptIn(await add("q"))).toBe("file");
    expect([before > 0, connections]).toEqual([true, before]);
  });

  it("can be interrupted by Ctrl-C while it is awaited", async () => {
    const { end } = await logIn();
    await add("p");
    await end();
    let connect = (): void => {};
    const connected = new Promise<void>((resolve) => (connect = resolve));
    server = createServer((socket) => {
      socket.on("error", () => {});
      connect();
    });
    await new Promise<void>((resolve) => server!.listen(at.path("bus"), resolve));
    const child = at.start(["entities", "list", "-p", "p"], {
      env: { DBUS_SESSION_BUS_ADDRESS: `unix:path=${at.path("bus")}` },
    });
    await connected;
    child.kill("SIGINT");
    expect(await new Promise((resolve) => child.on("close", resolve))).toBe(130);
  });
});
