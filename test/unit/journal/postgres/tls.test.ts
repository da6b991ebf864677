import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Failure } from "../../../../src/errors.ts";
import { readAddress } from "../../../../src/journal/postgres/address.ts";
import { tlsTo } from "../../../../src/journal/postgres/tls.ts";
import { nothingSent } from "../../../../src/journal/store.ts";
import { makeAuthority } from "../../../support/certificates.ts";
import { isMissing } from "../../../support/tools.mjs";

const tlsAt = (host: string, query: string) => {
  const address = readAddress(`postgresql://${encodeURIComponent(host)}/d?${query}`, { env: {} });
  return tlsTo(address.hosts[0]!, address);
};

it.each([
  ["localhost", "", false],
  ["127.0.0.1", "disable", false],
  ["localhost", "allow", false],
  ["localhost", "prefer", false],
  ["/run/pg", "verify-full", false],
  ["localhost", "require", true],
  ["localhost", "verify-ca", true],
  ["localhost", "verify-full", true],
  ["db.example", "", true],
  ["db.example", "require", true],
  ["db.example", "verify-ca", true],
  ["db.example", "verify-full", true],
])("to %s with sslmode %j, certificate and name are checked: %s", (host, mode, isChecked) => {
  expect(tlsAt(host, `sslmode=${mode}`)).toEqual(isChecked && { rejectUnauthorized: true });
});

describe.skipIf(isMissing("openssl"))("the files of a connection", () => {
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
    execFileSync("openssl", ["x509", "-in", at("one.crt"), "-outform", "der", "-out", at("one.der")]);
    const sealing = ["pkcs8", "-topk8", "-in", at("one.key"), "-passout", "pass:of-a-test", "-out", at("sealed.key")];
    execFileSync("openssl", sealing);
    chmodSync(at("sealed.key"), 0o600);
  });

  const ask = (query: string) => tlsAt("db.example", query.replaceAll("@", `${folder}/`));
  it.each<[query: string, says: string | RegExp]>([
    ["sslrootcert=@garbage", /no start line|PEM|unsupported/i],
    ["sslrootcert=@empty", ""],
    ["sslrootcert=@one.key", ""],
    ["sslrootcert=@one.der", ""],
    ["sslrootcert=@", "EISDIR"],
    ["sslcert=@one.crt", "ENOENT"],
    ["sslkey=@one.key", "ENOENT"],
    ["sslcert=@none&sslkey=@one.key", "ENOENT"],
    ["sslcert=@one.crt&sslkey=@none", "ENOENT"],
    ["sslcert=@garbage&sslkey=@one.key", ""],
    ["sslcert=@one.key&sslkey=@one.crt", ""],
    ["sslcert=@one.crt&sslkey=@garbage", ""],
    ["sslcert=@one.crt&sslkey=@sealed.key", ""],
    ["sslcert=@one.crt&sslkey=@open.key", /open.key can be read by others \(chmod 600\)/],
    ["sslcert=@one.crt&sslkey=@other.key", /mismatch/],
  ])("%s", (query, says) => {
    let refusal: unknown;
    try {
      ask(query);
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toBeInstanceOf(Failure);
    const { kind, message, details } = refusal as Failure;
    expect([kind, details.meaning]).toEqual(["usage", nothingSent]);
    expect(message).toMatch(/^The certificates for the journal's server cannot be used: ./);
    expect(message).toMatch(says);
    expect(details.hint).toMatch(/^Set sslrootcert to a file in PEM form; sslcert and sslkey together/);
  });

  it("are those of the address; without an authority, the public ones are trusted", () => {
    const [ca, cert, key] = [readFileSync(root), readFileSync(at("one.crt")), readFileSync(at("one.key"))];
    expect(ask(`sslrootcert=${root}&sslcert=@one.crt&sslkey=@one.key`)).toEqual({
      rejectUnauthorized: true,
      ca,
      cert,
      key,
    });
    expect(ask("sslrootcert=system")).toEqual({ rejectUnauthorized: true });
    expect(tlsAt("localhost", "sslrootcert=/none")).toBe(false);
  });

  it.skipIf(process.platform === "win32")(
    "include a private key that only its owner can read, as libpq requires",
    () => {
      const isAccepted = (mode: number, owner?: number): boolean => {
        write("some.key", readFileSync(at("one.key")), mode);
        if (owner !== undefined) chownSync(at("some.key"), owner, owner);
        try {
          return ask("sslcert=@one.crt&sslkey=@some.key") !== false;
        } catch (error) {
          expect((error as Failure).message).toContain("some.key can be read by others");
          return false;
        } finally {
          rmSync(at("some.key"));
        }
      };
      expect([0o600, 0o700, 0o400].map((mode) => isAccepted(mode))).toEqual([true, true, true]);
      expect([0o604, 0o602, 0o601, 0o620, 0o610, 0o660].some((mode) => isAccepted(mode))).toBe(false);
      const isSuperuser = process.getuid?.() === 0;
      expect(isAccepted(0o640)).toBe(isSuperuser);
      if (isSuperuser) expect(isAccepted(0o640, 65_534)).toBe(false);
    },
  );
});
