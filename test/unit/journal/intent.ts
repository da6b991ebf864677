import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { loadKernelLock } from "../../../src/disk/kernel-lock.ts";
import { identify } from "../../../src/disk/lock-owner.ts";
import { fileJournal } from "../../support/file-journal.ts";
import type { Intent, Journal } from "../../../src/journal/journal.ts";

export const ada = { user: "ada", host: "desk" } as const;

export function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "integ-journal-"));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

export function journalPath(): string {
  return join(folder(), "state", "journal.ndjson");
}

export function intent(changes: Partial<Intent> = {}): Intent {
  return {
    operation: "oauth_client.create",
    profile: "prod",
    profile_id: "prf_1",
    organization_id: "7d4f7a2e-2d9c-4c1c-9b53-0a3c3f1f0b11",
    region: "eu",
    base_url: "https://eu.example.com",
    service_version: "2026-07-01",
    method: "POST",
    path: "/v1/oauth_clients",
    request_text: '{"service_account_id":"sa_1","scopes":["entity:read","organization:read"]}',
    fingerprint: '["sa_1","entity:read","organization:read"]',
    idempotent: true,
    ...changes,
  };
}

export function clock(startMs = Date.UTC(2026, 10, 21)): () => number {
  let now = startMs;
  return () => (now += 1000);
}

export function journalAt(path: string, waitMs = 60): Journal {
  const means = () => ({ self: identify(process.pid), kernel: loadKernelLock() });
  return fileJournal(path, { now: clock(), actor: ada, locks: { means, waitMs } });
}
