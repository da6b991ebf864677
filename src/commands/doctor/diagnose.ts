import type { Context } from "../../context.ts";
import { Failure, isInterruption } from "../../errors.ts";
import type { Column } from "../../output/formats/format.ts";
import { defineVerb } from "../verb.ts";
import { machineChecks, profileChecks } from "./checks.ts";
import { type Check, type Diagnosis, problem, type Subject, warning } from "./diagnosis.ts";
import { serviceChecks } from "./service-checks.ts";
import { type NextCommand, shell } from "../../next-step.ts";

const requestTimeoutMs = 5000;

const columns: readonly Column[] = [
  { path: "status", heading: "status", kind: "status" },
  { path: "profile", heading: "profile" },
  { path: "check", heading: "check", kind: "sentence" },
  { path: "message", heading: "message", kind: "sentence" },
  { path: "hint", heading: "what to do", kind: "advice" },
  { path: "next", heading: "next", kind: "command" },
];

export const command = defineVerb({
  result: columns,
  configure: (command) => command.option("--all-profiles", "Check every stored profile"),
  examples: [
    { line: "integ doctor", does: "profile, address, TLS, clock, credential, permissions, contract, journal, files" },
    { line: "integ doctor --all-profiles", does: "each stored profile, and this machine once" },
    { line: "integ doctor -p prod -o json", does: "safe to paste into a ticket: it contains no secret" },
  ],
  more: "A check of the service waits up to 5 seconds. A missing permission is a problem if a change in this profile's journal entries needed it, or if all permissions are missing. Exit 10 if there is a problem; warnings alone are 0.",
  neverAsks: true,
  async run(context, { options }) {
    const isAll = options.allProfiles === true;
    if (isAll && context.settings.profile !== undefined)
      throw new Failure("usage", "--all-profiles and --profile contradict each other.", { hint: "Keep one of them." });
    const names = isAll ? await storedNames(context) : [undefined];
    const rows: ProfileDiagnosis[] = [];
    for (const name of names) {
      const ofProfile = await runChecks(subjectOf(context, name), [...profileChecks, ...serviceChecks]);
      rows.push(...(name === undefined ? ofProfile : ofProfile.map((row) => ({ profile: name, ...row }))));
    }
    const ofMachine = await runChecks(subjectOf(context), machineChecks);
    rows.push(...(isAll ? ofMachine.map((row) => ({ profile: null, ...row })) : ofMachine));
    await printRows(context, { rows, isAll });
  },
});

/** `profile` is set only with `--all-profiles`, and is null in a row about this machine. */
type ProfileDiagnosis = Diagnosis & { readonly profile?: string | null };

async function printRows(
  context: Context,
  { rows, isAll }: { readonly rows: readonly ProfileDiagnosis[]; readonly isAll: boolean },
): Promise<void> {
  const list = context.output.list({
    columns: columns.filter(({ path }) => isAll || path !== "profile"),
    singular: "check",
    plural: "checks",
  });
  const problems = rows.filter((row) => row.status === "problem").length;
  const shown = context.output.format === "table" ? mergedRows(rows) : rows;
  await list.whole(shown.map((row) => withoutHome(row, context.settings.home)));
  if (problems > 0)
    throw new Failure("findings", `${problems === 1 ? "1 problem was" : `${problems} problems were`} found.`);
}

function mergedRows(rows: readonly ProfileDiagnosis[]): ProfileDiagnosis[] {
  const shown = new Map<string, ProfileDiagnosis>();
  for (const row of rows) {
    const { check, ...result } = row;
    const key = JSON.stringify(row.status === "ok" ? row : result);
    const first = shown.get(key);
    shown.set(key, first === undefined ? row : { ...first, check: `${first.check}, ${check}` });
  }
  return [...shown.values()];
}

function subjectOf(context: Context, name?: string): Subject {
  let profile: ReturnType<Subject["profile"]> | undefined;
  let service: ReturnType<Subject["service"]> | undefined;
  const find = () => (name === undefined ? context.profiles.active() : context.profiles.named(name));
  const connect = async () => context.connect(await (profile ??= find()), { timeoutMs: requestTimeoutMs });
  return { context, profile: () => (profile ??= find()), service: () => (service ??= connect()) };
}

async function storedNames(context: Context): Promise<string[]> {
  const names = (await context.profiles.store()).list().map(({ name }) => name);
  if (names.length > 0) return names;
  throw new Failure("usage", "No profile is stored on this machine.", { nextCommand: shell`integ help profiles add` });
}

async function runChecks(subject: Subject, checks: readonly Check[]): Promise<Diagnosis[]> {
  const rows: Diagnosis[] = [];
  const reported = new Map<Failure, Diagnosis>();
  let missing: readonly Check["needs"][] = [];
  for (const { name, needs, run } of checks) {
    if (needs !== undefined && missing.includes(needs)) {
      const service = rows.find(({ check }) => check === "service")!;
      rows.push(service.status === "problem" ? notChecked(name, service) : { ...service, check: name });
      continue;
    }
    const { diagnoses, failure } = await runCheck({ name, run }, subject);
    if (name === "service" && failure?.kind === "unreachable") missing = ["address", "credential"];
    if (name === "service" && failure?.kind === "auth") missing = ["credential"];
    // Checks share the profile and the service, so several can fail with the same failure, which is reported once.
    const first = failure && reported.get(failure);
    rows.push(...(first ? [notChecked(name, first)] : diagnoses));
    if (failure && !first) reported.set(failure, diagnoses[0]!);
  }
  return rows;
}

/** Replaces the home folder, which can contain the user's name, by `~`. */
function withoutHome<Row extends Diagnosis>(row: Row, home: string): Row {
  if (home.length < 2) return row;
  const hidden = (text: string): string => text.replaceAll(`'${home}/`, "~/'").replaceAll(`${home}/`, "~/");
  return { ...row, message: hidden(row.message), next: row.next === null ? null : (hidden(row.next) as NextCommand) };
}

function notChecked(check: string, because: Diagnosis): Diagnosis {
  return warning(check, `not checked: ${because.check} has a problem`, {
    hint: `Correct the failed check "${because.check}" first.`,
  });
}

async function runCheck(
  { name, run }: Check,
  subject: Subject,
): Promise<{ readonly diagnoses: readonly Diagnosis[]; readonly failure?: Failure }> {
  try {
    return { diagnoses: await run(subject) };
  } catch (error) {
    const system = systemWords(error);
    if (system !== undefined) return { diagnoses: [problem(name, system)] };
    if (!(error instanceof Failure)) throw error;
    if (isInterruption(error)) throw error;
    const { meaning } = error.details;
    const message = name === "profile" && meaning !== undefined ? `${error.message} ${meaning}` : error.message;
    return { diagnoses: [problem(name, message, error.details)], failure: error };
  }
}

function systemWords(error: unknown): string | undefined {
  return error instanceof Error && "syscall" in error
    ? `The operating system refused a call: ${error.message}`
    : undefined;
}
