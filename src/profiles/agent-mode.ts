// An agent that runs integ sends its transcript elsewhere, so in agent mode stdout contains no secrets.

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

/** @returns the variable that enables agent mode, or undefined */
export function agentMode(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const { INTEG_AGENT } = env;
  if (INTEG_AGENT) return isOff(INTEG_AGENT) ? undefined : "INTEG_AGENT";
  return agentVariables.find((name) => env[name] && !isOff(env[name]));
}

function isOff(value: string): boolean {
  return value === "0" || value.toLowerCase() === "false";
}
