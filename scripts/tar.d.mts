export interface ArchivedFile {
  readonly mode: number;
  readonly content: Buffer;
}

export function filesIn(tgz: Buffer): Map<string, ArchivedFile>;
export function tgzOf(files: readonly (ArchivedFile & { readonly path: string })[]): Buffer;
