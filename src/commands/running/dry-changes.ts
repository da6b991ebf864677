// The steps of each change of the account, as its real run goes through them if nothing fails.
import { accessKeyBody } from "../../api/access-keys.ts";
import { type KeyCreation, keyCreationIntent } from "../../operations/key.ts";
import type { KeyReplacementRequest } from "../../operations/key-rotation.ts";
import { keyRevocationIntent, clientRevocationIntent } from "../../operations/revocation.ts";
import { creationIntent } from "../../operations/client.ts";
import type { ClientRotationRequest, OldClient } from "../../operations/client-rotation.ts";
import type { Workbench } from "../../operations/workbench.ts";
import { dueAt, type Entry, isSettled, mayHaveArrived, type ClientProof } from "../../journal/entry.ts";
import type { Intent, Journal } from "../../journal/journal.ts";
import { laterRotation } from "../../journal/rotations.ts";
import { segment } from "../../api/call/request.ts";
import { describeDestination, type Destination, placesOf } from "../../secrets/destination.ts";
import type { SecretKeeping } from "../../secrets/kept.ts";
import { deliverySteps, type DryStep, notFixed, requestStep } from "./dry-run.ts";

type ClientRequest = Parameters<typeof creationIntent>[1];

export function clientCreationSteps(bench: Workbench, request: ClientRequest, destination: Destination): DryStep[] {
  const headers = { "Idempotency-Key": notFixed.key };
  return [requestStep("create the client", creationIntent(bench, request), { headers }), ...deliverySteps(destination)];
}

export function clientRotationSteps(
  bench: Workbench,
  {
    old,
    request,
    destination,
  }: { readonly old: OldClient; readonly request: ClientRotationRequest; readonly destination: Destination },
): DryStep[] {
  const { id, service_account_id, scopes } = old;
  const creation = clientCreationSteps(bench, { service_account_id, scopes }, destination);
  const proof = proofSteps(bench.account.proof, "client");
  if (request.keepOld) return creation;
  return [...creation, ...proof, endStep(clientRevocationIntent(bench, id), { id, overlapMs: request.overlapMs })];
}

/** A token exchange changes nothing of the account. */
function proofSteps(proof: ClientProof | null, noun: string): DryStep[] {
  if (proof === null) return [];
  return [{ what: `prove the new ${noun} by a token exchange`, method: "POST", url: proof.token_endpoint }];
}

function endStep(intent: Intent, { id, overlapMs }: { readonly id: string; readonly overlapMs: number }): DryStep {
  const when = overlapMs > 0 ? ` when the overlap ends (${overlapMs / 1000}s after the proof)` : "";
  return requestStep(`revoke ${id}${when}`, intent, { body: "" });
}

/** @param expiresIn as it was asked for: its time is not fixed before the run */
export function keyCreationStep(
  bench: Workbench,
  { creation, expiresIn }: { readonly creation: KeyCreation; readonly expiresIn?: string | undefined },
): DryStep {
  return requestStep(
    "create the key",
    keyCreationIntent(bench, creation, { mark: creation.marked ? notFixed.mark : "" }),
    {
      body: keyBody(creation, expiresIn),
    },
  );
}

/** The body with what is not fixed yet in parentheses. */
export function keyBody({ request, marked }: KeyCreation, expiresIn: string | undefined): string {
  const name = marked ? `${request.name}${notFixed.mark}` : request.name;
  const expiresAt = expiresIn === undefined ? request.expiresAt : `(${expiresIn} from the request)`;
  return accessKeyBody({ ...request, name, expiresAt });
}

export function keyReplacementSteps(
  bench: Workbench,
  about: {
    readonly request: KeyReplacementRequest;
    readonly expiresIn?: string | undefined;
    readonly destination: Destination;
  },
): DryStep[] {
  const { request, expiresIn, destination } = about;
  const { oldId, creation, overlapMs } = request;
  return [
    keyCreationStep(bench, { creation, expiresIn }),
    ...deliverySteps(destination),
    { what: "prove the new key by exchanging its secret, if the profile can" },
    endStep(keyRevocationIntent(bench, oldId), { id: oldId, overlapMs }),
  ];
}

export function keyRotationSteps({ account }: Workbench, id: string, destination: Destination): DryStep[] {
  const url = `${account.baseUrl}/api/v1/access-keys/${segment(id, "key id")}/rotate`;
  const headers = { "x-organization-id": account.organizationId };
  return [{ what: `rotate ${id} in place`, method: "POST", url, headers }, ...deliverySteps(destination)];
}

