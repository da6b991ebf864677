// What `journal verify` has to report.

export interface Finding {
  readonly severity: "problem" | "warning";
  /** File with line and offset, or the entry. */
  readonly where: string;
  /** One sentence: what is wrong, and what to do if something can be done. */
  readonly message: string;
}
