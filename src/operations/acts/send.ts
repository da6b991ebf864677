// The act `send`: checks the evidence, then sends the request of a change.
import type { AccessKey, SecretAnswer } from "../../api/access-keys.ts";
import { type Attempt, requestIdOf, retryAfterOf } from "../../api/call/attempt.ts";
import type { Service } from "../../api/connect.ts";
import type { OAuthClient } from "../../api/oauth-clients.ts";
import type { Entry } from "../../journal/entry.ts";
import type { EntryLease } from "../../journal/journal.ts";
import { proofIn } from "../next.ts";
import { assertMayContinue } from "../sending.ts";
import { untrusted } from "./overwrite.ts";
import { entryFailure, isoTime, type Workbench } from "../workbench.ts";

interface Answers {
  readonly "create client": OAuthClient;
  readonly "create key": SecretAnswer;
  readonly "rotate key": SecretAnswer;
  readonly "revoke client": OAuthClient;
  readonly "revoke key": AccessKey;
}

const requests: {
  readonly [K in keyof Answers]: (service: Service, entry: Entry, id: string) => Promise<Attempt<Answers[K]>>;
} = {
  "create client": ({ oauthClients }, entry) => oauthClients.create(entry.request_text, entry.idempotency_key!),
  "create key": ({ accessKeys }, entry) => accessKeys.create(entry.request_text),
  "rotate key": ({ accessKeys }, _entry, id) => accessKeys.rotate(id),
  "revoke client": ({ oauthClients }, _entry, id) => oauthClients.revoke(id),
  "revoke key": ({ accessKeys }, _entry, id) => accessKeys.revoke(id),
};

/** Leases of entries whose first request this process sends. Only they record an offset: that of the first sender's clock. */
const startedLeases = new WeakSet<EntryLease>();

const maxRequestIds = 100;

/** The entry's next record includes the response's request id. */
export async function send<K extends keyof Answers>(
  bench: Workbench,
  lease: EntryLease,
  about: { readonly change: K; readonly id?: string; readonly service?: Service | undefined },
): Promise<Attempt<Answers[K]>> {
  assertMaySend(bench, lease.entry);
  if (!(await lease.isTrusted())) throw untrusted(lease.entry.id);
  const { clock, tell, account } = bench;
  const { change, id: named = "", service = account.service } = about;
  if (lease.entry.attempts === 1) startedLeases.add(lease);
  const done = tell.busy("Waiting for the service");
  const answer = await clock.finishing(() => requests[change](service, lease.entry, named)).finally(done);
  const { request_ids, clock_offset_ms, detail } = lease.entry;
  const id = requestIdOf(answer);
  const offset = startedLeases.has(lease) ? account.service.clockOffset() : undefined;
  const seconds = answer.kind === "not_sent" ? undefined : retryAfterOf(answer);
  const now = clock.now() + (account.service.clockOffset() ?? 0);
  lease.note({
    request_ids: id === undefined ? request_ids : [...request_ids, id].slice(-maxRequestIds),
    clock_offset_ms: clock_offset_ms ?? offset ?? null,
    detail: { ...detail, put_off_until: seconds === undefined ? undefined : isoTime(now + Math.ceil(seconds) * 1000) },
  });
  return answer;
}

function assertMaySend(bench: Workbench, entry: Entry): void {
  assertMayContinue(bench);
  const { account } = bench;
  const otherAddress = `The entry ${entry.id} is of ${entry.base_url}, and the profile is of ${account.baseUrl}.`;
  if (entry.base_url !== account.baseUrl)
    throw entryFailure(entry, "auth", otherAddress, { unsent: true, meaning: "Nothing was sent." });
  const isOnDisk = entry.attempts > 0 || entry.detail.revoking === true || proofIn(entry.detail) !== undefined;
  if (!isOnDisk) throw new Error(`a request of ${entry.id} is not on disk`);
}
