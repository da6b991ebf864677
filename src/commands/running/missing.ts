// Finds out why this machine cannot finish an entry. Sends no request, runs no command and reads no stored secret.
import type { Context } from "../../context.ts";
import { Failure, onFailure } from "../../errors.ts";
import { otherAccount, setEnvironment } from "../../operations/entry-account.ts";
import { type Entry, isSettled, kindOf, nextStep } from "../../journal/entry.ts";
import type { EntryExtras } from "../journal/view.ts";
import { type NextStep, shell } from "../../next-step.ts";
import { type Contract, missingCredentialOf } from "../../profiles/profile.ts";
import { sandboxRegions } from "../../profiles/resolution.ts";
import { fittingProfile } from "./change.ts";

export async function missingAccount(context: Context, entry: Entry): Promise<Failure | undefined> {
  const { isShared } = await context.journal();
  const { profile, id } = entry;
  if (isShared) {
    if ((await fittingProfile(context, entry)) !== undefined) return undefined;
    return new Failure(
      "auth",
      `No profile of this machine is bound to the account of ${id} (${accountWords(entry)}).`,
      {
        meaning: `Nothing was sent. It was requested as profile "${profile}", perhaps on another machine.`,
        // Profile `env` comes from variables, such as those of a CI job, which any machine can set.
        ...(profile === "env" ? setEnvironment(entry) : { nextCommand: shell`integ help profiles add` }),
      },
    );
  }
  if (sandboxRegions.has(profile)) return undefined;
  if (profile === "env") return inEnvironment(context, entry);
  return profileFailure(context, entry);
}

function accountWords({ base_url, organization_id, principal }: Entry): string {
  const organization = organization_id === null ? "without an organization" : `organization ${organization_id}`;
  return [base_url, organization, ...(principal === undefined ? [] : [`client ${principal}`])].join(", ");
}

/** Also checks the credential, as far as possible without a request. */
export async function missingFor(context: Context, entry: Entry): Promise<Failure | undefined> {
  const missing = await missingAccount(context, entry);
  if (missing !== undefined) return missing;
  const contract = kindOf(entry) === "access_key" ? "legacy" : "v1";
  const { isShared } = await context.journal();
  const name = (isShared ? await fittingProfile(context, entry) : undefined)?.name ?? entry.profile;
  const failure = await missingCredential(context, name, contract);
  return failure && name === "env" ? withDetails(failure, setEnvironment(entry)) : failure;
}

/** @returns undefined if the profile can use the contract, or does not exist */
export async function missingCredential(
  { profiles }: Context,
  name: string,
  contract: Contract,
): Promise<Failure | undefined> {
  if (sandboxRegions.has(name)) return undefined;
  if (name !== "env") {
    const stored = (await profiles.store()).get(name);
    return stored && missingCredentialOf(stored, contract);
  }
  // Runs no command: the credential of profile `env` comes from variables.
  const usable = profiles.named(name).then<unknown>((env) => (contract === "legacy" ? env.legacy() : env.credential()));
  return usable.then(
    () => undefined,
    onFailure((failure) => failure),
  );
}

function withDetails({ kind, message, details }: Failure, step: NextStep): Failure {
  return new Failure(kind, message, { ...details, ...step });
}

async function inEnvironment({ profiles }: Context, entry: Entry): Promise<Failure | undefined> {
  return profiles.named("env").then(
    (env) => otherAccount(entry, { ...env, profileId: env.id }, false),
    onFailure((failure) => withDetails(failure, setEnvironment(entry))),
  );
}

/** Explains that the entry's profile was removed, or that the profile's name now means another account. */
async function profileFailure({ profiles }: Context, entry: Entry): Promise<Failure | undefined> {
  const { id, profile: name, state } = entry;
  if ((await profiles.store()).get(name) === undefined)
    return new Failure("auth", `The profile "${name}", which requested it, no longer exists.`, {
      meaning: "Nothing was sent: the idempotency key and the client belong to the original account.",
      nextCommand: state === "undelivered" ? shell`integ journal claim ${id}` : shell`integ journal forget ${id}`,
    });
  const profile = await profiles.named(name);
  return otherAccount(entry, { ...profile, profileId: profile.id }, false);
}

type RequiredStep = EntryExtras["first"];

export function requiredStepOf(entry: Entry, { message, details: { nextCommand, hint } }: Failure): RequiredStep {
  // A `nextCommand` object repeats the typed command, which is not a step of the entry.
  if (typeof nextCommand === "object" || (nextCommand === undefined && hint === undefined)) return undefined;
  const isOwn = nextCommand === undefined || nextCommand === nextStep(entry);
  if (isOwn && hint === undefined) return undefined;
  return { needs: hint ?? message, command: isOwn ? null : nextCommand };
}

export async function localStep(context: Context, entry: Entry): Promise<NextStep> {
  const missing = entry.state === "undelivered" ? undefined : await missingFor(context, entry);
  return missing?.details ?? { nextCommand: nextStep(entry) ?? undefined };
}

/** @returns what this machine needs before the entry's own step, by entry id; each reason is printed once */
export async function noteMissing(context: Context, entries: readonly Entry[]): Promise<Map<string, RequiredStep>> {
  const missing = new Map<string, RequiredStep>();
  const reasons = new Map<string, string[]>();
  const usable = new Set<string>();
  for (const entry of entries) {
    // The delivery of a kept secret needs no account.
    if (isSettled(entry.state) || entry.state === "undelivered" || usable.has(accountKey(entry))) continue;
    const failure = await missingFor(context, entry);
    if (failure === undefined) {
      usable.add(accountKey(entry));
      continue;
    }
    missing.set(entry.id, requiredStepOf(entry, failure));
    const why = `${failure.message} ${failure.details.hint ?? ""}`.trim();
    reasons.set(why, [...(reasons.get(why) ?? []), entry.id]);
  }
  for (const [why, ids] of reasons) {
    const more = ids.length > 3 ? ` and ${ids.length - 3} more` : "";
    context.output.note(`${ids.slice(0, 3).join(", ")}${more}: ${why}`);
  }
  return missing;
}

function accountKey(entry: Entry): string {
  const { profile, profile_id, base_url, organization_id, principal, operation } = entry;
  return JSON.stringify([profile, profile_id, base_url, organization_id, principal, operation]);
}
