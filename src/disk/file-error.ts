// Reads what a failed file call says of itself.

/** errno name and call of a failed system call, or undefined where it is no such error. */
export function failedCall(error: unknown): { readonly code: string; readonly call: string } | undefined {
  if (!(error instanceof Error) || !("code" in error) || !("syscall" in error)) return undefined;
  const { code, syscall } = error;
  return typeof code === "string" && typeof syscall === "string" ? { code, call: syscall } : undefined;
}

/** errno name of a failed system call. */
export function errorCode(error: unknown): string | undefined {
  return failedCall(error)?.code;
}
