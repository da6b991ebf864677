// TLS of a connection to the server of a team's journal: what pg hands to Node's tls module.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { createSecureContext, type ConnectionOptions } from "node:tls";
import { Failure } from "../../errors.ts";
import { type Advice, shell } from "../../next-step.ts";
import { type Address, type Host, isLocal, type TlsFile } from "./address.ts";

/**
 * The server's certificate and its name are always checked.
 * @returns false for a plain connection, which never leaves this machine
 * @throws Failure `usage` for a file that cannot be read or used
 */
export function tlsTo(
  host: Host,
  { isEncrypted, files }: Pick<Address, "isEncrypted" | "files">,
): false | ConnectionOptions {
  if (host.name.startsWith("/") || !(isEncrypted ?? !isLocal(host))) return false;
  const { sslcert, sslkey } = files;
  if ((sslcert === undefined) !== (sslkey === undefined))
    throw refused("sslcert and sslkey are set together, or neither", "Set both, or none of them.");
  // "system" is libpq's name for the authorities that the system trusts.
  const sslrootcert = files.sslrootcert === "system" ? undefined : files.sslrootcert;
  const ca = sslrootcert && contentOf("sslrootcert", sslrootcert, certificateIn);
  const cert = sslcert && contentOf("sslcert", sslcert, certificateIn);
  const key = sslkey && contentOf("sslkey", sslkey, createPrivateKey);
  if (sslkey) assertPrivate(sslkey);
  const options = { rejectUnauthorized: true, ...(ca && { ca }), ...(cert && key && { cert, key }) };
  try {
    createSecureContext(options);
  } catch (error) {
    throw refused(
      `sslcert and sslkey do not fit together (${wordsOf(error)})`,
      "Set them to a certificate and its private key.",
    );
  }
  return options;
}

/** @throws for a file that is not in PEM form; as bytes, one in DER form would be read too, which tls does not trust. */
function certificateIn(content: Buffer): X509Certificate {
  return new X509Certificate(content.toString("latin1"));
}

function contentOf(parameter: TlsFile, path: string, check: (content: Buffer) => unknown): Buffer {
  let content: Buffer;
  try {
    content = readFileSync(path);
  } catch (error) {
    throw refused(
      `the file of ${parameter} cannot be read: ${wordsOf(error)}`,
      `Set ${parameter} to a file in PEM form.`,
    );
  }
  try {
    check(content);
    return content;
  } catch (error) {
    throw refused(
      `${path}, named by ${parameter}, cannot be used (${wordsOf(error)})`,
      `Set ${parameter} to a file in PEM form${parameter === "sslkey" ? " that has no passphrase" : ""}.`,
    );
  }
}

/** As libpq: a group may read a key that belongs to the superuser. */
function assertPrivate(path: string): void {
  const { mode, uid } = statSync(path);
  if (process.platform === "win32" || (mode & (uid === 0 ? 0o037 : 0o077)) === 0) return;
  throw refused(
    `the private key ${path} can be read by others`,
    `Remove the access of others: ${shell`chmod 600 ${path}`}`,
  );
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function refused(what: string, hint: Advice): Failure {
  return new Failure("usage", `The journal's server cannot be connected to: ${what}.`, {
    meaning: "Nothing was sent and nothing changed.",
    hint,
  });
}
