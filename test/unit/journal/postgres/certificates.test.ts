// The certificates of a connection to a team's journal: what does not fit is said before anything is connected.
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
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
});
