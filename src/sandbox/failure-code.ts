// Owns: the `code` of what was thrown. Must not know: what any code means.

/** `code` of a system error or of one of ours, undefined where there is none. */
export function codeOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
