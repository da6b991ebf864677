// Names of profiles and their rules, without heavy imports, because completion loads this file.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { checkCommandFile } from "../disk/private-file.ts";
import { Failure, invalidValue } from "../errors.ts";
import { shell } from "../next-step.ts";

/** A UUID of any version (§4.4). */
export const organizationIdPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export const namePattern = /^[A-Za-z0-9._-]{1,64}$/;
export const reservedNames: ReadonlySet<string> = new Set(["sandbox", "sandbox-eu", "env"]);

export function checkProfileName(name: string): string {
  if (reservedNames.has(name)) {
    throw new Failure("usage", `"${name}" is a reserved profile name.`, {
      meaning: "sandbox, sandbox-eu and env are built in.",
      hint: "Choose another name.",
    });
  }
  if (!namePattern.test(name)) {
    throw invalidValue("profile name", name.length > 64 ? undefined : name, {
      hint: "Use 1 to 64 letters, digits, dots, underscores and hyphens.",
    });
  }
  return name;
}

export interface ProfileName {
  readonly name: string;
  readonly region: string;
  readonly base_url: string;
  readonly isDefault?: boolean;
}

/** Returns no names for a damaged file, because other commands report the damage. */
export function readProfileNames(configDir: string): ProfileName[] {
  const path = join(configDir, "profiles.json");
  try {
    if (!checkCommandFile(path)) return [];
    const text = readFileSync(path, "utf8").replace(/^\uFEFF/, "");
    const file = JSON.parse(text) as { default: unknown; profiles: unknown[] };
    const named = file.profiles.filter(isNamed);
    return named.map(({ name, region, base_url }) => ({ name, region, base_url, isDefault: name === file.default }));
  } catch {
    return [];
  }
}

function isNamed(value: unknown): value is ProfileName {
  if (typeof value !== "object" || value === null) return false;
  const { name, region, base_url } = value as Record<string, unknown>;
  return [name, region, base_url].every((part) => typeof part === "string");
}

export function nameTaken(name: string): Failure {
  return new Failure("usage", `Profile "${name}" already exists.`, {
    meaning: `integ profiles edit ${name} changes its settings.`,
    nextCommand: shell`integ profiles show ${name}`,
  });
}

export function profileNotFound(name: string, known: readonly string[]): Failure {
  if (reservedNames.has(name))
    return new Failure("usage", `The profile ${name} is built in: it cannot be changed or removed.`, {
      meaning: "Nothing was changed.",
      hint: "Set INTEG_JOURNAL for another journal; add a profile for another address.",
    });
  const message = `Profile "${name}" not found.`;
  if (known.length > 0)
    return new Failure("usage", message, {
      meaning: `Profiles: ${known.join(", ")}.`,
      nextCommand: shell`integ profiles list`,
    });
  return new Failure("usage", message, {
    meaning: "No profiles are configured.",
    hint: "Add a profile with integ profiles add.",
    nextCommand: shell`integ help profiles add`,
  });
}
