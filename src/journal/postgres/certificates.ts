// How a connection to the server of a team's journal is protected, and the certificates for that: they are read and checked
// before anything is connected, and as strictly as libpq does it.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { existsSync, readFileSync, statSync, type Stats } from "node:fs";
import { join } from "node:path";
import type { ClientConfig } from "pg/lib/client.js";
import { Failure } from "../../errors.ts";
import { type Advice, shell } from "../../next-step.ts";
import { type Address, type Host, sslModeOf } from "./address.ts";

type Parameter = "sslrootcert" | "sslcert" | "sslkey";

/**
 * `require` is as `verify-full` off this machine: a check of certificates is never left out there.
 * @throws Failure `usage` for a file that cannot be read or does not fit
 */
export function protection(host: Host, address: Address, home: string): ClientConfig["ssl"] {
  const mode = sslModeOf(address, host);
  if (mode === "disable" || mode === "allow" || mode === "prefer") return false;
  const standard = join(home, ".postgresql", "root.crt");
  const file = address.rootCertificate ?? (existsSync(standard) ? standard : "system");
  const ca = file === "system" ? undefined : authority(file);
  const local = sslModeOf({ sslMode: undefined }, host) === "disable";
  return {
    rejectUnauthorized: !(mode === "require" && local && ca === undefined),
    ...(ca === undefined ? {} : { ca }),
    ...ownCertificate(address, home),
    // Of an authority of one's own every certificate is one's own; of the public ones anyone has one.
    ...(mode === "verify-ca" && ca !== undefined ? { checkServerIdentity: () => undefined } : {}),
  };
}

/** Without this, a file with no certificate in it would be one more authority that the server's is not of. */
function authority(path: string): Buffer {
  const content = contentOf("sslrootcert", path);
  const blocks = content
    .toString("latin1")
    .match(/-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----[^-]*-----END [^-]*-----/g);
  if (blocks === null) throw noCertificate("sslrootcert", path, content);
  for (const block of blocks) assertCertificate("sslrootcert", { path, content: Buffer.from(block, "latin1") });
  return content;
}

/** What this side shows of itself: of the address, or where libpq keeps it. */
function ownCertificate(address: Address, home: string): { cert: Buffer; key: Buffer } | undefined {
  const standard = (name: string): string => join(home, ".postgresql", name);
  const certPath =
    address.certificate ?? (existsSync(standard("postgresql.crt")) ? standard("postgresql.crt") : undefined);
  if (certPath === undefined) {
    if (address.key === undefined) return undefined;
    throw refused("sslkey is set and sslcert is not", "Set sslcert to the file of the certificate of that key.");
  }
  const cert = contentOf("sslcert", certPath);
  const certificate = assertCertificate("sslcert", { path: certPath, content: cert });
  const keyPath = address.key ?? standard("postgresql.key");
  if (address.key === undefined && !existsSync(keyPath))
    throw refused("sslcert is set and sslkey is not", "Set sslkey to the file of the certificate's private key.");
  const key = privateKey(keyPath);
  if (!certificate.checkPrivateKey(createPrivateKey(key)))
    throw refused(
      `the private key ${keyPath} is not that of the certificate ${certPath}`,
      "Set sslcert and sslkey to files that belong together.",
    );
  return { cert, key };
}

function privateKey(path: string): Buffer {
  const content = contentOf("sslkey", path);
  if (process.platform !== "win32") assertPrivate(path);
  try {
    createPrivateKey(content);
    return content;
  } catch {
    if (/ENCRYPTED/.test(content.toString("latin1")))
      throw refused(
        `the private key ${path} needs a passphrase, which cannot be asked for`,
        `Write a copy without it: ${shell`(umask 077; openssl pkey -in ${path} -out <file>)`}`,
      );
    throw refused(`${path}, named by sslkey, has no private key in PEM form`, "Set sslkey to a file in PEM form.");
  }
}

/** As libpq: a key of one's own for oneself alone; one of the superuser may be read by a group. */
function assertPrivate(path: string): void {
  const { mode, uid }: Stats = statSync(path);
  if ((mode & (uid === 0 ? 0o037 : 0o077)) === 0) return;
  throw refused(
    `the private key ${path} can be read by others`,
    `Remove the access of others: ${shell`chmod 600 ${path}`}`,
  );
}

function assertCertificate(
  parameter: Parameter,
  { path, content }: { readonly path: string; readonly content: Buffer },
): X509Certificate {
  try {
    return new X509Certificate(content.toString("latin1"));
  } catch {
    throw noCertificate(parameter, path, content);
  }
}

function noCertificate(parameter: Parameter, path: string, content: Buffer): Failure {
  // DER begins with a sequence.
  const step: Advice =
    content[0] === 0x30
      ? `Write it in PEM form: ${shell`openssl x509 -inform der -in ${path} -out <file>`}`
      : `Set ${parameter} to a file in PEM form.`;
  return refused(`${path}, named by ${parameter}, has no certificate in PEM form`, step);
}

function contentOf(parameter: Parameter, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    const why = error instanceof Error ? error.message : "";
    throw new Failure("usage", `The file of ${parameter} cannot be read: ${why}.`, {
      meaning: "Nothing was sent and nothing changed.",
      hint: `Set ${parameter} to a file in PEM form.`,
    });
  }
}

function refused(what: string, hint: Advice): Failure {
  return new Failure("usage", `The journal's server cannot be connected to: ${what}.`, {
    meaning: "Nothing was sent and nothing changed.",
    hint,
  });
}
