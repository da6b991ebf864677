// Finds the steps that `--dry-run` shows.
import { accessKeyBody } from "../../api/access-keys.ts";
import { type KeyCreation, keyCreationIntent } from "../../operations/key.ts";
import type { KeyReplacementRequest } from "../../operations/key-rotation.ts";
import { revocationIntent } from "../../operations/revocation.ts";
import { creationIntent } from "../../operations/client.ts";
import type { ClientRotation } from "../../operations/client-rotation.ts";
import { next } from "../../operations/next.ts";
import type { Overlap } from "../../operations/rotation.ts";
import type { Workbench } from "../../operations/workbench.ts";
import { dueAt, type Entry, isInPlace, isSettled, kindOf, rotatedBy, type ClientProof } from "../../journal/entry.ts";
import type { Intent, Journal } from "../../journal/journal.ts";
import { currentChild, laterRotation } from "../../journal/rotations.ts";
import { segment } from "../../api/call/request.ts";
import type { Destination } from "../../secrets/destination.ts";
import type { SecretKeeping } from "../../secrets/kept.ts";
import { deliverySteps, type DryStep, placeholders, requestStep } from "./dry-run.ts";

type ClientRequest = Parameters<typeof creationIntent>[1];

export function clientCreationSteps(bench: Workbench, request: ClientRequest, destination: Destination): DryStep[] {
  const headers = { "Idempotency-Key": placeholders.key };
  return [
    requestStep("create the client", creationIntent(bench, request), { headers }),
    ...deliverySteps(destination.record),
  ];
}

export function clientRotationSteps(
  bench: Workbench,
  { old, overlapMs, keepOld, destination }: ClientRotation & { readonly destination: Destination },
): DryStep[] {
  const { id, service_account_id, scopes } = old;
  const creation = clientCreationSteps(bench, { service_account_id, scopes }, destination);
  const proof = proofSteps(bench.account.proof, "client");
  if (keepOld) return creation;
  return [...creation, ...proof, revocationStep(revocationIntent(bench, "client", id), { id, overlapMs })];
}

function proofSteps(proof: ClientProof | null, noun: string): DryStep[] {
  if (proof === null) return [];
  return [{ what: `prove the new ${noun} by a token exchange`, method: "POST", url: proof.token_endpoint }];
}

function revocationStep(intent: Intent, { id, overlapMs, unusedMs }: Overlap & { readonly id: string }): DryStep {
  const unused = unusedMs === undefined ? "" : `, or earlier, once it was not used for ${unusedMs / 1000}s`;
  const when = overlapMs > 0 ? ` when the overlap ends (${overlapMs / 1000}s after the proof${unused})` : "";
  return requestStep(`revoke ${id}${when}`, intent);
}

/** @param expiresIn a lifetime, because the expiry is known only in the run */
export function keyCreationStep(
  bench: Workbench,
  { creation, expiresIn }: { readonly creation: KeyCreation; readonly expiresIn?: string | undefined },
): DryStep {
  const intent = keyCreationIntent(bench, creation, { mark: creation.marked ? placeholders.mark : "" });
  return requestStep("create the key", intent, { body: keyBody(creation, expiresIn) });
}

function keyBody({ request, marked }: KeyCreation, expiresIn: string | undefined): string {
  const name = marked ? `${request.name}${placeholders.mark}` : request.name;
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
  const { oldId, creation } = request;
  return [
    keyCreationStep(bench, { creation, expiresIn }),
    ...deliverySteps(destination.record),
    { what: "prove the new key by exchanging its secret, if the profile can" },
    revocationStep(revocationIntent(bench, "key", oldId), { ...request, id: oldId }),
  ];
}

export function keyRotationSteps({ account }: Workbench, id: string, destination: Destination): DryStep[] {
  const url = `${account.baseUrl}/api/v1/access-keys/${segment(id, "key id")}/rotate`;
  const headers = { "x-organization-id": account.organizationId };
  return [{ what: `rotate ${id} in place`, method: "POST", url, headers }, ...deliverySteps(destination.record)];
}

