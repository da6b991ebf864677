// Who is at work here, as the journal's records name it.
import { hostname, userInfo } from "node:os";
import { type Actor, runIn } from "../journal/actor.ts";

export function actorOf(env: Readonly<Record<string, string | undefined>>): Actor {
  return { user: userName() ?? (env.USER || env.LOGNAME || "unknown"), host: hostname(), run: runIn(env) };
}

/** Nothing for a user number without a name, as containers have them. */
function userName(): string | undefined {
  try {
    return userInfo().username;
  } catch {
    return undefined;
  }
}
