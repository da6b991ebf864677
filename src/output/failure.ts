// Renders failures as text or JSON, and escapes their texts, which may be untrusted.
import { Chalk } from "chalk";
import { exitCodes, type Failure, type Problem, reasonOf } from "../errors.ts";
import { commandAfter } from "../next-step.ts";
import { joinedWithin, wrapped } from "./formats/layout.ts";
import { isolated, shortened, visibleJson, visibleLines, visibleText } from "./visible-text.ts";

export interface FailureStyle {
  readonly format: string;
  /** The color level as in chalk; true is level 1. */
  readonly color: boolean | number;
  readonly exitCode: number;
  /** Words after `integ`, for a next step that repeats the command. */
  readonly typed?: readonly string[];
  /** Columns of the terminal; undefined prevents wrapping. */
  readonly width?: number | undefined;
}

const maxTextLength = 2000;

export function renderFailure(failure: Failure, style: FailureStyle): string {
  return style.format === "json" || style.format === "ndjson" ? asJson(failure, style) : asText(failure, style);
}

function asJson(failure: Failure, { exitCode, typed = [] }: FailureStyle): string {
  const { hint, nextCommand, meaning, problem = {} } = failure.details;
  const error = {
    kind: failure.kind,
    // The error object has no other place for the meaning.
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

function asText(failure: Failure, style: FailureStyle): string {
  const paint = painter(style.color);
  const { meaning, hint, nextCommand, problem } = failure.details;
  const wrap = (text: string, margin: string): string =>
    isolated(wrapped(text, { width: style.width, margin }), style.width !== undefined);
  // Findings are a result, not an error.
  const label = failure.kind === "findings" ? "" : "Error: ";
  const first = wrap(`${label}${oneLine(failure.message)}`, "  ").trimStart();
  const lines = [label === "" ? paint.bold(first) : first.replace("Error:", paint.red.bold("Error:"))];
  if (problem !== undefined) lines.push(...serviceWords(problem).map((line) => wrap(line, "  ")));
  if (meaning !== undefined) lines.push(...linesOf(meaning).map((line) => wrap(line, "  ")));
  if (hint !== undefined) lines.push(wrap(`Fix: ${linesOf(hint).join(" ")}`, "  ").replace("Fix:", paint.bold("Fix:")));
  const next = nextCommand && commandAfter(nextCommand, style.typed ?? []);
  const command = next && visibleText(next);
  // The command is neither wrapped nor cut, so that users can paste it.
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

/** These failures follow a response, so a missing request id is omitted instead of shown as `unknown`. */
const answered: ReadonlySet<string> = new Set(["pending", "secret_lost", "undelivered", "unusable"]);

/** Omits facts that the message or the command already shows. */
function whereLines(
  { kind, message, details }: Failure,
  {
    exitCode,
    width,
    command = "",
  }: Pick<FailureStyle, "exitCode" | "width"> & { readonly command?: string | undefined },
): string[] {
  const { where, request, problem, entry } = details;
  const isOfRequest = request !== undefined || problem !== undefined || kind === "outcome_unknown";
  const id = problem?.request_id ?? (answered.has(kind) ? undefined : "unknown");
  const showsStatus = message.includes(String(problem?.status));
  const parts = [
    where,
    request,
    isOfRequest && id !== undefined ? `request id ${id}` : undefined,
    problem?.status === undefined || showsStatus ? undefined : `status ${problem.status}`,
    entry === undefined || command.includes(entry) ? undefined : `journal entry ${entry}`,
    `exit ${exitCode}`,
  ];
  return joinedWithin(parts.filter((part) => part !== undefined).map(oneLine), width && width - 2);
}

export function renderBug(error: unknown, style?: FailureStyle): string {
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  const message = `This is a bug in integ: ${reasonOf(error)}`;
  if (style?.format === "json" || style?.format === "ndjson") {
    return `${visibleJson(JSON.stringify({ error: { kind: "failed", message, exit_code: style.exitCode } }))}\n`;
  }
  const paint = painter(style?.color ?? false);
  return [
    `${paint.red.bold("Error:")} ${oneLine(message)}`,
    "  Please report it with the lines below, after you have read them.",
    // Indented, untrusted lines cannot imitate integ's own.
    ...linesOf(stack).map((line) => `    ${line}`),
    `  ${paint.dim(`exit ${style?.exitCode ?? exitCodes.failed}`)}\n`,
  ].join("\n");
}

function painter(color: boolean | number): InstanceType<typeof Chalk> {
  const level = typeof color === "number" ? color : color ? 1 : 0;
  return new Chalk({ level: level === 3 ? 3 : level === 2 ? 2 : level === 1 ? 1 : 0 });
}

function oneLine(text: string): string {
  return shortened(visibleText(text), maxTextLength);
}

function linesOf(text: string): string[] {
  return shortened(visibleLines(text), maxTextLength).split("\n");
}
