// Chooses the TLS options for the server of a team's journal.
import { X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { createSecureContext, type ConnectionOptions } from "node:tls";
import { Failure, reasonOf } from "../../errors.ts";
import { nothingSent } from "../store.ts";
import { type Address, type Host, isLocal } from "./address.ts";

/**
 * Always checks the certificate's name.
 * @returns false for a plain connection, which never leaves this machine
 * @throws Failure `usage` for unusable certificate files
 */
export function tlsTo(
  host: Host,
  { isEncrypted, files: { sslrootcert, sslcert, sslkey } }: Pick<Address, "isEncrypted" | "files">,
): false | ConnectionOptions {
  if (host.name.startsWith("/") || !(isEncrypted ?? !isLocal(host))) return false;
  try {
    // "system" is libpq's name for the system's certificate authorities.
    const ca = sslrootcert && sslrootcert !== "system" ? readFileSync(sslrootcert) : undefined;
    // Throws if the file is not in PEM form, which Node would ignore.
    if (ca) void new X509Certificate(ca.toString("latin1"));
    if (sslkey) assertPrivate(sslkey);
    const own = sslcert || sslkey ? { cert: readFileSync(sslcert ?? ""), key: readFileSync(sslkey ?? "") } : {};
    const options = { rejectUnauthorized: true, ...(ca && { ca }), ...own };
    createSecureContext(options);
    return options;
  } catch (error) {
    throw new Failure("usage", `The certificates for the journal's server cannot be used: ${reasonOf(error)}.`, {
      meaning: nothingSent,
      hint: "Set sslrootcert to a file in PEM form; sslcert and sslkey together, to a certificate and its private key without a passphrase.",
    });
  }
}

/** Like libpq, allows a group to read a key file that belongs to root. */
function assertPrivate(path: string): void {
  const { mode, uid } = statSync(path);
  if (process.platform !== "win32" && (mode & (uid === 0 ? 0o037 : 0o077)) !== 0)
    throw new Error(`the private key ${path} can be read by others (chmod 600)`);
}
