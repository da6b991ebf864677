export declare function comparePackages(
  given: Buffer,
  made: Buffer,
): { readonly code: 0 | 1; readonly lines: readonly string[] };
