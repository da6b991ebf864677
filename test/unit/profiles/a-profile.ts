// Profiles for tests.
import { randomUUID } from "node:crypto";
import type { Profile } from "../../../src/profiles/profile.ts";

export function aProfile(settings: Partial<Profile> & { name: string }): Profile {
  return {
    id: randomUUID(),
    region: "eu",
    base_url: "https://api.eu.example.com",
    credential: null,
    credential_origins: [],
    ...settings,
  };
}

/** The failure that a piece of work ends with. */
export async function failureOf(
  work: () => unknown,
): Promise<{ kind: string; message: string; details: Record<string, unknown> }> {
  try {
    await work();
  } catch (error) {
    const { name, kind, message, details } = error as { name: string; kind: string; message: string; details: object };
    if (name !== "Failure") throw error;
    return { kind, message, details: details as Record<string, unknown> };
  }
  throw new Error("it did not fail");
}
