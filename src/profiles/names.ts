// Owns: the names of the stored profiles, for completion: read at once, without the schema, and nothing where the file is
// not as it should be (every command that acts says what is wrong with it).
// Must not know: credentials, the environment. Design: cli.md §7 «completion».
import { readFileSync } from "node:fs";
import { join } from "node:path";

export interface ProfileName {
  readonly name: string;
  readonly region: string;
  readonly base_url: string;
}

/** @param configDir the configuration folder */
export function readProfileNames(configDir: string): ProfileName[] {
  let file: { profiles?: unknown } | null;
  try {
    file = JSON.parse(readFileSync(join(configDir, "profiles.json"), "utf8").replace(/^\uFEFF/, ""));
  } catch {
    return [];
  }
  const profiles = Array.isArray(file?.profiles) ? (file.profiles as unknown[]) : [];
  return profiles.filter(isNamed).map(({ name, region, base_url }) => ({ name, region, base_url }));
}

function isNamed(value: unknown): value is ProfileName {
  if (typeof value !== "object" || value === null) return false;
  const { name, region, base_url } = value as Record<string, unknown>;
  return [name, region, base_url].every((part) => typeof part === "string");
}
