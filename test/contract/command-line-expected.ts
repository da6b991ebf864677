// What the command line promises for an answer of the document: exit codes and words of docs/design/output.md, field by field.
import type { Answer, Json, JsonObject } from "./case.ts";
import { differences, expand, textAt } from "./matching.ts";
import type { Ended } from "../support/program.ts";

/** What is caught before anything is sent: bad input (exit 2). */
const looked = ["limit", "scopes", "service_account_id", "Idempotency-Key", "name", "expiresAt", "keyType", "query"];

export function isCaught(answer: Answer | "lost", path: string): boolean {
  const param = answer === "lost" || answer.status !== 400 ? undefined : answer.problem?.param;
  if (/[?&]limit=(0|501|-1|2\.5|)(&|$)/.test(path)) return true;
  if (param === "page_token") return /[?&]page_token=(&|$)/.test(path);
  return typeof param === "string" && looked.includes(param);
}

/** @param change the request was to change something; @param client the client's state where it is a creation */
export function exitOf(answer: Answer | "lost", given: { change: boolean; client?: JsonObject | undefined }): number {
  if (answer === "lost" || answer.status >= 500) return given.change ? 7 : answer === "lost" ? 11 : 1;
  const { status } = answer;
  if (status >= 400) return { 401: 3, 403: 3, 404: 4, 409: 5, 429: 6 }[status] ?? 1;
  if (!given.client) return 0;
  const { status: state, client_secret: secret } = given.client;
  if (state === "active") return secret === null ? 9 : 0;
  return state === "pending" ? 8 : 13;
}

/** Where what the program wrote differs from what the document's answer makes of it. */
export function complaintsAbout(
  ended: Ended,
  given: { answer: Answer; exit: number; names: Record<string, string>; rows: boolean },
): string[] {
  const { answer, exit, names, rows } = given;
  if (answer.status < 300 && exit === 0)
    return answer.body === undefined
      ? parsed(ended.stdout).complaints
      : bodyComplaints(ended, expand(answer.body, names), rows);
  const complaints = ended.stdout === "" ? [] : [`stdout is ${ended.stdout}`];
  const { value, complaints: broken } = parsed(ended.stderr.trimEnd().split("\n").at(-1) ?? "");
  if (broken.length > 0) return [...complaints, ...broken];
  const error = (value as JsonObject).error as JsonObject;
  if (error.exit_code !== exit) complaints.push(`exit_code is ${JSON.stringify(error.exit_code)}`);
  if (answer.status < 400) return complaints;
  const wanted = answer.problem ?? (isObject(answer.body) && answer.body.error ? { code: answer.body.error } : {});
  for (const [name, item] of Object.entries({ status: answer.status, request_id: "<text>", ...wanted }))
    complaints.push(...differences(error[name] ?? null, expand(item, names), `error.${name}`));
  return complaints;
}

function bodyComplaints({ stdout }: Ended, wanted: Json, rows: boolean): string[] {
  const { value, complaints } = parsed(stdout);
  if (complaints.length > 0) return complaints;
  // A list of the legacy contract is shown in the envelope of all lists.
  const whole = rows ? { ...(wanted as JsonObject), object: "list", next_page_token: null, has_more: false } : wanted;
  return differences(value, whole, "stdout");
}

function parsed(text: string): { value: Json; complaints: string[] } {
  try {
    return { value: JSON.parse(text), complaints: [] };
  } catch {
    return { value: null, complaints: [`not JSON: ${text.slice(0, 200)}`] };
  }
}

export function kept(stdout: string, keep: Readonly<Record<string, string>>): Record<string, string> {
  const { value } = parsed(stdout);
  return Object.fromEntries(Object.entries(keep).map(([name, path]) => [name, textAt(value, path)]));
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
