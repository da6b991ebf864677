// What a server or a connection refuses, as a Failure: what is wrong, and what to do. Nothing of an address's password.
import { isAccessDenied, isMissing } from "../../disk/error-words.ts";
import { Failure, type FailureKind } from "../../errors.ts";
import { type NextStep, shell, flags } from "../../next-step.ts";

/** The connection broke, or the server ended it: whether the statement under way took effect is not known. */
export class LostConnection extends Error {
  override readonly name = "LostConnection";
}

interface ServerError {
  readonly code: string;
  readonly message: string;
  readonly constraint?: string;
}

/** A refusal by the server; its code has five characters, unlike those of the system. */
export function serverErrorOf(error: unknown): ServerError | undefined {
  if (!(error instanceof Error) || !("code" in error) || typeof error.code !== "string") return undefined;
  if (!/^[0-9A-Z]{5}$/.test(error.code) || !("severity" in error)) return undefined;
  const { code, message } = error;
  return "constraint" in error && typeof error.constraint === "string"
    ? { code, message, constraint: error.constraint }
    : { code, message };
}

/** Whether the server says that it ends the connection or cannot take one now: a failover, a restart, a crash. */
export function endsConnection(error: unknown): boolean {
  const code = serverErrorOf(error)?.code;
  return code === undefined || /^(?:08|57P|25P0[34])/.test(code);
}

interface Words {
  readonly kind: FailureKind;
  readonly what: (shown: string) => string;
  readonly step: NextStep;
}

export const initCommand = shell`integ journal init`;
const init: NextStep = { nextCommand: initCommand };

const fixAddress: NextStep = {
  hint: `Correct INTEG_JOURNAL, or ${flags.journal} of the profile.`,
};
const again: NextStep = { hint: "Run the command again when the server is available." };

const byCode: readonly (readonly [pattern: RegExp, words: Words])[] = [
  [
    /^28P01/,
    { kind: "usage", what: () => "refuses the password", step: { hint: "Set PGPASSWORD, or correct ~/.pgpass." } },
  ],
  [/^28/, { kind: "usage", what: () => "refuses the role", step: fixAddress }],
  [/^3D000/, { kind: "usage", what: () => "does not have the database", step: fixAddress }],
  [/^3F000/, { kind: "usage", what: () => "does not have the schema", step: init }],
  [/^42P01/, { kind: "usage", what: () => "has no journal in this database yet", step: init }],
  [/^42703|^42883/, { kind: "usage", what: () => "has a journal of another version", step: init }],
  [
    /^42501/,
    {
      kind: "usage",
      what: () => "does not permit this to the role",
      step: { hint: "Give the role what this command needs, or use another role for it." },
    },
  ],
  [
    /^25006/,
    {
      kind: "unreachable",
      what: () => "is read-only (a standby, or default_transaction_read_only is on)",
      step: { hint: "Use the primary: several hosts with target_session_attrs=read-write find it." },
    },
  ],
  [
    /^53100/,
    {
      kind: "unreachable",
      what: () => "has no space left on its disk",
      step: { hint: "Free space on the server's disk." },
    },
  ],
  [/^53300/, { kind: "unreachable", what: () => "has no connection left", step: again }],
  [/^(?:53|57|08|25|58|XX|40|55)/, { kind: "unreachable", what: () => "is not available now", step: again }],
];

/**
 * @param shown the address without its password
 * @returns the Failure for what a server refused or a connection met; what is neither (a bug) as it is
 */
export function journalFailure(
  error: unknown,
  shown: string,
  meaning = "Nothing was sent and nothing changed.",
): unknown {
  if (error instanceof Failure) return error;
  if (error instanceof LostConnection)
    return new Failure("unreachable", `The journal ${shown} cannot be reached: ${error.message}.`, {
      meaning,
      hint: `Check that its server runs, and the address in INTEG_JOURNAL or ${flags.journal} of the profile.`,
    });
  const refusal = serverErrorOf(error);
  if (refusal === undefined) return error;
  const words = byCode.find(([pattern]) => pattern.test(refusal.code))?.[1];
  const said = `${refusal.message} (SQLSTATE ${refusal.code})`;
  if (words === undefined)
    return new Failure("failed", `The server of the journal ${shown} refuses: ${said}.`, {
      meaning,
      nextCommand: shell`integ doctor`,
    });
  return new Failure(words.kind, `The server of the journal ${shown} ${words.what(shown)}: ${said}.`, {
    meaning,
    ...words.step,
  });
}

/** A connection that could not be made, in words. */
export function connectionWords(error: unknown): string {
  const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
  const message = error instanceof Error ? error.message : String(error);
  if (code === "ECONNREFUSED") return "no server accepts connections there (connection refused)";
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return "its host name is not known";
  if (isMissing(error) || code === "ENOTDIR") return "its socket was not found";
  if (isAccessDenied(error)) return "access to the socket is denied";
  if (code === "ETIMEDOUT" || code === "EHOSTUNREACH" || code === "ENETUNREACH") return "its host does not answer";
  if (code === "EINVAL" || code === "EADDRNOTAVAIL" || code === "EAFNOSUPPORT")
    return `this machine has no network for that address (${code})`;
  if (code === "ECONNRESET" || code === "EPIPE" || /Connection terminated/.test(message))
    return "the connection was closed";
  if (/does not support SSL/.test(message)) return "the server offers no TLS (ssl = off)";
  if (/error establishing an SSL connection/.test(message)) return "what answers there is not PostgreSQL";
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") return `its certificate is for another name${namesOf(error)}`;
  if (/_ALERT_/.test(code))
    return /CERT|UNKNOWN_CA/.test(code)
      ? `the server does not accept the certificate that sslcert=<file> names (${code})`
      : `the server ended the connection before it was encrypted (${code})`;
  if (/CERT|SIGNED|ISSUER|SIGNATURE/.test(code))
    return `its certificate is not trusted (${code}); sslrootcert=<file> names its authority`;
  return message;
}

/** The names that a certificate has, which the address should use. */
function namesOf(error: unknown): string {
  const cert = error instanceof Error && "cert" in error ? (error.cert as { subjectaltname?: unknown } | null) : null;
  return typeof cert?.subjectaltname === "string" ? ` (${cert.subjectaltname})` : "";
}
