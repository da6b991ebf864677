// Checks recorded responses of the sandbox against its OpenAPI documents. Responses that a fault breaks on purpose are
// excluded by the fault's name.
import { type Document, OpenApiCheck } from "./openapi-check.ts";
import type { Played } from "./player.ts";

/** One exchange as record-answers.cjs writes it. `status` is absent if no complete response was sent. */
export interface RecordedAnswer extends Omit<Played, "status" | "headers" | "text">, Partial<Played> {
  readonly method: string;
  readonly path: string;
  readonly faults: readonly string[];
}

/** Faults that break the response on purpose: incomplete, another body, or an envelope that violates its rule. */
const breakingFaults = ["drop", "cut", "body", "envelope"];
/** Faults that choose the status of any operation. Only the error object is checked. */
const statusFaults = ["status", "redirect", "retry-after"];

export class AnswersCheck {
  readonly #check: OpenApiCheck;
  readonly wrong: string[] = [];
  #checked = 0;
  #excluded = 0;

  constructor(documents: readonly Document[]) {
    this.#check = new OpenApiCheck(documents);
  }

  take(answer: RecordedAnswer): void {
    const { status, headers, text, faults } = answer;
    const hasFault = (names: readonly string[]): boolean => faults.some((fault) => names.includes(fault));
    if (status === undefined || headers === undefined || text === undefined || hasFault(breakingFaults)) {
      this.#excluded += 1;
      return;
    }
    this.#checked += 1;
    const played = { ...answer, status, headers, text };
    this.wrong.push(
      ...(hasFault(statusFaults)
        ? this.#check.complaintsAboutProblem(played, `by fault ${status}`)
        : this.#check.complaintsAbout(played)),
    );
  }

  /** @returns a sentence for the run's summary; a kind is an operation with a status */
  figure(): string {
    const kinds = this.#check.responseKinds.size;
    const excluded = `${this.#excluded} broken on purpose (${breakingFaults.join(", ")})`;
    return `${this.#checked} answers of ${kinds} kinds checked, ${this.wrong.length} wrong; ${excluded}`;
  }
}
