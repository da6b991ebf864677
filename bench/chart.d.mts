/** Cost over size, as lines of text. */
export function growthChart(
  lines: readonly { readonly form: string; readonly size: number; readonly seconds: { readonly median: number } }[],
): string;
