// What is put on disk before a creation is sent: the exact request under its key, and where its secret is to go.
import { creationBody, type CreationRequest } from "../../api/oauth-client-creation.ts";
import type { Entry } from "../../journal/entry.ts";
import type { Admission, Intent } from "../../journal/journal.ts";
import type { Destination } from "../../secrets/destination.ts";
import { completeDelivery } from "../delivery-recovery.ts";
import { madeAs, madeFor, type Workbench } from "../workbench.ts";

export interface CreationOptions {
  readonly destination: Destination;
  /** How long a pending creation is waited for, milliseconds; 0 inspects once. */
  readonly waitMs: number;
  /** `--idempotency-key` */
  readonly key?: string;
  /** `--new`: leave an unfinished creation of the same request alone. */
  readonly fresh?: boolean;
}

/** The intent of a creation as the journal admits it. @param begun the entry whose work it is a step of */
export function creationIntent({ account }: Workbench, request: CreationRequest, begun?: Entry): Intent {
  // The same service account and the same set of scopes are the same intent.
  const fingerprint = [request.service_account_id, [...new Set(request.scopes)].sort()];
  return {
    ...(begun ? madeAs(begun) : madeFor(account)),
    operation: "oauth_client.create",
    method: "POST",
    path: "/v1/oauth_clients",
    request_text: creationBody(request),
    fingerprint: JSON.stringify(fingerprint),
    idempotent: true,
    detail: { own_key: true },
  };
}

/** Of several destinations one has the secret: the others are looked at again when it is delivered there. */
function isPartlyDelivered({ destination }: Entry): boolean {
  return destination?.kind === "several" && destination.places.some(({ state }) => state === "delivered");
}

/** The destination is in the intent: a crash before anything is reserved there must not make recovery forget it. */
export async function admitCreation(bench: Workbench, intent: Intent, options: CreationOptions): Promise<Admission> {
  const { destination, fresh, key } = options;
  let record: Intent["destination"];
  try {
    record = { ...(await destination.check()) };
  } catch (refusal) {
    // The same command typed again: the secret's file is there because an earlier process put it there. Only the one who
    // holds the entry may look: looking finishes a delivery, and a running process is still at its own.
    const earlier = await bench.journal.resume(intent, { fresh, key });
    if (earlier === undefined) throw refusal;
    let isThere = false;
    try {
      isThere = (await completeDelivery(bench, earlier.lease)) || isPartlyDelivered(earlier.lease.entry);
    } finally {
      if (!isThere) await earlier.lease.release();
    }
    if (!isThere) throw refusal;
    return earlier;
  }
  const detail = { ...intent.detail, own_key: key === undefined };
  return bench.journal.admit({ ...intent, destination: record, detail }, { fresh, key });
}
