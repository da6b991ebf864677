import type { KeysAudit } from "./audit-all.ts";
import type { Caller, Finding, Severity, Thresholds } from "./audit-rules.ts";
import { findingColumns } from "./keys.ts";
import { callerOf, isSecretStored, ownershipIn } from "./own-key.ts";
import { parseLifetime } from "../options/global.ts";
import { read, serviceNow, whereOf } from "../running/read.ts";
import { defineVerb } from "../verb.ts";
import type { Rows } from "../../api/json/unknown-list.ts";
import type { Context } from "../../context.ts";
import { Failure, onFailure } from "../../errors.ts";
import { dueAt } from "../../journal/entry.ts";
import { type Advice, shell, stepAs } from "../../next-step.ts";
import { isOf } from "../../policy/works.ts";
import type { ActiveProfile } from "../../profiles/profile.ts";
import type { ListView } from "../../output/formats/format.ts";
import { relativeTime } from "../../output/relative-time.ts";

export const command = defineVerb({
  isPaged: true,
  formats: ["sarif"],
  fields: findingColumns.map(({ path }) => path),
  result: [...findingColumns, { path: "id", heading: "id" }],
  configure: (command) =>
    command
      .option("--max-age <duration>", "Report keys older than this as too old", "90d")
      .option("--max-idle <duration>", "Report keys unused for this long as idle", "30d")
      .option("--expires-within <duration>", "Report keys that expire within this time as expiring", "14d")
      .addOption(
        command
          .createOption("--fail-on <severity>", "Exit with 10 for findings of this severity or worse")
          .choices(["low", "medium", "high"] as const)
          .default("low" as const),
      )
      .option("--strict", "Exit with 10 also for keys that cannot be judged")
      .option("--waivers <file>", "File of findings that are accepted until a date")
      .option("--fix", "Revoke unused keys and replace old ones, after you confirm")
      .option("--dry-run", "With --fix: show what would be sent, and change nothing"),
  examples: [
    { line: "integ keys audit", does: "which keys are a risk, the worst first, and what to do" },
    { line: "integ keys audit --json --fail-on high --waivers keys-waivers.json", does: "fail a CI job: exit 10" },
    {
      line: "integ keys audit --fix --waivers keys-waivers.json",
      does: "revoke unused keys, replace old ones",
    },
    { line: "integ keys audit --max-age 180d --max-idle 60d --ndjson", does: "one finding per line" },
  ],
  more: '--fix replaces an old or expiring key, with an overlap of 1d, if its secret went to a file, profile or store, and leaves keys of policy items to integ apply. A waiver file looks like {"waivers":[{"rule":"no_expiry","key":"ak_1","until":"2027-01-31","reason":"accepted"}]}; after that day the finding is reported again. Rules: expired_active, expiring, no_expiry, never_used, idle, too_old, full_access, user_bound.',
  async run(context, { options }) {
    const limits = {
      maxAgeMs: parseLifetime(options.maxAge, "--max-age"),
      maxIdleMs: parseLifetime(options.maxIdle, "--max-idle"),
      expiresWithinMs: parseLifetime(options.expiresWithin, "--expires-within"),
    };
    const { isAtLeast } = await import("./audit-rules.ts");
    const { waiversIn } = await import("./audit-waivers.ts");
    const { auditKeys } = await import("./audit-all.ts");
    const waivers = waiversIn(context, options.waivers);
    const profile = await context.profiles.active();
    const service = await context.connect(profile);
    const list = async () => (await read(context, "list access keys", () => service.accessKeys.list())).value;
    const value = await list();
    const now = serviceNow(context, service);
    const ending = new Map([...(await ofPolicies(context, profile)), ...(await overlaps(context, profile))]);
    const at = { now, limits, caller: callerIn(profile, value, now), ending };
    const audited = ({ rows }: typeof value) =>
      auditKeys(
        rows.map((row) => row.value),
        at,
        waivers,
      );
    const audit = audited(value);
    const report = { audit, complete: !value.saysMore, limits, now };
    if (options.fix) {
      if (context.output.format === "table") await print(context, report);
      const { fixKeys } = await import("./audit-fix.ts");
      const again = async () => audited(await list()).findings;
      const left = await fixKeys(context, audit.findings, { isTrial: options.dryRun === true, again });
      if (left.length > 0) throw await findingsFailure(context, left, report);
      return;
    }
    await print(context, report);
    await printNotes(context, report);
    const bad = audit.findings.filter(({ severity }) => isAtLeast(severity, options.failOn));
    const isIncomplete = options.strict === true && (audit.unjudged.length > 0 || !report.complete);
    if (bad.length > 0 || isIncomplete) throw await findingsFailure(context, bad, report);
  },
});

