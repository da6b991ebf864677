// What a person does about an item that is left as it is.
import { type NextStep, shell } from "../../next-step.ts";
import type { Decision } from "../../policy/decide.ts";
import { fileWords } from "./policy-file.ts";

/** @param file the policy file */
export function stepForHeld({ item: { name, kind }, hold, holder, current }: Decision, file: string): NextStep {
  switch (hold) {
    case "stalled":
      return { nextCommand: shell`integ apply ${fileWords(file)} --retry ${name}` };
    case "own":
      return { nextCommand: shell`integ apply ${fileWords(file)} --include-own` };
    case "not_adopted": {
      const noun = kind === "oauth_client" ? "oauth-client" : "access-key";
      return { nextCommand: shell`integ adopt ${noun} ${current?.id ?? ""} --name ${name}` };
    }
    case "occupied":
      return { hint: `Name another destination for ${name} in the policy file${alternative(holder)}.` };
    default:
      return { hint: "Replace secret: unknown in the policy file." };
  }
}

function alternative(holder: Decision["holder"]): string {
  if (holder === undefined || (holder.id === undefined && !holder.isUnfinished)) return "";
  if (holder.isUnfinished) return `, or finish that change with integ journal recover ${holder.entry}`;
  const what = holder.kind === "oauth_client" ? "client" : "key";
  return `, or revoke the ${what} ${holder.id} if nothing uses it`;
}
