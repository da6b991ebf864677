// The connections that libpq finds by a name: a section of ~/.pg_service.conf, or of the file that all users of a machine share.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../../errors.ts";
import type { Advice } from "../../next-step.ts";
import { parameters, type Environment, type Said } from "./address.ts";

/** Where the servers' packages of Debian and of others have the file that all users share. */
const sharedFolders = ["/etc/postgresql-common", "/etc/sysconfig/pgsql", "/usr/local/pgsql/etc", "/etc"];

/** @throws Failure `usage` if no file has a section of that name, or if it cannot be understood */
export function serviceNamed(name: string, { env, home }: { readonly env: Environment; readonly home: string }): Said {
  const own = env.PGSERVICEFILE || join(home, ".pg_service.conf");
  const shared = env.PGSYSCONFDIR ? [env.PGSYSCONFDIR] : sharedFolders;
  const files = [own, ...shared.map((folder) => join(folder, "pg_service.conf"))];
  for (const file of files) {
    const text = textOf(file);
    const found = text === undefined ? undefined : sectionOf(text, name, file);
    if (found !== undefined) return found;
  }
  throw refused(`the service "${name}" is not in ${own}`, `Add a section [${name}] to ${own}.`);
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

/** @returns nothing if the text has no section of that name */
export function sectionOf(text: string, name: string, file: string): Said | undefined {
  let said: Record<string, string> | undefined;
  for (const [index, whole] of text.split("\n").entries()) {
    const line = whole.trim();
    if (line === "" || line.startsWith("#")) continue;
    if (line.startsWith("[")) {
      if (said !== undefined) return said;
      if (line === `[${name}]`) said = {};
      continue;
    }
    if (said === undefined) continue;
    const equals = line.indexOf("=");
    const key = equals < 0 ? "" : line.slice(0, equals);
    const where = `line ${index + 1} of ${file}`;
    if (key === "service" || !Object.hasOwn(parameters, key)) {
      const what = /^[\w-]{1,40}$/.test(key) ? `the parameter "${key}" is not supported` : "it is not <name>=<value>";
      throw refused(`${where}: ${what}`, "Correct that line, or use another service.");
    }
    said[key] ??= line.slice(equals + 1);
  }
  return said;
}

function refused(what: string, hint: Advice): Failure {
  return new Failure("usage", `The address of the journal cannot be used: ${what}.`, {
    meaning: "Nothing was sent and nothing changed.",
    hint,
  });
}
