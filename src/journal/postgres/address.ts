// The address of a team's journal, read as libpq reads it: a URL, what the PG* variables add, and the defaults. Pure.
import { Failure } from "../../errors.ts";
import type { Advice } from "../../next-step.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Host {
  /** A name, an IP address, or the folder of a unix socket. */
  readonly name: string;
  readonly port: number;
}

const sslModes = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] as const;
export type SslMode = (typeof sslModes)[number];

const sessionKinds = ["any", "read-write", "read-only", "primary", "standby", "prefer-standby"] as const;
export type SessionKind = (typeof sessionKinds)[number];

export interface Address {
  /** For people: without its password. */
  readonly shown: string;
  /** In the order in which they are tried; none: the local server's socket, else this machine. */
  readonly hosts: readonly Host[];
  readonly port: number;
  readonly user: string | undefined;
  readonly database: string | undefined;
  /** From the address or PGPASSWORD. */
  readonly password: string | undefined;
  readonly passwordFile: string | undefined;
  /** undefined: what each host's place asks for. */
  readonly sslMode: SslMode | undefined;
  readonly rootCertificate: string | undefined;
  readonly certificate: string | undefined;
  readonly key: string | undefined;
  readonly sessionKind: SessionKind;
  readonly schema: string;
  readonly applicationName: string | undefined;
}

/** What a query part may say, and the variable that says it otherwise. */
export const parameters: Readonly<Record<string, string | undefined>> = {
  host: "PGHOST",
  port: "PGPORT",
  dbname: "PGDATABASE",
  user: "PGUSER",
  password: "PGPASSWORD",
  passfile: "PGPASSFILE",
  sslmode: "PGSSLMODE",
  sslrootcert: "PGSSLROOTCERT",
  sslcert: "PGSSLCERT",
  sslkey: "PGSSLKEY",
  target_session_attrs: "PGTARGETSESSIONATTRS",
  options: "PGOPTIONS",
  application_name: "PGAPPNAME",
  service: "PGSERVICE",
  // Understood, and without effect: the limit is 5 seconds.
  connect_timeout: undefined,
};

