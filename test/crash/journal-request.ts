// The change that journal-driver.ts records, and that a test then continues.
import type { Intent } from "../../src/journal/journal.ts";

export function requestOf(fingerprint: string, request_text: string): Intent {
  return {
    operation: "oauth_client.create",
    profile: "prod",
    profile_id: "prf_1",
    organization_id: null,
    region: "eu",
    base_url: "https://eu.example.com",
    service_version: "2026-07-01",
    request_text,
    fingerprint,
    idempotent: true,
  };
}