export interface RecoveryChoice {
  /** An overlap that runs is ended. */
  readonly isEnded: boolean;
  /** A lost secret is replaced. */
  readonly replaces: boolean;
  readonly nowMs: number;
  /** What is kept here. */
  readonly secrets: Pick<SecretKeeping, "isKept">;
}

/** What finishing an entry sends, as it is now: the responses may lead elsewhere. */
export async function recoverySteps(journal: Journal, entry: Entry, choice: RecoveryChoice): Promise<DryStep[]> {
  if (isSettled(entry.state)) return [];
  const steps = await stepsOf(journal, entry, choice);
  return steps.map((step) => ({ ...step, what: `${entry.id}: ${step.what}` }));
}

async function stepsOf(journal: Journal, entry: Entry, choice: RecoveryChoice): Promise<DryStep[]> {
  switch (entry.operation) {
    case "oauth_client.create":
    case "access_key.create":
      return creationSteps(entry, choice);
    case "oauth_client.revoke":
    case "access_key.revoke":
      return [stored("revoke it again", entry, "")];
    case "oauth_client.rotate":
    case "access_key.rotate":
      return entry.detail.mode === "in_place"
        ? inPlaceSteps(journal, entry, choice)
        : rotationSteps(journal, entry, choice);
    default:
      return [];
  }
}

/** The stored request, byte for byte. */
function stored(what: string, entry: Entry, body = entry.request_text): DryStep {
  const { method = "POST", path = "", base_url, idempotency_key, service_version, organization_id } = entry;
  const legacy = path.startsWith("/api/");
  const headers: Record<string, string | null> = legacy
    ? { "x-organization-id": organization_id }
    : { "Service-Version": service_version };
  if (idempotency_key !== null) headers["Idempotency-Key"] = idempotency_key;
  return { what, method, url: `${base_url}${path}`, headers, ...(body === "" ? {} : { body }) };
}

function creationSteps(entry: Entry, { replaces }: RecoveryChoice): DryStep[] {
  const { state, resource_id: id, operation } = entry;
  const isKey = operation === "access_key.create";
  const delivery = entry.destination
    ? placesOf(entry.destination).map((place) => ({ what: `deliver the secret to ${describeDestination(place).name}` }))
    : [];
  if (state === "undelivered") return [{ what: "its secret is kept: integ journal claim delivers it" }];
  if (state === "secret_lost") {
    if (!replaces) return [{ what: "its secret is lost: --replace-lost-secret revokes and creates" }];
    const path = isKey ? `/api/v1/access-keys/${id}` : `/v1/oauth_clients/${id}`;
    const again = { ...entry, idempotency_key: isKey ? null : notFixed.key };
    return [
      stored(`revoke ${id}`, { ...entry, method: "DELETE", path, idempotency_key: null }, ""),
      stored("create it again", again),
      ...delivery,
    ];
  }
  if (isKey && mayHaveArrived(entry)) return [{ what: "look for the key in the list; what is sent depends on it" }];
  return [stored("send the stored creation, under its key", entry), ...delivery];
}

async function inPlaceSteps(journal: Journal, entry: Entry, { replaces, secrets }: RecoveryChoice): Promise<DryStep[]> {
  const later = await laterRotation(journal, entry, secrets);
  if (later !== undefined) return [{ what: `end it, since ${later.id} rotated the key after it: nothing is sent` }];
  const isUnknown = entry.state !== "open" || entry.detail.in_flight === true;
  if (isUnknown && !replaces) return [{ what: "the outcome stays unknown: --replace-lost-secret rotates again" }];
  return [stored("rotate the key", entry)];
}

async function rotationSteps(journal: Journal, entry: Entry, choice: RecoveryChoice): Promise<DryStep[]> {
  const { old_client: client, old_key: key } = entry.detail;
  const due = Date.parse(dueAt(entry) ?? "");
  const isRunning = entry.state === "waiting" && due > choice.nowMs && !choice.isEnded;
  if (isRunning) return [{ what: `the overlap runs until ${dueAt(entry)}: nothing is sent` }];
  const path = client === undefined ? `/api/v1/access-keys/${key}` : `/v1/oauth_clients/${client}`;
  const end = stored(`revoke ${client ?? key}`, { ...entry, method: "DELETE", path, idempotency_key: null }, "");
  const [child] = await journal.select({ all: true, parent: entry.id });
  const isDelivered = child?.state === "done" || entry.state === "waiting";
  const ends = entry.detail.keep_old === true ? [] : [end];
  if (isDelivered) return ends;
  const creation =
    child && !isSettled(child.state) ? creationSteps(child, choice) : [{ what: "create the new one under a new key" }];
  return [...creation, ...ends];
}
