import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import type { PlanOptions } from "../../policy/plan.ts";
import type { Policy } from "../../policy/policy.ts";
import type { ActiveProfile } from "../../profiles/profile.ts";
import type { ItemKind } from "../../policy/works.ts";
import { missingCredential } from "../running/missing.ts";

/** @returns a context that acts with the policy's profile, unless `--profile` is given */
export function actingFor(context: Context, { profile: name }: Policy): Context {
  if (name === undefined || context.settings.profile !== undefined) return context;
  let chosen: Promise<ActiveProfile> | undefined;
  const active = (): Promise<ActiveProfile> =>
    (chosen ??= context.profiles.named(name, "policy").then((profile) => {
      for (const note of profile.notes) context.output.note(note);
      return profile;
    }));
  return {
    ...context,
    profiles: { ...context.profiles, active },
    connect: async (profile, options) => context.connect(profile ?? (await active()), options),
  };
}

export function missingForItems(context: Context, profile: string, kind: ItemKind): Promise<Failure | undefined> {
  return missingCredential(context, profile, kind === "oauth_client" ? "v1" : "legacy");
}

interface Flags {
  readonly only?: readonly string[] | undefined;
  readonly retry?: readonly string[] | undefined;
  readonly redeliver?: readonly string[] | undefined;
  readonly finish?: readonly string[] | undefined;
  readonly includeOwn?: boolean | undefined;
  readonly adopt?: boolean | undefined;
}

export function planOptions({ only, retry, redeliver, finish, includeOwn = false, adopt = false }: Flags): PlanOptions {
  const [onlyThese, retried, redelivered, finished] = [only, retry, redeliver, finish].map((names) => new Set(names));
  return { only: onlyThese!, retry: retried!, redeliver: redelivered!, finish: finished!, includeOwn, adopt };
}

export function assertNames({ items }: Policy, names: readonly string[], flag: string): void {
  const unknown = names.find((name) => !items.some((item) => item.name === name));
  if (unknown === undefined) return;
  const itemNames = items.map(({ name }) => name);
  throw new Failure("usage", `${flag}: no item of the policy is named "${unknown}".`, {
    meaning: `Nothing was sent. Items: ${itemNames.slice(0, 20).join(", ") || "none"}${itemNames.length > 20 ? ", …" : ""}.`,
  });
}
