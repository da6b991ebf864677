// Owns: making a thing when it is first asked for, and once.

/** @returns a function that runs `make` at its first call and gives that answer ever after; a failure is tried again */
export function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}
