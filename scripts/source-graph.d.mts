export interface Import {
  /** Path below the source folder. */
  readonly from: string;
  /** As it is written. */
  readonly to: string;
  readonly typeOnly: boolean;
  /** Loaded when the line is reached, not when the file is. */
  readonly lazy: boolean;
}

export function filesBelow(folder: string): string[];
export function importsOf(file: string, source: string): Import[];
export function targetOf(one: Pick<Import, "from" | "to">, source: string): string | undefined;
export function circlesOf(imports: readonly Import[], source: string): string[][];
