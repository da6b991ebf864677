// Reads the address of a team's journal: a PostgreSQL URL, completed by the PG* variables.
import { parse } from "pg-connection-string";
import { Failure } from "../../errors.ts";
import type { Advice } from "../../next-step.ts";
import { nothingSent } from "../store.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Host {
  /** A name, an IP address, or the folder of a Unix socket. */
  readonly name: string;
  readonly port: number;
}

export interface Address {
  readonly shown: string;
  readonly hosts: readonly Host[];
  readonly user: string | undefined;
  readonly database: string | undefined;
  /** The password of the address or of PGPASSWORD. A password file is read only when the server asks. */
  readonly password: string | undefined;
  /** If undefined, only connections to other machines are encrypted. */
  readonly isEncrypted: boolean | undefined;
  readonly files: Readonly<Record<"sslrootcert" | "sslcert" | "sslkey", string | undefined>>;
  readonly mustBeWritable: boolean;
  readonly schema: string;
  readonly applicationName: string;
}

const parameters = {
  host: "PGHOST",
  port: "PGPORT",
  dbname: "PGDATABASE",
  user: "PGUSER",
  password: "PGPASSWORD",
  sslmode: "PGSSLMODE",
  sslrootcert: "PGSSLROOTCERT",
  sslcert: "PGSSLCERT",
  sslkey: "PGSSLKEY",
  target_session_attrs: "PGTARGETSESSIONATTRS",
  options: "PGOPTIONS",
  application_name: "PGAPPNAME",
} as const;
type Parameter = keyof typeof parameters;

