export interface Prose {
  readonly kind: "strings" | "titles" | "comments" | "documents";
  readonly text: string;
  readonly line: number;
}

export interface Hit {
  readonly kind: Prose["kind"];
  readonly file: string;
  readonly line: number;
  readonly word: string;
  readonly say: string;
  readonly text: string;
}

export function replacedWords(texts: readonly Prose[]): readonly Omit<Hit, "file">[];

export function proseOf(file: string, text: string): readonly Prose[];

export function proseOfDocument(text: string): readonly Prose[];

export function hitsIn(root: string): readonly Hit[];
