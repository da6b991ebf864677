// What both adoptions check, record and show.
import { type Workbench, madeFor } from "../../operations/workbench.ts";
import type { Context } from "../../context.ts";
import { Failure, invalidValue } from "../../errors.ts";
import type { Intent, Journal } from "../../journal/journal.ts";
import { itemKey, itemName, type ItemKind, worksIn } from "../../policy/works.ts";
import { entryView } from "../journal/view.ts";
import { publicEntry, type Entry } from "../../journal/entry.ts";
import { actingAs, mentionDamage } from "../running/change.ts";
import { scopeOf } from "./observe.ts";
import type { SeenCredential } from "../../policy/observed.ts";
import type { DryStep } from "../running/dry-run.ts";

export interface Adoption {
  readonly kind: ItemKind;
  /** The name of the item. */
  readonly name: string;
  readonly status: string | undefined;
  readonly credential: Adoptable;
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
  const { kind, name, status } = adoption;
  const { id } = adoption.credential;
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
    return showSteps(context, [adoptionStep({ kind, id, name })]);
  }
  const taken = works.get(key);
  const other = taken?.unfinished?.entry.id ?? taken?.candidates[0];
  const question =
    bound === undefined
      ? other && `${actingAs(bench)}: the item ${name} has ${other} so far. Is ${id} to take its place?`
      : `${actingAs(bench)}: ${id} is the item ${bound.slice(bound.indexOf("/") + 1)} so far. Is it to become ${name}?`;
  if (question !== undefined && !(await context.output.confirm(question, { destructive: true })))
    throw new Failure("usage", "Nothing was adopted: the answer was no.");
  const entry = await adopt(bench.journal, adoptionIntent(bench, adoption), id);
  await context.output.resource(publicEntry(entry), entryView);
  context.output.note(
    `The ${noun} ${id} is the item ${name} of a policy now. It keeps its secret until its first rotation.`,
  );
}

export function adoptionStep({
  kind,
  id,
  name,
}: {
  readonly kind: ItemKind;
  readonly id: string;
  readonly name: string;
}): DryStep {
  const noun = kind === "oauth_client" ? "client" : "key";
  return { what: `record in the journal that the ${noun} ${id} is the item ${name}` };
}

/** A client or key as a plan or a command has seen it. */
type Adoptable = Pick<SeenCredential, "id" | "serviceAccount" | "clientId" | "scopes" | "name" | "type" | "expiresAt">;

/** An entry that is done from its start: nothing is sent. */
export function adoptionIntent(
  { account }: Workbench,
  { kind, name, credential }: { readonly kind: ItemKind; readonly name: string; readonly credential: Adoptable },
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
    ...madeFor(account),
    operation: `${kind}.adopt`,
    request_text: JSON.stringify(
      isClient ? { id, service_account_id, scopes } : { id, name: called, keyType: type, scopes },
    ),
    fingerprint: JSON.stringify([id, name]),
    idempotent: false,
    detail: {
      policy_name: name,
      ...(isClient ? { client_id } : { key_id: id, expiry: expiresAt ?? null }),
    },
  };
}

/** @param id of the client or key */
export async function adopt(journal: Journal, intent: Intent, id: string): Promise<Entry> {
  const { lease } = await journal.admit(intent, { fresh: true });
  try {
    return await lease.record({ state: "done", resource_id: id });
  } finally {
    await lease.release();
  }
}