export interface RecoveryChoice {
  /** True if the run ends an overlap. */
  readonly isEnded: boolean;
  /** True if the run replaces a lost secret. */
  readonly replaces: boolean;
  readonly nowMs: number;
  readonly secrets: Pick<SecretKeeping, "isKept">;
}

/** @returns the expected steps, which the service's responses may change */
export async function recoverySteps(journal: Journal, entry: Entry, choice: RecoveryChoice): Promise<DryStep[]> {
  if (isSettled(entry.state)) return [];
  const steps = await stepsOf(journal, entry, choice);
  return steps.map((step) => ({ ...step, what: `${entry.id}: ${step.what}` }));
}

async function stepsOf(journal: Journal, entry: Entry, choice: RecoveryChoice): Promise<DryStep[]> {
  const { operation, detail } = entry;
  const later = isInPlace(entry) ? await laterRotation(journal, entry, choice.secrets) : undefined;
  const child = operation.endsWith(".rotate") ? await currentChild(journal, entry) : undefined;
  const isDue = choice.isEnded || !(Date.parse(dueAt(entry) ?? "") > choice.nowMs);
  switch (next(entry, { isOverrun: later !== undefined, child, isDue })) {
    case "end":
      return [];
    case "give way":
      return [{ what: `end it, since ${later?.id} rotated the key after it: nothing is sent` }];
    case "deliver":
      return [{ what: "its secret is kept: integ journal claim delivers it" }];
    case "look":
      return [{ what: "look for the key in the list; the next request depends on it" }];
    case "send":
      if (operation.endsWith(".revoke")) return [storedRequest("revoke it again", entry)];
      if (isInPlace(entry)) return [storedRequest("rotate the key", entry)];
      return [storedRequest("send the stored creation, under its key", entry), ...deliverySteps(entry.destination)];
    case "replace":
      return replacementSteps(entry, choice);
    case "wait":
      if (detail.overlap_unused_ms === undefined)
        return [{ what: `the overlap runs until ${dueAt(entry)}: nothing is sent` }];
      return [
        {
          ...revocationOf(entry, rotatedBy(entry)),
          what: `revoke ${rotatedBy(entry)} if it was not used for ${detail.overlap_unused_ms / 1000}s; if it was, nothing is sent before ${dueAt(entry)}`,
        },
      ];
    case "make the new one": {
      const isOpen = child !== undefined && !isSettled(child.state);
      const create = isOpen ? await stepsOf(journal, child, choice) : [{ what: "create the new one under a new key" }];
      return [...create, ...(detail.keep_old === true ? [] : [revocationOf(entry, rotatedBy(entry))])];
    }
    default:
      return [revocationOf(entry, rotatedBy(entry))];
  }
}

function storedRequest(what: string, entry: Entry): DryStep {
  const { idempotency_key: key } = entry;
  return requestStep(what, entry, { headers: key === null ? {} : { "Idempotency-Key": key } });
}

function revocationOf(entry: Entry, id: string | null | undefined): DryStep {
  const path = kindOf(entry) === "access_key" ? `/api/v1/access-keys/${id}` : `/v1/oauth_clients/${id}`;
  return storedRequest(`revoke ${id}`, { ...entry, method: "DELETE", path, idempotency_key: null });
}

function replacementSteps(entry: Entry, { replaces }: RecoveryChoice): DryStep[] {
  if (isInPlace(entry))
    return replaces
      ? [storedRequest("rotate the key", entry)]
      : [{ what: "the outcome stays unknown: --replace-lost-secret rotates again" }];
  if (!replaces) return [{ what: "its secret is lost: --replace-lost-secret revokes and creates" }];
  const idempotency_key = entry.operation === "access_key.create" ? null : placeholders.key;
  const again = storedRequest("create it again", { ...entry, idempotency_key });
  return [revocationOf(entry, entry.resource_id), again, ...deliverySteps(entry.destination)];
}
