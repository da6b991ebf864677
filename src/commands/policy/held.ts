// The next steps for a person who must decide about held items.
import type { Context } from "../../context.ts";
import { flags, type NextCommand, type NextStep, shell, stepAs, stepBeside } from "../../next-step.ts";
import type { Decision } from "../../policy/decide.ts";
import type { ItemRef } from "../../policy/works.ts";
import { isSecretStored } from "../keys/own-key.ts";
import { fileWords } from "./policy-file.ts";

export function stepForHeld(decision: Decision, file: string): NextStep {
  const {
    item: { name },
    hold,
    holder,
    mayBeOwnOf: profile,
    entry = "",
    old = "",
  } = decision;
  switch (hold) {
    case "stalled":
      return { nextCommand: shell`integ apply ${fileWords(file)} --retry ${name}` };
    case "own":
      if (profile === undefined) return { nextCommand: shell`integ apply ${fileWords(file)} --include-own` };
      if (!isSecretStored({ name: profile }))
        return { hint: `Use a profile with a key id (${flags.apiKeyId}): ${shell`integ help profiles add`}` };
      return {
        hint: `Set the id of the profile's own key: ${shell`integ profiles edit ${profile} ${flags.apiKeyId} <id>`}`,
      };
    case "not_adopted": {
      const commands = adoptionCommands(decision, file);
      const last = commands.at(-1)!;
      if (commands.length === 1) return { nextCommand: last };
      const others = `what ${name} is: ${commands.slice(0, -1).join(", ")}, or`;
      return { hint: `Choose ${others}: ${last}` };
    }
    case "astray":
      return { nextCommand: shell`integ apply ${fileWords(file)} --redeliver ${name}` };
    // Only keys are rotated in place.
    case "lost":
      return { hint: `Revoke the old key if no program uses it any more: ${shell`integ keys revoke ${old}`}` };
    case "untrusted":
      return { nextCommand: shell`integ journal trust ${entry}` };
    case "uncertain": {
      const { id = "" } = decision.current ?? {};
      const isKey = decision.item.kind === "access_key";
      return {
        hint: `Revoke the ${isKey ? "key" : "client"} if nothing needs it any more, or add --retry ${name} to create another.`,
        nextCommand: isKey ? shell`integ keys list` : shell`integ oauth-clients get ${id}`,
      };
    }
    case "occupied":
      return { hint: `Name another destination for ${name} in the policy file${alternative(holder)}.` };
    default:
      return { hint: "Name the destination in the policy file: replace `secret: unknown`." };
  }
}

export interface HeldStep {
  readonly names: readonly string[];
  readonly step: NextStep;
}

/** Items with the same step share it. One command adopts all unambiguous items. */
export function heldSteps(decisions: readonly Decision[], file: string): HeldStep[] {
  const groups = new Map<string, Decision[]>();
  for (const decision of decisions) {
    const isUnambiguous = decision.current !== undefined && decision.choices?.length === 1;
    const key = isUnambiguous ? "adopt" : JSON.stringify(stepForHeld(decision, file));
    groups.set(key, [...(groups.get(key) ?? []), decision]);
  }
  return [...groups].map(([key, group]) => ({
    names: group.map(({ item }) => item.name),
    step:
      key === "adopt" && group.length > 1
        ? { nextCommand: shell`integ adopt --all ${fileWords(file)}` }
        : stepForHeld(group[0]!, file),
  }));
}

/** @param profile the profile that the policy file names */
export function reportHeld(
  { output, settings }: Context,
  steps: readonly HeldStep[],
  profile: string | undefined,
): void {
  const shown = (step: string): string => stepBeside(profile, stepAs(settings.profile, step));
  for (const {
    names,
    step: { hint, nextCommand },
  } of steps) {
    const command = typeof nextCommand === "string" ? shown(nextCommand) : "";
    const words = hint === undefined ? command : [shown(hint), command && `Next: ${command}`].filter(Boolean).join(" ");
    output.note(`${names.join(", ")}: ${words}`);
  }
}

export function adoptionCommands(
  { item: { name, kind }, hold, choices, current }: Decision,
  file: string,
): NextCommand[] {
  if (hold !== "not_adopted") return [];
  const candidates = choices ?? (current === undefined ? [] : [current]);
  return candidates.map(({ id }) => adoptionCommand({ kind, name }, id, file));
}

export function adoptionCommand({ kind, name }: Pick<ItemRef, "kind" | "name">, id: string, file: string): NextCommand {
  const noun = kind === "oauth_client" ? "oauth-client" : "access-key";
  return shell`integ adopt ${noun} ${id} ${fileWords(file)} --name ${name}`;
}

function alternative(holder: Decision["holder"]): string {
  if (holder === undefined || (holder.id === undefined && !holder.isUnfinished)) return "";
  if (holder.isUnfinished) return `, or finish that change with integ journal recover ${holder.entry}`;
  const what = holder.kind === "oauth_client" ? "client" : "key";
  return `, or revoke the ${what} ${holder.id} if nothing uses it`;
}