const shape = /^(postgres(?:ql)?:\/\/(?:[^@/?#]*@)?)([^@/?#]*)(\/[^?#]*)?(?:\?([^@#]*))?$/;

/** The address without its password: the only form for messages, logs and files. */
export function shownAddress(text: string): string {
  const [, scheme, rest = ""] = /^([a-z][a-z0-9+.-]*:\/\/)(.*)$/is.exec(text) ?? [];
  if (scheme === undefined) return text;
  // An unencoded password may contain / # : or @. With an @ after a ?, which is refused, any part may be the password.
  const [authority = "", query = ""] = rest.split(/\?(.*)/s);
  if (query.includes("@")) return `${scheme}${authority.split(/[:/@#]/)[0]}…`;
  const at = authority.lastIndexOf("@");
  const user = at < 0 ? "" : `${authority.slice(0, at).split(":")[0]}@`;
  const isSecret = (part: string): boolean => [...new URLSearchParams(part).keys()].some((name) => /pass/i.test(name));
  const kept = query.split("&").filter((part) => part !== "" && !isSecret(part));
  return `${scheme}${user}${authority.slice(at + 1)}${kept.length === 0 ? "" : `?${kept.join("&")}`}`;
}

/**
 * @param around.env PG* variables give the defaults
 * @param around.user the role if neither the address nor a variable names one
 * @throws Failure `usage` for an invalid address or variable
 */
export function readAddress(text: string, around: { readonly env: Environment; readonly user?: string }): Address {
  const { env } = around;
  if (!/^postgres(?:ql)?:\/\//.test(text)) throw invalid("it does not begin with postgresql://");
  const [, start = "", authority = "", path = "", query = ""] = shape.exec(text) ?? [];
  if (start === "" || /\s$|[\r\n\t]|%(?![0-9a-f]{2})|%00/i.test(text)) throw invalid(unreadableWords);
  const servers = authority.split(",").map((host) => parsed(`${start}${host}${path}`));
  const given = parametersIn(query);
  const value = (name: Parameter, fromAddress?: string | null): string | undefined =>
    given[name] || fromAddress || env[parameters[name]] || undefined;
  const hosts = servers.map(({ host, port }) => ({
    name: value("host", host) ?? "localhost",
    port: portIn(value("port", port) ?? "5432"),
  }));
  const { user, password, database } = servers[0]!;
  if (env.PGSERVICE && !given.host && !servers[0]?.host && !env.PGHOST) throw invalid("PGSERVICE is not supported");
  const attributes = value("target_session_attrs") ?? (hosts.length > 1 ? "read-write" : "any");
  if (!["any", "read-write"].includes(attributes)) throw invalid("target_session_attrs is read-write or any");
  return {
    shown: shownAddress(text),
    hosts,
    user: value("user", user) ?? around.user,
    database: value("dbname", database),
    password: value("password", password),
    isEncrypted: isEncrypted(value("sslmode"), hosts),
    files: { sslrootcert: value("sslrootcert"), sslcert: value("sslcert"), sslkey: value("sslkey") },
    mustBeWritable: attributes === "read-write",
    schema: schemaIn(given.options, env.PGOPTIONS),
    applicationName: value("application_name") ?? "integ",
  };
}

const unreadableWords =
  "it cannot be read; a port is a number from 1 to 65535, an IPv6 address is in [ ], and any other % @ / ? # is written as %25 %40 %2F %3F %23";

/** The message does not quote the address: in a mistyped one, any part may be the password. */
function invalid(what: string, hint?: Advice): Failure {
  return new Failure("usage", `The address of the journal cannot be used: ${what}.`, {
    meaning: nothingSent,
    hint: hint ?? "Set INTEG_JOURNAL to postgresql://<user>@<host>:<port>/<database>.",
  });
}

function parsed(address: string): ReturnType<typeof parse> {
  try {
    return parse(address);
  } catch {
    throw invalid(unreadableWords);
  }
}

function parametersIn(query: string): Partial<Record<Parameter, string>> {
  // Unlike a form, a PostgreSQL URL does not encode a space as +.
  const given = Object.fromEntries(new URLSearchParams(query.replaceAll("+", "%2B")));
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(parameters, name));
  if (unknown === undefined) return given;
  // A name of another form may be part of a secret, so the message omits it.
  const what = /^[\w-]{1,40}$/.test(unknown) ? ` "${unknown}"` : "";
  throw invalid(
    `the parameter${what} is not supported`,
    `Use these alone: ${Object.keys(parameters).join(", ")}; and PGPASSFILE for the path of a password file.`,
  );
}

function portIn(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > 65_535) throw invalid(unreadableWords);
  return port;
}

/** Of `options`, only a schema is allowed, because PgBouncer does not pass options on. */
function schemaIn(options = "", variable = ""): string {
  const [, , name] = /^\s*(?:-c\s*|--)search_path=("?)([\w$]+)\1(?:,[\w$",]*)?\s*$/.exec(options) ?? [];
  // PGOPTIONS must be empty, because pg would send it to the server.
  if (variable.trim() !== "" || (options.trim() !== "" && name === undefined))
    throw invalid(
      "of options only -c search_path=<schema> is supported, in the address and not in PGOPTIONS",
      "Name a schema with ?options=-c%20search_path%3D<schema>; set other settings for the role: ALTER ROLE … SET ….",
    );
  return name ?? "public";
}

export function isLocal({ name }: Host): boolean {
  return name.startsWith("/") || name === "localhost" || name === "::1" || /^127(?:\.\d{1,3}){3}$/.test(name);
}

/** `require` and `verify-ca` are as strict as `verify-full`: unlike libpq, integ always checks the certificate's name. */
function isEncrypted(sslmode: string | undefined, hosts: readonly Host[]): boolean | undefined {
  if (sslmode === undefined) return undefined;
  if (["require", "verify-ca", "verify-full"].includes(sslmode)) return true;
  if (!["disable", "allow", "prefer"].includes(sslmode))
    throw invalid("sslmode is one of disable, allow, prefer, require, verify-ca, verify-full");
  const far = hosts.find((host) => !isLocal(host));
  if (far === undefined) return false;
  throw new Failure("usage", `sslmode=${sslmode} would send the journal unprotected to ${far.name}.`, {
    meaning: `${nothingSent} Plain connections are for this machine only.`,
    hint: "Use sslmode=verify-full, with sslrootcert=<file> for an authority of your own.",
  });
}
