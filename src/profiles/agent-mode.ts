// Agent mode: a program that writes its transcript elsewhere runs integ, so no secret may be on standard output.

/** A coding agent sets one of these in the commands that it runs. */
export const agentVariables = [
  "AI_AGENT",
  "AGENT",
  "CLAUDECODE",
  "CURSOR_AGENT",
  "GEMINI_CLI",
  "CODEX_SANDBOX",
  "CODEX_THREAD_ID",
  "CODEX_CI",
  "COPILOT_CLI",
  "OPENCODE",
] as const;

/** @returns the name of the variable that turns agent mode on; undefined if it is off */
export function agentMode(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const { INTEG_AGENT } = env;
  if (INTEG_AGENT) return isOff(INTEG_AGENT) ? undefined : "INTEG_AGENT";
  return agentVariables.find((name) => env[name] && !isOff(env[name]));
}

function isOff(value: string): boolean {
  return value === "0" || value.toLowerCase() === "false";
}
