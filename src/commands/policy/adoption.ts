import { type Workbench, accountFields } from "../../operations/workbench.ts";
import type { Context } from "../../context.ts";
import { Failure, invalidValue } from "../../errors.ts";
import { shell } from "../../next-step.ts";
import type { Intent, Journal } from "../../journal/journal.ts";
import type { Policy } from "../../policy/policy.ts";
import {
  isOf,
  itemKey,
  type ItemKind,
  itemName,
  itemOf,
  type ItemRef,
  type ItemWorks,
  workIn,
  worksIn,
} from "../../policy/works.ts";
import { entryView, publicEntry } from "../journal/view.ts";
import type { Entry } from "../../journal/entry.ts";
import { actingAs, warnOfDamage } from "../running/change.ts";
import { scopeOf } from "./observe.ts";
import type { SeenCredential } from "../../policy/observed.ts";
import type { DryStep } from "../running/dry-run.ts";

export interface Adoption {
  readonly item: ItemRef;
  readonly status: string | undefined;
  readonly credential: Adoptable;
}

export function namedItem({ output }: Context, { id: policy, items }: Policy, kind: ItemKind, name: string): ItemRef {
  const item = { policy, kind, name };
  if (itemName.test(name) && !items.some((one) => itemKey(one) === itemKey(item)))
    output.warn(`The policy file has no item ${name}: until you add it, the ${nounOf(kind)} is in no item.`);
  if (itemName.test(name)) return item;
  throw invalidValue("--name", name, {
    meaning:
      "Allowed: letters, digits, dots, underscores and hyphens, at most 100 characters, a letter or digit first.",
    hint: "Write it like --name reporting.",
  });
}

export async function adoptAsItem(
  context: Context,
  { bench, adoption, isTrial }: { readonly bench: Workbench; readonly adoption: Adoption; readonly isTrial: boolean },
): Promise<void> {
  const { item, status } = adoption;
  const { id } = adoption.credential;
  const noun = nounOf(item.kind);
  if (status !== undefined && status !== "active")
    throw new Failure("unusable", `The ${noun} ${id} is ${status}: a policy has no use for it.`, {
      meaning: "Nothing was changed.",
    });
  await warnOfDamage(context);
  const { bound, other } = await lookAt(bench, { id, item });
  if (bound === itemKey(item)) {
    context.output.note(`The ${noun} ${id} is the item ${item.name} already.`);
    return;
  }
  if (isTrial) {
    const { showSteps } = await import("../running/dry-run.ts");
    return showSteps(context, [adoptionStep(item, id)]);
  }
  const question =
    bound === undefined
      ? other && `${actingAs(bench)}: the item ${item.name} has ${other} so far. Is ${id} to take its place?`
      : `${actingAs(bench)}: ${id} is the item ${itemOf(bound).name} so far. Is it to become ${item.name}?`;
  if (question !== undefined) {
    if (!(await context.output.confirm(question, { destructive: true })))
      throw new Failure("usage", "Nothing was adopted: the answer was no.");
    const now = await lookAt(bench, { id, item });
    if (now.bound !== bound || now.other !== other)
      throw new Failure("conflict", "Nothing was adopted: another command changed the items during the question.", {
        hint: "Run the command again to see the new question.",
      });
  }
  const entry = await adopt(bench.journal, adoptionIntent(bench, adoption), id);
  await context.output.resource(publicEntry(entry), entryView);
  context.output.note(
    `The ${noun} ${id} is recorded as the item ${item.name} of the policy. It keeps its secret until its first rotation.`,
  );
}

/** @returns the item that the credential is, and what the wanted item has so far */
async function lookAt(
  { journal, account }: Workbench,
  { id, item }: { readonly id: string; readonly item: ItemRef },
): Promise<{ readonly bound: string | undefined; readonly other: string | undefined }> {
  const scope = scopeOf(account);
  const works = await worksIn(journal, scope);
  assertNotInOtherPolicy(works, { id, item });
  const bound = [...works].find(([, { candidates }]) => candidates[0] === id)?.[0];
  const rotation = (await journal.unsettled()).find((entry) => isOf(entry, scope) && workIn(entry)?.old === id);
  if (rotation !== undefined && bound !== itemKey(item))
    throw new Failure(
      "conflict",
      `The ${nounOf(item.kind)} ${id} is being replaced: the rotation ${rotation.id} is unfinished.`,
      {
        meaning: "Nothing was adopted. When the rotation is finished, adopt the successor.",
        nextCommand: shell`integ journal recover ${rotation.id}`,
      },
    );
  const present = works.get(itemKey(item));
  return { bound, other: present?.unfinished?.entry.id ?? present?.candidates[0] };
}

function assertNotInOtherPolicy(
  works: ReadonlyMap<string, ItemWorks>,
  { id, item }: { readonly id: string; readonly item: ItemRef },
): void {
  for (const [key, { candidates, waiting, unfinished }] of works) {
    const { policy, name } = itemOf(key);
    const has = [...candidates, waiting?.made, waiting?.old, unfinished?.made, unfinished?.old].includes(id);
    if (!has || policy === item.policy) continue;
    throw new Failure("conflict", `The ${nounOf(item.kind)} ${id} is the item ${name} of another policy, ${policy}.`, {
      meaning: "Nothing was adopted: that policy rotates it, and delivers its secret.",
      hint: `Leave it to that policy. If its file is lost, write id: ${policy} into this one in place of id: ${item.policy}.`,
    });
  }
}

export function nounOf(kind: ItemKind): "client" | "key" {
  return kind === "oauth_client" ? "client" : "key";
}

export function adoptionStep({ kind, name }: ItemRef, id: string): DryStep {
  return { what: `record in the journal that the ${nounOf(kind)} ${id} is the item ${name}` };
}

type Adoptable = Pick<SeenCredential, "id" | "serviceAccount" | "clientId" | "scopes" | "name" | "type" | "expiresAt">;

/** An adoption sends no request; `request_text` describes the adopted credential. */
export function adoptionIntent(
  { account }: Workbench,
  { item: { policy, kind, name }, credential }: Pick<Adoption, "item" | "credential">,
): Intent {
  const {
    id,
    serviceAccount: service_account_id,
    clientId: client_id,
    scopes,
    name: called,
    type,
    expiresAt,
  } = credential;
  const isClient = kind === "oauth_client";
  return {
    ...accountFields(account),
    operation: `${kind}.adopt`,
    request_text: JSON.stringify(
      isClient ? { id, service_account_id, scopes } : { id, name: called, keyType: type, scopes },
    ),
    fingerprint: JSON.stringify([id, name]),
    idempotent: false,
    policy: { id: policy, item: name },
    detail: isClient ? { client_id } : { key_id: id, expiry: expiresAt ?? null },
  };
}

export async function adopt(journal: Journal, intent: Intent, id: string): Promise<Entry> {
  const { lease } = await journal.admit(intent, { fresh: true });
  try {
    return await lease.record({ state: "done", resource_id: id });
  } finally {
    await lease.release();
  }
}
