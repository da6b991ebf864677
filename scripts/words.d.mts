/** A text that a person reads, as the lint of words finds it. */
export interface Prose {
  readonly kind: "strings" | "comments" | "documents";
  readonly text: string;
  readonly line: number;
}

export interface Hit {
  readonly kind: string;
  readonly file: string;
  readonly line: number;
  readonly word: string;
  readonly say: string;
  readonly text: string;
}

/** What of these texts the glossary replaces. */
export function replacedWords(texts: readonly Prose[]): readonly Omit<Hit, "file">[];

/** The strings and comments of a source file. */
export function proseOf(file: string, text: string): readonly Prose[];

/** The lines of a document, without its code. */
export function proseOfDocument(text: string): readonly Prose[];

/** Every hit in the tracked files of a clone. */
export function hitsIn(root: string): readonly Hit[];
