export interface Import {
  /** The path relative to the source folder. */
  readonly from: string;
  readonly to: string;
  readonly typeOnly: boolean;
  readonly lazy: boolean;
}

export function filesBelow(folder: string): string[];
export function importsOf(file: string, source: string): Import[];
export function targetOf(one: Pick<Import, "from" | "to">, source: string): string | undefined;
export function importCycles(imports: readonly Import[], source: string): string[][];
