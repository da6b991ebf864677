/** A string, a comment, or a line of a document. */
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

/** Hits of the glossary in these texts. */
export function replacedWords(texts: readonly Prose[]): readonly Omit<Hit, "file">[];

/** Strings and comments of a source file. */
export function proseOf(file: string, text: string): readonly Prose[];

/** Lines of a document, with comments of code blocks but no other code. */
export function proseOfDocument(text: string): readonly Prose[];

/** Hits in src/, scripts/, bench/, bin/ and all documents, except in test/. */
export function hitsIn(root: string): readonly Hit[];
