// Replaces a key by one with the same properties. Flags override properties, and must give those that the list does not
// show.
import { clockSkewMs } from "../../journal/entry.ts";
import { type AccessKey, type AccessKeyRequest, checkAccessKey, readKeys } from "../../api/access-keys.ts";
import type { Rows } from "../../api/json/unknown-list.ts";
import type { KeyCreation } from "../../operations/key.ts";
import type { KeyReplacementRequest } from "../../operations/key-rotation.ts";
import { serviceTime, type Workbench } from "../../operations/workbench.ts";
import { deliveredKeyView } from "./keys.ts";
import { type KeyFlags, expiryOf, isMarked } from "./new-key.ts";
import type { SecretFlags } from "../options/secrets.ts";
import { parseLifetime } from "../options/global.ts";
import { mayReplace, mayRevokeUnproven, actingAs, noteUnfinished, workbenchOf } from "../running/change.ts";
import { overlapNote, oldCredentialWords, receiptPrinter } from "../running/overlap-words.ts";
import { read } from "../running/read.ts";
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import type { Destination } from "../../secrets/destination.ts";
import { shell } from "../../next-step.ts";

export type RotateFlags = KeyFlags &
  SecretFlags & {
    updateProfile?: true;
    byReplacement?: true;
    overlap?: string;
    overlapUnused?: string;
    acceptUnproven?: true;
    new?: true;
    dryRun?: true;
  };

export interface Rotation {
  readonly id: string;
  readonly options: RotateFlags;
  readonly destination: Destination;
  /** True if the new secret becomes the acting profile's credential. */
  readonly updatesOwn: boolean;
}

/** @returns the new key's id once the old key is revoked, else undefined */
export async function rotateByReplacement(
  context: Context,
  { id, options, destination, updatesOwn }: Rotation,
): Promise<string | undefined> {
  const { output } = context;
  const bench = await workbenchOf(context);
  const request = { ...(await requestOf(context, bench, { id, options })), updateProfile: updatesOwn };
  if (options.dryRun) {
    const [{ showSteps }, { keyReplacementSteps }] = await Promise.all([
      import("../running/dry-run.ts"),
      import("../running/dry-changes.ts"),
    ]);
    await showSteps(context, keyReplacementSteps(bench, { request, expiresIn: options.expiresIn, destination }));
    return undefined;
  }
  const { name, scopes, expiresAt } = request.creation.request;
  const agreed =
    !output.interactive ||
    (await output.confirm(
      `${actingAs(bench)}: make a key "${name}" (${scopes?.join(", ")}; expires ${expiresAt ?? "never"}), and ${oldCredentialWords(id, request)}?`,
      { destructive: true },
    ));
  if (!agreed) throw new Failure("usage", "Nothing was created: the answer was no.");
  if (!output.interactive && expiresAt !== undefined && request.creation.expiry === undefined)
    output.note(
      `The new key expires when the old one does, ${output.when(expiresAt)}. --expires-in sets another lifetime.`,
    );
  await noteUnfinished(context);
  const { replaceAccessKey } = await import("../../operations/key-rotation.ts");
  const { showReceipt, throwPrintError } = receiptPrinter(context, destination, deliveredKeyView);
  const printingBench = { ...bench, tell: { ...bench.tell, showReceipt } };
  const replaced = await replaceAccessKey(printingBench, request, {
    destination,
    fresh: options.new === true,
    waitMs: 60_000,
    mayReplace: (entry) => mayReplace(context, entry),
    mayRevokeUnproven: (entry, words) => mayRevokeUnproven(context, entry, words, options.acceptUnproven),
    reconnect: async () => context.connect(await context.profiles.named(bench.account.profile)),
  });
  throwPrintError();
  const { entry, newId, oldId, dueAt } = replaced;
  output.note(
    dueAt === undefined
      ? `The new key ${newId} replaces the old one, ${oldId}, which is revoked.`
      : overlapNote({ entry, old: oldId, dueAt, unusedMs: request.unusedMs }, serviceTime(bench)),
  );
  if (replaced.receipt === undefined) output.note("Its secret was delivered by an earlier run of this command.");
  return dueAt === undefined ? newId : undefined;
}

