// Everything in a failure may have come from elsewhere: it goes through the sanitiser.
import { Chalk } from "chalk";
import { exitCodes, type Failure, type Problem } from "../errors.ts";
import { shortened, visibleJson, visibleLines, visibleText } from "./visible-text.ts";

export interface FailureStyle {
  readonly format: string;
  /** A level as chalk has it, or whether to colour at all. */
  readonly colour: boolean | number;
  readonly exitCode: number;
}

/** As much of the service's own words as anybody reads. */
const longestText = 2000;

/**
 * A failure as it goes to standard error, with its last new line. For `json` and `ndjson` one line, a JSON object of
 * the keys that apply; otherwise what happened, what it means, what to type next, and where it was.
 */
export function renderFailure(failure: Failure, style: FailureStyle): string {
  return style.format === "json" || style.format === "ndjson" ? asJson(failure, style) : forPerson(failure, style);
}

function asJson(failure: Failure, { exitCode }: FailureStyle): string {
  const { hint, meaning, problem = {} } = failure.details;
  const error = {
    kind: failure.kind,
    // The object has no key for the meaning, and a program has to read what a person reads.
    message: hint === undefined || meaning === undefined ? failure.message : `${failure.message} ${meaning}`,
    exit_code: exitCode,
    status: problem.status,
    code: problem.code,
    title: problem.title,
    detail: problem.detail,
    param: problem.param,
    request_id: problem.request_id,
    doc_url: problem.doc_url,
    retryable: problem.retryable,
    hint: hint ?? meaning,
  };
  return `${visibleJson(JSON.stringify({ error }))}\n`;
}

function forPerson(failure: Failure, style: FailureStyle): string {
  const paint = painter(style.colour);
  const { meaning, hint, problem } = failure.details;
  const lines = [`${paint.red.bold("integ:")} ${oneLine(failure.message)}`];
  if (problem !== undefined) lines.push(...serviceWords(problem));
  if (meaning !== undefined) lines.push(indented(meaning, "  "));
  if (hint !== undefined) lines.push(`  ${paint.bold("Next:")} ${indented(hint, "        ").trimStart()}`);
  lines.push(`  ${paint.dim(whereLine(failure, style.exitCode))}`);
  return `${lines.join("\n")}\n`;
}

function serviceWords({ title, detail, code, param }: Problem): string[] {
  const words = [title, detail].filter((text) => text !== undefined && text !== "").map((text) => oneLine(text ?? ""));
  const marks = [code, param === undefined ? undefined : `parameter ${param}`].filter((text) => text !== undefined);
  if (words.length === 0 && marks.length === 0) return [];
  const brackets = marks.length === 0 ? "" : ` (${marks.map(oneLine).join(", ")})`;
  return [`  The service says: ${words.join(": ")}${brackets}`.replace(":  (", ": (")];
}

/** What follows from an answer that came: its id is shown if it is at hand, and is not "unknown" if it is not. */
const answered: ReadonlySet<string> = new Set(["pending", "secret_lost", "undelivered", "unusable"]);

/** Where, the request's id, the error's address, the exit code. */
function whereLine({ kind, details }: Failure, exitCode: number): string {
  const { where, request, problem } = details;
  const wasRequest = request !== undefined || problem !== undefined || kind === "outcome_unknown";
  const id = problem?.request_id ?? (answered.has(kind) ? undefined : "unknown");
  const parts = [
    where,
    request,
    wasRequest && id !== undefined ? `request id ${id}` : undefined,
    problem?.status === undefined ? undefined : `status ${problem.status}`,
    problem?.doc_url,
    details.entry === undefined ? undefined : `journal entry ${details.entry}`,
    `exit ${exitCode}`,
  ];
  return parts
    .filter((part) => part !== undefined)
    .map(oneLine)
    .join(" · ");
}

/**
 * An error that nobody foresaw, with its stack: a bug of this program.
 * @param style JSON formats get the same object as a failure, kind `failed`
 */
export function renderBug(error: unknown, style?: FailureStyle): string {
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  const message = `a bug in integ: ${error instanceof Error ? error.message : String(error)}`;
  if (style?.format === "json" || style?.format === "ndjson") {
    return `${visibleJson(JSON.stringify({ error: { kind: "failed", message, exit_code: style.exitCode } }))}\n`;
  }
  const paint = painter(style?.colour ?? false);
  return [
    `${paint.red.bold("integ:")} ${oneLine(message)}`,
    "  This should never happen. Please report it with the lines below, once you have looked through them.",
    indented(stack, "    "),
    `  ${paint.dim(`exit ${style?.exitCode ?? exitCodes.failed}`)}\n`,
  ].join("\n");
}

function painter(colour: boolean | number): InstanceType<typeof Chalk> {
  const level = typeof colour === "number" ? colour : colour ? 1 : 0;
  return new Chalk({ level: level === 3 ? 3 : level === 2 ? 2 : level === 1 ? 1 : 0 });
}

function oneLine(text: string): string {
  return shortened(visibleText(text), longestText);
}

/** Several lines, each behind the margin: no line that came from elsewhere can pass for one of ours. */
function indented(text: string, margin: string): string {
  return shortened(visibleLines(text), longestText)
    .split("\n")
    .map((line) => margin + line)
    .join("\n");
}
