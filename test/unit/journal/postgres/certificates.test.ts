// The certificates of a connection to a team's journal: what does not fit is said before anything is connected.
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { Failure } from "../../../../src/errors.ts";
import { readAddress } from "../../../../src/journal/postgres/address.ts";
import { protection } from "../../../../src/journal/postgres/certificates.ts";
import { makeAuthority, opensslAbsent } from "../../../support/certificates.ts";

describe.skipIf(opensslAbsent !== undefined)("the files of a connection", () => {
  const folder = mkdtempSync(join(tmpdir(), "integ-test-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const at = (name: string): string => join(folder, name);
  let root = "";

  const write = (name: string, text: string | Buffer, mode = 0o600): void => {
    writeFileSync(at(name), text, { mode });
    chmodSync(at(name), mode);
  };

  beforeAll(() => {
    const authority = makeAuthority(folder);
    root = authority.path;
    const [one, other] = [authority.sign(["DNS:one"]), authority.sign(["DNS:other"])];
    write("one.crt", one.cert);
    write("one.key", one.key);
    write("open.key", one.key, 0o644);
    write("other.key", other.key);
    write("garbage", "no certificate\n");
    write("empty", "");
    write("half.pem", `${one.cert}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`);
    execFileSync("openssl", ["x509", "-in", at("one.crt"), "-outform", "der", "-out", at("one.der")]);
    const sealing = ["pkcs8", "-topk8", "-in", at("one.key"), "-passout", "pass:of-a-test", "-out", at("sealed.key")];
    execFileSync("openssl", sealing);
    chmodSync(at("sealed.key"), 0o600);
  });

  const ask = (query: string, home = "/nonexistent") => {
    const text = `postgresql://db.example/d?${query.replaceAll("@", `${folder}/`)}`;
    return protection({ name: "db.example", port: 5432 }, readAddress(text, { env: {} }), home);
  };

  it.each<[query: string, says: string, hint: string | RegExp]>([
    [
      "sslrootcert=@garbage",
      "named by sslrootcert, has no certificate in PEM form",
      "Set sslrootcert to a file in PEM form.",
    ],
    ["sslrootcert=@empty", "has no certificate in PEM form", "Set sslrootcert to a file in PEM form."],
    ["sslrootcert=@one.key", "has no certificate in PEM form", "Set sslrootcert to a file in PEM form."],
    ["sslrootcert=@half.pem", "has no certificate in PEM form", "Set sslrootcert to a file in PEM form."],
    ["sslrootcert=@one.der", "has no certificate in PEM form", /openssl x509 -inform der -in .*one\.der -out <file>$/],
    ["sslrootcert=@", "The file of sslrootcert cannot be read: EISDIR", "Set sslrootcert to a file in PEM form."],
    ["sslcert=@one.crt", "sslcert is set and sslkey is not", /^Set sslkey /],
    ["sslkey=@one.key", "sslkey is set and sslcert is not", /^Set sslcert /],
    ["sslcert=@none&sslkey=@one.key", "The file of sslcert cannot be read: ENOENT", /^Set sslcert /],
    ["sslcert=@one.crt&sslkey=@none", "The file of sslkey cannot be read: ENOENT", /^Set sslkey /],
    ["sslcert=@garbage&sslkey=@one.key", "named by sslcert, has no certificate in PEM form", /^Set sslcert /],
    ["sslcert=@one.key&sslkey=@one.crt", "named by sslcert, has no certificate in PEM form", /^Set sslcert /],
    ["sslcert=@one.crt&sslkey=@garbage", "named by sslkey, has no private key in PEM form", /^Set sslkey /],
    ["sslcert=@one.crt&sslkey=@one.crt", "named by sslkey, has no private key in PEM form", /^Set sslkey /],
    ["sslcert=@one.crt&sslkey=@sealed.key", "needs a passphrase", /openssl pkey -in .*sealed\.key -out <file>\)$/],
    ["sslcert=@one.crt&sslkey=@open.key", "open.key can be read by others", /: chmod 600 .*open\.key$/],
    ["sslcert=@one.crt&sslkey=@other.key", "other.key is not that of the certificate", /belong together\.$/],
  ])("%s", (query, says, hint) => {
    let refusal: unknown;
    try {
      ask(query);
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toBeInstanceOf(Failure);
    const { kind, message, details } = refusal as Failure;
    expect(kind).toBe("usage");
    expect(message).toContain(says);
    expect(details.meaning).toBe("Nothing was sent and nothing changed.");
    expect(details.hint).toEqual(typeof hint === "string" ? hint : expect.stringMatching(hint));
  });

  it("are those of the address, or of the person's folder", () => {
    const named = ask(`sslrootcert=${root}&sslcert=@one.crt&sslkey=@one.key`);
    expect(named).toMatchObject({ rejectUnauthorized: true, ca: expect.any(Buffer), key: expect.any(Buffer) });
    expect(ask("", folder)).toEqual({ rejectUnauthorized: true });
    mkdirSync(at(".postgresql"));
    const { cert, key } = named as { cert: Buffer; key: Buffer };
    write(".postgresql/postgresql.crt", cert);
    write(".postgresql/postgresql.key", key);
    expect(ask("", folder)).toEqual({ rejectUnauthorized: true, cert, key });
  });

  describe("a connection", () => {
    const [far, near, loop, socket] = ["db.example", "localhost", "127.0.0.1", "/run/pg"];
    const home = (): string => at("with-root");
    beforeAll(() => {
      mkdirSync(join(home(), ".postgresql"), { recursive: true });
      writeFileSync(join(home(), ".postgresql", "root.crt"), readFileSync(root));
    });

    it.each<[host: string, mode: string, home: "own" | "none", expected: false | { strict: boolean; named: boolean }]>([
      [near, "", "none", false],
      [loop, "", "own", false],
      [near, "disable", "own", false],
      [near, "allow", "own", false],
      [loop, "prefer", "own", false],
      [socket, "verify-full", "own", false],
      [near, "require", "none", { strict: false, named: true }],
      [near, "require", "own", { strict: true, named: true }],
      [far, "require", "none", { strict: true, named: true }],
      [far, "require", "own", { strict: true, named: true }],
      [far, "", "none", { strict: true, named: true }],
      [far, "", "own", { strict: true, named: true }],
      [near, "verify-ca", "none", { strict: true, named: true }],
      [near, "verify-ca", "own", { strict: true, named: false }],
      [far, "verify-ca", "none", { strict: true, named: true }],
      [far, "verify-ca", "own", { strict: true, named: false }],
      [far, "verify-full", "none", { strict: true, named: true }],
      [near, "verify-full", "own", { strict: true, named: true }],
    ])("to %s with sslmode %j and the authorities of a home (%s)", (name, mode, of, expected) => {
      const address = readAddress(`postgresql://${encodeURIComponent(name)}/d?sslmode=${mode}`, { env: {} });
      const found = protection({ name, port: 5432 }, address, of === "own" ? home() : "/nonexistent");
      if (expected === false) {
        expect(found).toBe(false);
        return;
      }
      const ca = of === "own" ? { ca: readFileSync(root) } : {};
      const check = expected.named ? {} : { checkServerIdentity: expect.any(Function) };
      expect(found).toStrictEqual({ rejectUnauthorized: expected.strict, ...ca, ...check });
      if (!expected.named) expect((found as { checkServerIdentity(): unknown }).checkServerIdentity()).toBeUndefined();
    });

    it("trusts the public authorities where the address says so, whatever the home has", () => {
      expect(ask("sslrootcert=system", home())).toStrictEqual({ rejectUnauthorized: true });
    });
  });

  describe("a private key", () => {
    const isTaken = (mode: number, owner?: number): boolean => {
      write("some.key", readFileSync(at("one.key")), mode);
      if (owner !== undefined) chownSync(at("some.key"), owner, owner);
      try {
        ask("sslcert=@one.crt&sslkey=@some.key");
        return true;
      } catch (error) {
        expect((error as Failure).message).toContain("some.key can be read by others");
        return false;
      } finally {
        rmSync(at("some.key"));
      }
    };
    const isSuperuser = process.getuid?.() === 0;

    it.each([0o600, 0o700, 0o400])("with the mode %o is for its owner alone", (mode) => {
      expect(isTaken(mode)).toBe(true);
    });

    it.each([0o604, 0o602, 0o601, 0o620, 0o610, 0o660])("with the mode %o is refused", (mode) => {
      expect(isTaken(mode)).toBe(false);
    });

    it("of the superuser may be read by a group, and no other one", () => {
      expect(isTaken(0o640)).toBe(isSuperuser);
      if (isSuperuser) expect(isTaken(0o640, 65_534)).toBe(false);
    });

    it("has no mode on Windows", () => {
      const { platform } = process;
      onTestFinished(() => void Object.defineProperty(process, "platform", { value: platform }));
      Object.defineProperty(process, "platform", { value: "win32" });
      expect(isTaken(0o644)).toBe(true);
    });
  });
});
