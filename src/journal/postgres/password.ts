// The password of a team's journal, from where libpq looks for it: the address, PGPASSWORD, the password file.
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Address, Environment, Host } from "./address.ts";

export interface FoundPassword {
  readonly password: string | undefined;
  /** Why the password file does not count. */
  readonly ignored?: string;
}

export interface PasswordQuestion {
  readonly host: Host;
  readonly database: string;
  readonly user: string;
  readonly env: Environment;
  readonly home: string;
}

export function passwordFor(address: Address, question: PasswordQuestion): FoundPassword {
  if (address.password !== undefined) return { password: address.password };
  const { env, home } = question;
  const file =
    address.passwordFile ??
    (env.APPDATA && process.platform === "win32"
      ? join(env.APPDATA, "postgresql", "pgpass.conf")
      : join(home, ".pgpass"));
  let text: string;
  try {
    if (process.platform !== "win32" && statSync(file).mode & 0o077)
      return { password: undefined, ignored: `${file} can be read by others and is ignored: chmod 600 ${file}` };
    text = readFileSync(file, "utf8");
  } catch {
    return { password: undefined };
  }
  return { password: passwordIn(text, question) };
}

/** The password of the first line that fits: host:port:database:user:password, with \\ before a colon or a backslash. */
export function passwordIn(
  text: string,
  { host, database, user }: Pick<PasswordQuestion, "host" | "database" | "user">,
): string | undefined {
  const names = host.name.startsWith("/") ? [host.name, "localhost"] : [host.name];
  const wanted = [names, [String(host.port)], [database], [user]];
  for (const line of text.split(/\r?\n/)) {
    const fields = /^((?:\\.|[^\\:])*):((?:\\.|[^\\:])*):((?:\\.|[^\\:])*):((?:\\.|[^\\:])*):(.*)$/
      .exec(line)
      ?.slice(1);
    if (fields === undefined || line.startsWith("#")) continue;
    const fits = wanted.every((ones, index) => fields[index] === "*" || ones.includes(unescaped(fields[index] ?? "")));
    if (fits) return unescaped(fields[4] ?? "");
  }
  return undefined;
}

function unescaped(field: string): string {
  return field.replaceAll(/\\(.)/g, "$1");
}
