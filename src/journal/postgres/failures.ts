// Turns errors of the server or connection into Failures without the address's password.
import { Failure, type FailureKind } from "../../errors.ts";
import { type NextStep, shell, flags } from "../../next-step.ts";
import { nothingSent } from "../store.ts";

/** Reports that the connection failed or was lost. An interrupted statement may have taken effect. */
export class LostConnection extends Error {
  override readonly name = "LostConnection";
}

/** @param shownMs the limit in the message. @throws LostConnection after `limitMs` */
export async function withTimeout<T>(limitMs: number, work: Promise<T>, shownMs = limitMs): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const lost = new LostConnection(`no response within ${Math.ceil(shownMs / 1000)} s`);
    timer = setTimeout(() => reject(lost), limitMs);
  });
  return Promise.race([late, work]).finally(() => clearTimeout(timer));
}

/** @returns undefined for errors of the system, which have no `severity` */
export function serverErrorOf(error: unknown): { readonly code: string; readonly message: string } | undefined {
  if (!(error instanceof Error) || !("code" in error) || !("severity" in error)) return undefined;
  const { code, message } = error;
  return typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) ? { code, message } : undefined;
}

/** True for errors that the server did not send, and for its errors that end the session, as at a restart. */
export function endsConnection(error: unknown): boolean {
  const code = serverErrorOf(error)?.code;
  return code === undefined || /^(?:08|57P|25P0[34])/.test(code);
}

export const initCommand = shell`integ journal init`;

const initStep: NextStep = { nextCommand: initCommand };
const addressStep: NextStep = { hint: `Correct INTEG_JOURNAL, or ${flags.journal} of the profile.` };
const retryStep: NextStep = { hint: "Run the command again when the server is available." };

const refusals: readonly (readonly [code: RegExp, kind: FailureKind, what: string, step: NextStep])[] = [
  [/^28P01/, "usage", "refuses the password", { hint: "Set PGPASSWORD, or correct ~/.pgpass." }],
  [/^28/, "usage", "refuses the role", addressStep],
  [/^3D000/, "usage", "does not have the database", addressStep],
  [/^3F000|^42P01/, "usage", "has no journal in this database yet", initStep],
  [/^42703|^42883/, "usage", "has a journal of another version", initStep],
  [
    /^42501/,
    "usage",
    "does not permit this to the role",
    { hint: "Give the role what this command needs, or use another role for it." },
  ],
  [
    /^25006/,
    "unreachable",
    "is read-only (a standby, or default_transaction_read_only is on)",
    { hint: "Use the primary: several hosts with target_session_attrs=read-write find it." },
  ],
  [/^53100/, "unreachable", "has no space left on its disk", { hint: "Free space on the server's disk." }],
  [/^53300/, "unreachable", "has no connection left", retryStep],
  [/^(?:53|57|08|25|58|XX|40|55)/, "unreachable", "is not available now", retryStep],
];

/** @param shown the address without its password. @returns a Failure; errors that are bugs stay unchanged */
export function journalFailure(error: unknown, shown: string, meaning = nothingSent): unknown {
  if (error instanceof Failure) return error;
  if (error instanceof LostConnection)
    return new Failure("unreachable", `The journal ${shown} cannot be reached: ${error.message}.`, {
      meaning,
      hint: `Check that its server runs, and the address in INTEG_JOURNAL or ${flags.journal} of the profile.`,
    });
  const refusal = serverErrorOf(error);
  if (refusal === undefined) return error;
  const { code, message } = refusal;
  const [, kind, what, step] = refusals.find(([pattern]) => pattern.test(code)) ?? unknownRefusal;
  const sentence = `The server of the journal ${shown} ${what}: ${message} (SQLSTATE ${code}).`;
  return new Failure(kind, sentence, { meaning, ...step });
}

const unknownRefusal: (typeof refusals)[number] = [/./, "failed", "refuses", { nextCommand: shell`integ doctor` }];

const meanings: readonly (readonly [sentence: RegExp, words: string])[] = [
  [/^ECONNREFUSED/, "no server accepts connections there (connection refused)"],
  [/^(?:ENOTFOUND|EAI_AGAIN)/, "its host name is not known"],
  [/^(?:ENOENT|ENOTDIR)/, "its socket was not found"],
  [/^(?:EACCES|EPERM)/, "access to the socket is denied"],
  [/^(?:ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)/, "its host does not answer"],
  [/^(?:EINVAL|EADDRNOTAVAIL|EAFNOSUPPORT)/, "this machine has no network for that address"],
  [/^(?:ECONNRESET|EPIPE)|Connection terminated/, "the connection was closed"],
  [/does not support SSL/, "the server offers no TLS (ssl = off)"],
  [/error establishing an SSL connection/, "the server at this address is not PostgreSQL"],
  [/_ALERT_.*(?:CERT|UNKNOWN_CA)/, "the server does not accept the certificate that sslcert=<file> names:"],
  [/_ALERT_/, "the server ended the connection before it was encrypted:"],
  [/^ERR_TLS_CERT_ALTNAME/, "its certificate is for another name:"],
  [/CERT|SIGNED|ISSUER|SIGNATURE/, "its certificate is not trusted (sslrootcert=<file> names its authority):"],
];

export function connectionWords(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const sentence = `${"code" in error ? `${String(error.code)} ` : ""}${error.message}`;
  const words = meanings.find(([pattern]) => pattern.test(sentence))?.[1] ?? error.message;
  return words.endsWith(":") ? `${words} ${error.message}` : words;
}
