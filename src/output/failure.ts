// Everything in a failure may have come from elsewhere: it goes through the sanitiser.
import { Chalk } from "chalk";
import { exitCodes, type Failure, type Problem } from "../errors.ts";
import { commandAfter } from "../next-step.ts";
import { joinedWithin, wrapped } from "./formats/layout.ts";
import { shortened, visibleJson, visibleLines, visibleText } from "./visible-text.ts";

export interface FailureStyle {
  readonly format: string;
  /** A level as chalk has it, or whether to colour at all. */
  readonly colour: boolean | number;
  readonly exitCode: number;
  /** The words after `integ` that were typed, for a next step that is the same command. */
  readonly typed?: readonly string[];
  /** Columns of the terminal; lines that no one sees on one are not wrapped. */
  readonly width?: number | undefined;
}

/** As much of the service's own words as anyone reads. */
const longestText = 2000;

/**
 * A failure as it goes to standard error, with its last new line. For `json` and `ndjson` one line, a JSON object of
 * the keys that apply; otherwise what happened, what it means, what to type next, and where it was.
 */
export function renderFailure(failure: Failure, style: FailureStyle): string {
  return style.format === "json" || style.format === "ndjson" ? asJson(failure, style) : forPerson(failure, style);
}

function asJson(failure: Failure, { exitCode, typed = [] }: FailureStyle): string {
  const { hint, nextCommand, meaning, problem = {} } = failure.details;
  const error = {
    kind: failure.kind,
    // The object has no key for the meaning, and a program has to read what a person reads.
    message: meaning === undefined ? failure.message : `${failure.message} ${meaning}`,
    exit_code: exitCode,
    status: problem.status,
    code: problem.code,
    title: problem.title,
    detail: problem.detail,
    param: problem.param,
    request_id: problem.request_id,
    doc_url: problem.doc_url,
    retryable: problem.retryable,
    hint,
    next_command: nextCommand && commandAfter(nextCommand, typed),
  };
  return `${visibleJson(JSON.stringify({ error }))}\n`;
}

function forPerson(failure: Failure, style: FailureStyle): string {
  const paint = painter(style.colour);
  const { meaning, hint, nextCommand, problem } = failure.details;
  const wrap = (text: string, margin: string): string => wrapped(text, { width: style.width, margin });
  const first = wrap(`Error: ${oneLine(failure.message)}`, "  ").trimStart();
  const lines = [first.replace("Error:", paint.red.bold("Error:"))];
  if (problem !== undefined) lines.push(...serviceWords(problem).map((line) => wrap(line, "  ")));
  if (meaning !== undefined) lines.push(...linesOf(meaning).map((line) => wrap(line, "  ")));
  if (hint !== undefined) lines.push(wrap(`Fix: ${linesOf(hint).join(" ")}`, "  ").replace("Fix:", paint.bold("Fix:")));
  const next = nextCommand && commandAfter(nextCommand, style.typed ?? []);
  const command = next && visibleText(next);
  // Never wrapped, never cut: it is to be pasted.
  if (command !== undefined) lines.push(`  ${paint.bold("Next:")} ${command}`);
  if (problem?.doc_url !== undefined) lines.push(`  ${paint.bold("See:")} ${oneLine(problem.doc_url)}`);
  lines.push(...whereLines(failure, { ...style, command }).map((line) => `  ${paint.dim(line)}`));
  return `${lines.join("\n")}\n`;
}

function serviceWords({ title, detail, code, param }: Problem): string[] {
  const words = [title, detail].filter((text) => text !== undefined && text !== "").map((text) => oneLine(text ?? ""));
  const marks = [code, param === undefined ? undefined : `parameter ${param}`].filter((text) => text !== undefined);
  if (words.length === 0 && marks.length === 0) return [];
  const brackets = marks.length === 0 ? "" : ` (${marks.map(oneLine).join(", ")})`;
  return [`The service says: ${words.join(": ")}${brackets}`.replace(":  (", ": (")];
}

/** What follows from a response that came: its id is shown if it is at hand, and is not "unknown" if it is not. */
const answered: ReadonlySet<string> = new Set(["pending", "secret_lost", "undelivered", "unusable"]);

/** Where, the request, its id, the exit code: one line if they fit. The rest is said only if it was not said before. */
function whereLines(
  { kind, message, details }: Failure,
  {
    exitCode,
    width,
    command = "",
  }: Pick<FailureStyle, "exitCode" | "width"> & { readonly command?: string | undefined },
): string[] {
  const { where, request, problem, entry } = details;
  const wasRequest = request !== undefined || problem !== undefined || kind === "outcome_unknown";
  const id = problem?.request_id ?? (answered.has(kind) ? undefined : "unknown");
  const isStatusSaid = message.includes(String(problem?.status));
  const parts = [
    where,
    request,
    wasRequest && id !== undefined ? `request id ${id}` : undefined,
    problem?.status === undefined || isStatusSaid ? undefined : `status ${problem.status}`,
    entry === undefined || command.includes(entry) ? undefined : `journal entry ${entry}`,
    `exit ${exitCode}`,
  ];
  return joinedWithin(parts.filter((part) => part !== undefined).map(oneLine), width && width - 2);
}

/**
 * An error that no one foresaw, with its stack: a bug of this program.
 * @param style JSON formats get the same object as a failure, kind `failed`
 */
export function renderBug(error: unknown, style?: FailureStyle): string {
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  const message = `This is a bug in integ: ${error instanceof Error ? error.message : String(error)}`;
  if (style?.format === "json" || style?.format === "ndjson") {
    return `${visibleJson(JSON.stringify({ error: { kind: "failed", message, exit_code: style.exitCode } }))}\n`;
  }
  const paint = painter(style?.colour ?? false);
  return [
    `${paint.red.bold("Error:")} ${oneLine(message)}`,
    "  Please report it with the lines below, after you have read them.",
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

/** As much as anyone reads, line by line, nothing in it acting. */
function linesOf(text: string): string[] {
  return shortened(visibleLines(text), longestText).split("\n");
}

/** Several lines, each behind the margin: no line that came from elsewhere can pass for one of ours. */
function indented(text: string, margin: string): string {
  return shortened(visibleLines(text), longestText)
    .split("\n")
    .map((line) => margin + line)
    .join("\n");
}
