import { randomUUID } from "node:crypto";
import { Failure } from "../../../src/errors.ts";
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

export async function failureOf(
  work: () => unknown,
): Promise<{ kind: string; message: string; details: Record<string, unknown> }> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const { kind, message, details } = error;
    return { kind, message, details: { ...details } };
  }
  throw new Error("it did not fail");
}