/** Keys of policy items have other remedies, because only `apply` delivers a new secret to the item's destination. */
async function ofPolicies(context: Context, { baseUrl, organizationId }: ActiveProfile): Promise<Map<string, Advice>> {
  const { adviceForItem, itemOf, worksIn } = await import("../../policy/works.ts");
  const works = await context
    .journal()
    .then((journal) => worksIn(journal, { baseUrl, organizationId: organizationId ?? null }))
    .catch(onFailure(() => new Map<string, never>()));
  return new Map(
    [...works].flatMap(([item, { candidates }]) => {
      const { kind, name } = itemOf(item);
      const step = adviceForItem(name);
      return kind === "access_key" ? candidates.map((id: string): [string, Advice] => [id, step]) : [];
    }),
  );
}

async function overlaps(context: Context, { baseUrl, organizationId }: ActiveProfile): Promise<Map<string, Advice>> {
  const entries = await context
    .journal()
    .then((journal) => journal.select({ states: ["waiting"], operation: "access_key.rotate" }))
    .catch(onFailure(() => []));
  const ofAccount = entries.filter((entry) => isOf(entry, { baseUrl, organizationId: organizationId ?? null }));
  return new Map(
    ofAccount.map((entry): [string, Advice] => [
      entry.detail.old_key ?? "",
      `Wait until its overlap ends at ${dueAt(entry)}, and then revoke it: ${shell`integ journal recover ${entry.id}`}`,
    ]),
  );
}

function callerIn(profile: ActiveProfile, rows: Rows, now: number): Caller {
  const own = { keyId: profile.keyId, rows, now };
  return { name: callerOf(profile), isSecretStored: isSecretStored(profile), ownership: ownershipIn(own) };
}

const view: ListView = {
  columns: findingColumns,
  extraColumns: ["object", "id"].map((path) => ({ path, heading: path })),
  singular: "finding",
  plural: "findings",
};

async function print(context: Context, report: Report): Promise<void> {
  const { output } = context;
  if (isOneDocument(output)) return output.document(documentOf(report, await whereOf(context)));
  const { findings } = report.audit;
  const isTable = output.format === "table" && output.fields === undefined;
  const now = output.hasRelativeTimes ? report.now : undefined;
  const rows = (isTable ? perKey(findings, now) : findings).map((row) => ({
    ...row,
    remedy: stepAs(context.settings.profile, row.remedy),
  }));
  const columns = isTable ? view.columns.filter(({ path }) => path !== "rule") : view.columns;
  const writer = output.list({ ...view, columns, empty: `No findings. ${judgedLine(report)}` });
  await writer.whole(rows);
}

const at = / at (\d{4}-[\d-]+T[\d:.]+Z)(?:,( in \d+ \w+| \d+ \w+ ago| less than an hour ago))?/g;

/** @param nowMs the times are relative to it; undefined leaves them absolute */
function perKey(findings: readonly Finding[], nowMs: number | undefined): Finding[] {
  const keys = new Map<string, Finding[]>();
  for (const one of findings) {
    const key = one.key_id ?? one.id;
    keys.set(key, [...(keys.get(key) ?? []), one]);
  }
  const timed = (message: string): string =>
    nowMs === undefined
      ? message
      : message.replaceAll(at, (_all, iso: string, words?: string) => words ?? ` ${relativeTime(iso, nowMs)}`);
  return [...keys.values()].map((ofKey) => ({
    ...ofKey[0]!,
    message: ofKey.map(({ message }) => `${timed(message).replace(/^./, (first) => first.toUpperCase())}.`).join(" "),
  }));
}

