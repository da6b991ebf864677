/**
 * Waits for all started tasks. After an error, no other task starts.
 * @throws the first error
 */
export async function eachInParallel<T>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0;
  let failed: { error: unknown } | undefined;
  const worker = async (): Promise<void> => {
    while (next < items.length && failed === undefined) {
      const item = items[next++]!;
      try {
        await work(item);
      } catch (error) {
        failed ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  if (failed !== undefined) throw failed.error;
}