const pattern = /^postgres(?:ql)?:\/\/(?:([^@/?#]*)@)?([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/;

/** The address without its password: that is all that a person, a log or a file ever gets. */
export function shownAddress(text: string): string {
  const [, scheme, rest = ""] = /^([a-z][a-z0-9+.-]*:\/\/)(.*)$/is.exec(text) ?? [];
  if (scheme === undefined) return text;
  // A password may hold any character that should have been encoded: the last @ before the query ends it.
  const query = rest.indexOf("?");
  const authority = query < 0 ? rest : rest.slice(0, query);
  const at = authority.lastIndexOf("@");
  const user = at < 0 ? "" : `${authority.slice(0, at).split(":")[0]}@`;
  const parts = query < 0 ? [] : rest.slice(query + 1).split("&");
  const kept = parts.filter((part) => !/^(?:[^=]*pass[^=]*)=/i.test(decodeSafely(part)));
  return `${scheme}${user}${authority.slice(at + 1)}${kept.length === 0 ? "" : `?${kept.join("&")}`}`;
}

/**
 * @param options.env the PG* variables among others: each counts if neither the address nor its service says otherwise
 * @param options.service what a service of that name says
 * @throws Failure `usage` for what libpq would refuse, and for a connection that would not be safe
 */
export function readAddress(
  text: string,
  { env, service }: { readonly env: Environment; readonly service?: (name: string) => Said },
): Address {
  if (/^\s|\s$|[\r\n\t]/.test(text))
    throw wrong(text, "it begins or ends with a space, or has a tab or a line break in it");
  const parts = pattern.exec(text);
  if (parts === null) throw wrong(text, shapeComplaint(text));
  const [, userinfo = "", authority = "", path = "", query = ""] = parts;
  const given = { ...ofUserinfo(text, userinfo), ...ofAuthority(text, authority), ...ofPath(text, path) };
  const said = { ...given, ...ofQuery(text, query) };
  const named = said.service || env.PGSERVICE;
  const served = named ? service?.(named) : undefined;
  const value = (name: string): string | undefined => {
    const variable = parameters[name];
    return said[name] || served?.[name] || (variable === undefined ? undefined : env[variable]) || undefined;
  };
  const address: Address = {
    shown: shownAddress(text),
    hosts: hostsOf(text, value("host"), value("port")),
    port: portOf(text, (value("port") ?? "").split(",")[0] ?? ""),
    user: value("user"),
    database: value("dbname"),
    password: value("password"),
    passwordFile: value("passfile"),
    sslMode: choice(text, { name: "sslmode", value: value("sslmode"), choices: sslModes }),
    rootCertificate: value("sslrootcert"),
    certificate: value("sslcert"),
    key: value("sslkey"),
    sessionKind: sessionKindOf(text, value("target_session_attrs"), value("host")),
    schema: schemaOf(text, value("options")),
    applicationName: value("application_name"),
  };
  refusePlain(address);
  return address;
}

export type Said = Partial<Record<string, string>>;

function shapeComplaint(text: string): string {
  const [, scheme] = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text) ?? [];
  if (scheme === undefined)
    return /^["'`]/.test(text) ? "it is in quotation marks" : "it does not begin with postgresql://";
  if (!/^postgres(?:ql)?$/.test(scheme)) return `${scheme}:// is not supported`;
  return "a # in it has to be written as %23";
}

function wrong(text: string, what: string, hint?: Advice): Failure {
  // Nothing else is shown: in a mistyped address, a password may be anywhere.
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1] ?? "";
  const shown = scheme === "" ? "" : ` (${scheme}://…)`;
  return new Failure("usage", `The address of the journal${shown} cannot be used: ${what}.`, {
    meaning: "Nothing was sent and nothing changed.",
    hint: hint ?? "Set INTEG_JOURNAL to postgresql://<user>@<host>:<port>/<database>.",
  });
}

function decodeSafely(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function decoded(text: string, part: string): string {
  let plain: string;
  try {
    plain = decodeURIComponent(part);
  } catch {
    throw wrong(text, "a % in it is not followed by two hexadecimal digits of a character in UTF-8; a % itself is %25");
  }
  // A zero byte would end a name in the protocol, and begin a setting that no one has written.
  if (plain.includes("\0")) throw wrong(text, "it has %00, which no name or password can have");
  return plain;
}

function ofUserinfo(text: string, userinfo: string): Said {
  const colon = userinfo.indexOf(":");
  if (colon < 0) return { user: decoded(text, userinfo) };
  return { user: decoded(text, userinfo.slice(0, colon)), password: decoded(text, userinfo.slice(colon + 1)) };
}

/** `host`, `host:port`, `[::1]:port`, several with commas. */
function ofAuthority(text: string, authority: string): Said {
  if (authority === "") return {};
  if (authority.includes("@")) throw wrong(text, "an @ in the user name or password has to be written as %40");
  const hosts: string[] = [];
  const ports: string[] = [];
  for (const one of authority.split(",")) {
    const [, bracketed, plain = "", port = ""] = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::([^:]*))?$/.exec(one) ?? [];
    if (bracketed === "" || (bracketed === undefined && plain === "" && one !== "" && port === ""))
      throw wrong(text, "its host cannot be read; write an IPv6 address in [ ]");
    hosts.push(decoded(text, bracketed ?? plain));
    ports.push(port);
  }
  return { host: hosts.join(","), port: ports.some((port) => port !== "") ? ports.join(",") : "" };
}

function ofPath(text: string, path: string): Said {
  return { dbname: decoded(text, path) };
}

function ofQuery(text: string, query: string): Said {
  const said: Said = {};
  for (const part of query.split("&").filter((one) => one !== "")) {
    const equals = part.indexOf("=");
    const name = decoded(text, equals < 0 ? part : part.slice(0, equals));
    if (!Object.hasOwn(parameters, name)) {
      const known = Object.keys(parameters).join(", ");
      // The name alone: what follows it may be a secret.
      const what = /^[\w-]{1,40}$/.test(name) ? ` "${name}"` : "";
      throw wrong(text, `the parameter${what} is not supported`, `Use these alone: ${known}.`);
    }
    said[name] = equals < 0 ? "" : decoded(text, part.slice(equals + 1));
  }
  return said;
}

const standardPort = 5432;

function portOf(text: string, port: string): number {
  if (port === "") return standardPort;
  const number = /^\d{1,5}$/.test(port) ? Number(port) : 0;
  if (number < 1 || number > 65_535) throw wrong(text, "a port is a number from 1 to 65535");
  return number;
}

function hostsOf(text: string, host: string | undefined, port: string | undefined): Host[] {
  if (host === undefined) return [];
  const names = host.split(",");
  const ports = (port ?? "").split(",");
  if (ports.length > 1 && ports.length !== names.length)
    throw wrong(text, `it names ${names.length} hosts and ${ports.length} ports`);
  return names.map((name, index) => {
    if (name === "") throw wrong(text, "one of its hosts has no name");
    if (/[\s\\]|[^\u0021-\u007e]/.test(name)) throw wrong(text, "a host's name has characters that no host has");
    return { name, port: portOf(text, ports[ports.length === 1 ? 0 : index] ?? "") };
  });
}

function choice<T extends string>(
  text: string,
  {
    name,
    value,
    choices,
  }: { readonly name: string; readonly value: string | undefined; readonly choices: readonly T[] },
): T | undefined {
  if (value === undefined) return undefined;
  const chosen = choices.find((one) => one === value);
  if (chosen === undefined) throw wrong(text, `${name} is one of ${choices.join(", ")}`);
  return chosen;
}

/** Of several hosts the one that can be written to is wanted, unless the address says otherwise. */
function sessionKindOf(text: string, value: string | undefined, host = ""): SessionKind {
  const said = choice(text, { name: "target_session_attrs", value, choices: sessionKinds });
  return said ?? (host.includes(",") ? "read-write" : "any");
}

/** Start-up options do not pass through PgBouncer: the one that is understood names the schema of the tables. */
function schemaOf(text: string, options: string | undefined): string {
  if (options === undefined || options.trim() === "") return "public";
  const [, name] = /^\s*(?:-c\s*|--)search_path=("?)([\w$]+)\1(?:,[\w$",]*)?\s*$/.exec(options)?.slice(1) ?? [];
  if (name !== undefined) return name;
  throw wrong(
    text,
    "of options only -c search_path=<schema> is supported",
    "Set other settings for the role: ALTER ROLE … SET ….",
  );
}

/** Whether no one but this machine sees what goes to that host. */
export function isLocal({ name }: Host): boolean {
  return name.startsWith("/") || name === "localhost" || name === "::1" || /^127(?:\.\d{1,3}){3}$/.test(name);
}

/** How the connection to a host is protected: off this machine always, with the certificate's name checked. */
export function sslModeOf({ sslMode }: Pick<Address, "sslMode">, host: Host): SslMode {
  if (host.name.startsWith("/")) return "disable";
  return sslMode ?? (isLocal(host) ? "disable" : "verify-full");
}

function refusePlain({ sslMode, hosts }: Address): void {
  if (sslMode !== "disable" && sslMode !== "allow" && sslMode !== "prefer") return;
  const far = hosts.find((host) => !isLocal(host));
  if (far === undefined) return;
  throw new Failure("usage", `sslmode=${sslMode} would send the journal unprotected to ${far.name}.`, {
    meaning: "Nothing was sent and nothing changed. Plain connections are for this machine only.",
    hint: "Use sslmode=verify-full, with sslrootcert=<file> for an authority of your own.",
  });
}