async function printNotes({ output }: Context, report: Report): Promise<void> {
  const { waived, ended, unused } = report.audit;
  if (!report.complete) output.warn("The list says that more keys exist than it shows: they were not judged.");
  if (!isOneDocument(output)) {
    for (const line of (await import("./audit-rules.ts")).unjudgedLines(report.audit.unjudged)) output.warn(line);
  }
  for (const waiver of ended) output.note(`The waiver of ${waiver.rule}:${waiver.key} ended at ${waiver.until}.`);
  for (const waiver of unused) output.note(`No finding needs the waiver of ${waiver.rule}:${waiver.key} any more.`);
  if (waived.length > 0) output.note(`${waived.length} waived: ${waived.map(({ id }) => id).join(", ")}.`);
  const isReported = report.audit.findings.length === 0 && !isOneDocument(output);
  const isPerKey = !isReported && output.format === "table" && output.fields === undefined;
  if (!isReported)
    output.note(
      `${judgedLine(report)}${isPerKey ? " A row has all findings of a key, and the severity of the worst." : ""}`,
    );
}

function judgedLine({ audit: { judged, keys } }: Report): string {
  return `Audited ${judged} of ${keys} keys; revoked keys are not audited.`;
}

/** One document contains the facts of the notes. With `--fields`, JSON and YAML are lists without them. */
function isOneDocument({ format, fields }: Context["output"]): boolean {
  return (format === "json" || format === "yaml") && fields === undefined;
}

async function findingsFailure(
  context: Context,
  bad: readonly Finding[],
  { audit, complete }: Report,
): Promise<Failure> {
  const { countOf } = await import("./audit-all.ts");
  const counts = countWords(countOf(bad));
  // The findings of a key are in the order of their severity, so the worst replaces the others.
  const worst = [...new Map(bad.toReversed().map((one) => [one.key_id ?? one.id, one])).values()];
  const keys = worst.length;
  const byKey = keys === bad.length ? "" : `. Keys by their worst finding: ${countWords(countOf(worst))}`;
  const notJudged = bad.length === 0 ? audit.unjudged.length : 0;
  const gaps = [notJudged > 0 && `${notJudged} not judged`, !complete && "not every key was listed"]
    .filter(Boolean)
    .join(", ");
  const all = `${bad.length === 1 ? "1 finding" : `${bad.length} findings`} on ${keys === 1 ? "1 key" : `${keys} keys`}`;
  const words = bad.length === 0 ? `The audit is not complete: ${gaps}.` : `The audit has ${all}: ${counts}${byKey}.`;
  return new Failure("findings", words, { where: await whereOf(context) });
}

function countWords({ high, medium, low }: Readonly<Record<Severity, number>>): string {
  return [high && `${high} high`, medium && `${medium} medium`, low && `${low} low`].filter(Boolean).join(", ");
}

interface Report {
  readonly audit: KeysAudit;
  readonly complete: boolean;
  readonly limits: Thresholds;
  readonly now: number;
}

function documentOf({ audit, complete, limits, now }: Report, where: string): object {
  return {
    object: "list",
    data: audit.findings,
    next_page_token: null,
    has_more: false,
    audit: {
      checked_at: new Date(now).toISOString(),
      where,
      keys: audit.keys,
      keys_judged: audit.judged,
      complete,
      findings_by_severity: audit.counts,
      thresholds_seconds: {
        max_age: limits.maxAgeMs / 1000,
        max_idle: limits.maxIdleMs / 1000,
        expires_within: limits.expiresWithinMs / 1000,
      },
    },
    unjudged: audit.unjudged,
    waived: audit.waived,
    waivers_ended: audit.ended.map(({ rule, key, until }) => ({ rule, key, until })),
    waivers_unused: audit.unused.map(({ rule, key, until }) => ({ rule, key, until })),
  };
}