export async function requestOf(
  context: Context,
  bench: Workbench,
  { id, options }: { readonly id: string; readonly options: RotateFlags },
): Promise<Omit<KeyReplacementRequest, "updateProfile">> {
  const overlapMs = options.overlap === undefined ? 0 : parseLifetime(options.overlap, "--overlap");
  const unusedMs =
    options.overlapUnused === undefined ? undefined : parseLifetime(options.overlapUnused, "--overlap-unused");
  if (unusedMs !== undefined && (unusedMs === 0 || unusedMs >= overlapMs))
    throw new Failure("usage", `--overlap-unused is ${options.overlapUnused}, and --overlap is ${options.overlap}.`, {
      meaning: "Nothing was sent: --overlap ends the overlap before --overlap-unused can.",
      hint: "Write a duration that is longer than zero and shorter than --overlap, such as --overlap-unused 24h.",
    });
  const { value } = await read(context, "list access keys", () => bench.account.service.accessKeys.list());
  const old = await unmarked(context, oldKeyOf(value, id));
  const now = timeFor(bench);
  const replacement = replacementOf(old, options, now);
  refuseShortLife(replacement.request, now + overlapMs);
  const { marker } = options;
  const creation = { ...replacement, marked: await isMarked(context, { marker, name: replacement.request.name }) };
  const isBound = creation.request.keyType === "user_bound" && old.keyType === "user_bound";
  return {
    oldId: id,
    boundTo: isBound ? old.createdByUserId : undefined,
    creation,
    overlapMs,
    unusedMs,
  };
}

/** The new key gets its own random mark, so the old key's mark does not belong in the name. */
async function unmarked({ journal }: Pick<Context, "journal">, old: AccessKey): Promise<AccessKey> {
  if (old.id === undefined || old.name === undefined) return old;
  const creations = await (await journal()).select({ all: true, resource: old.id, operation: "access_key.create" });
  const creation = creations.find(({ resource_id, detail }) => resource_id === old.id && detail.marked === true);
  const { base_name: name } = creation?.detail ?? {};
  return name !== undefined && old.name.startsWith(`${name}-`) ? { ...old, name } : old;
}

/** @param until end of the overlap, in milliseconds since 1970 */
export function refuseShortLife({ expiresAt }: AccessKeyRequest, until: number): void {
  if (expiresAt === undefined || Date.parse(expiresAt) > until) return;
  throw new Failure("usage", `The new key would expire at ${expiresAt}, before the overlap ends.`, {
    meaning: "Nothing was sent: no key would work after the overlap.",
    hint: "Give the new key a longer life with --expires-in, or shorten --overlap.",
  });
}

/** Uses the service's time only if this machine's clock is clearly wrong, because the `Date` header is less exact. */
function timeFor(bench: Workbench): number {
  const now = bench.clock.now();
  const ofService = serviceTime(bench);
  return Math.abs(ofService - now) > clockSkewMs ? ofService : now;
}

/**
 * @returns an empty object if the list lacks the key and may be incomplete
 * @throws Failure `not_found` if a complete list lacks the key, `unusable` if the key is revoked
 */
export function oldKeyOf(rows: Rows, id: string): AccessKey {
  const { keys, isWhole } = readKeys(rows);
  const oldKey = keys.find((key) => key.id === id);
  if (oldKey?.status === "revoked")
    throw new Failure("unusable", `The key ${id} is revoked: there is nothing to replace.`, {
      hint: "Create a key with integ keys create, then revoke the old one.",
    });
  if (oldKey !== undefined) return oldKey;
  if (!isWhole) return {};
  throw new Failure("not_found", `No key of the list has the id ${id}.`, { nextCommand: shell`integ keys list` });
}

/** @throws Failure `usage` for an invalid value, or with the name of each property that has no value */
export function replacementOf(old: AccessKey, flags: KeyFlags, nowMs: number): KeyCreation {
  const expiry = expiryOf(flags, nowMs);
  const name = flags.name ?? old.name;
  const keyType = flags.type ?? old.keyType;
  const scopes = flags.scope ?? old.scopes;
  const oldExpiry = futureExpiry(old.expiresAt, nowMs);
  const expiresAt = expiry === undefined ? oldExpiry : expiry.at;
  const missing = [
    name === undefined && "--name",
    keyType === undefined && "--type",
    scopes === undefined && "--scope",
    expiresAt === undefined && "--expires-in (or --expires-at never)",
  ].filter((flag) => flag !== false);
  if (name === undefined || keyType === undefined || scopes === undefined || expiresAt === undefined)
    throw new Failure("usage", `The API does not show enough of the old key: ${missing.join(", ")} must be given.`, {
      meaning:
        typeof old.expiresAt === "string"
          ? `Nothing was sent. The old key's expiry, ${old.expiresAt}, is in the past or invalid.`
          : "Nothing was sent: integ does not guess these values.",
    });
  const request = { name, keyType: keyType as AccessKeyRequest["keyType"], scopes, expiresAt: expiresAt || undefined };
  checkAccessKey(request, nowMs);
  return { request, expiry: expiry?.fingerprint, marked: flags.marker === true };
}

function futureExpiry(expiresAt: string | null | undefined, nowMs: number): string | null | undefined {
  if (typeof expiresAt !== "string") return expiresAt;
  return Date.parse(expiresAt) > nowMs ? expiresAt : undefined;
}
