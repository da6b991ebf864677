// What both adoptions check, record and show.
import { type Workbench, madeFor } from "../../changes/workbench.ts";
import type { Context } from "../../context.ts";
import { Failure, invalidValue } from "../../errors.ts";
import type { Intent } from "../../journal/journal.ts";
import { itemKey, itemName, type ItemKind, worksIn } from "../../policy/works.ts";
import { entryView } from "../journal/view.ts";
import { publicEntry, type Entry } from "../../journal/entry.ts";
import { actingAs, mentionDamage } from "../running/change.ts";
import { scopeOf } from "./observe.ts";
import type { AccessKey } from "../../api/access-keys.ts";
import type { OAuthClient } from "../../api/oauth-clients.ts";

export interface Adoption {
  readonly kind: ItemKind;
  readonly id: string;
  readonly name: string;
  readonly status: string | undefined;
  readonly intent: Intent;
}

/** @throws Failure `usage` for a name that no policy file can have */
export function checkItemName(name: string): void {
  if (itemName.test(name)) return;
  throw invalidValue("--name", name, {
    meaning:
      "Allowed: letters, digits, dots, underscores and hyphens, at most 100 characters, a letter or digit first.",
    hint: "Write it like --name reporting.",
  });
}

export async function adoptInto(
  context: Context,
  { bench, adoption, isTrial }: { readonly bench: Workbench; readonly adoption: Adoption; readonly isTrial: boolean },
): Promise<void> {
  const { kind, id, name, status, intent } = adoption;
  const noun = kind === "oauth_client" ? "client" : "key";
  if (status !== undefined && status !== "active")
    throw new Failure("unusable", `The ${noun} ${id} is ${status}: a policy has no use for it.`, {
      meaning: "Nothing was changed.",
    });
  await mentionDamage(context);
  const works = await worksIn(bench.journal.each({ all: true }), scopeOf(bench.account));
  const key = itemKey({ kind, name });
  const bound = [...works].find(([, { candidates }]) => candidates[0] === id)?.[0];
  if (bound === key) {
    context.output.note(`The ${noun} ${id} is the item ${name} already.`);
    return;
  }
  if (isTrial) {
    const { showSteps } = await import("../running/dry-run.ts");
    return showSteps(context, [{ what: `record in the journal that the ${noun} ${id} is the item ${name}` }]);
  }
  const taken = works.get(key);
  const other = taken?.unfinished?.entry.id ?? taken?.candidates[0];
  const question =
    bound === undefined
      ? other && `${actingAs(bench)}: the item ${name} has ${other} so far. Is ${id} to take its place?`
      : `${actingAs(bench)}: ${id} is the item ${bound.slice(bound.indexOf("/") + 1)} so far. Is it to become ${name}?`;
  if (question !== undefined && !(await context.output.confirm(question, { destructive: true })))
    throw new Failure("usage", "Nothing was adopted: the answer was no.");
  const entry = await adopt(bench, intent, id);
  await context.output.resource(publicEntry(entry), entryView);
  context.output.note(
    `The ${noun} ${id} is the item ${name} of a policy now. It keeps its secret until its first rotation.`,
  );
}

// A client or key that exists comes under a policy: an entry that is done from its start. Nothing is sent.

export function clientAdoption(
  { account }: Workbench,
  { client, name }: { readonly client: OAuthClient; readonly name: string },
): Intent {
  const { id, service_account_id, scopes, client_id } = client;
  return {
    ...madeFor(account),
    operation: "oauth_client.adopt",
    request_text: JSON.stringify({ id, service_account_id, scopes }),
    fingerprint: JSON.stringify([id, name]),
    idempotent: false,
    detail: { policy_name: name, client_id },
  };
}

export function keyAdoption(
  { account }: Workbench,
  { key, name }: { readonly key: AccessKey & { readonly id: string }; readonly name: string },
): Intent {
  const { id, name: called, keyType, scopes, expiresAt } = key;
  return {
    ...madeFor(account),
    operation: "access_key.adopt",
    request_text: JSON.stringify({ id, name: called, keyType, scopes }),
    fingerprint: JSON.stringify([id, name]),
    idempotent: false,
    detail: { policy_name: name, key_id: id, expiry: expiresAt ?? null },
  };
}

/** @param id of the client or key */
export async function adopt({ journal }: Workbench, intent: Intent, id: string): Promise<Entry> {
  const { lease } = await journal.admit(intent, { fresh: true });
  try {
    return await lease.record({ state: "done", resource_id: id });
  } finally {
    await lease.release();
  }
}
