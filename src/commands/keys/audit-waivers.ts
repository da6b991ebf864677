import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import { type Finding, type RuleName, ruleNames, timeOf } from "./audit-rules.ts";
import { isObject, tryParseJson } from "../../json.ts";

export interface Waiver {
  readonly rule: RuleName;
  readonly key: string;
  readonly until: string;
  /** Milliseconds since 1970. */
  readonly endsAt: number;
  readonly reason: string | null;
}

export interface Waived {
  readonly findings: readonly Finding[];
  readonly waived: readonly (Finding & { readonly until: string; readonly reason: string | null })[];
  /** Expired waivers, whose findings are reported again. */
  readonly ended: readonly Waiver[];
  readonly unused: readonly Waiver[];
}

const maxDurationMs = 366 * 86_400_000;

const example = '{"waivers":[{"rule":"no_expiry","key":"ak_1","until":"2027-01-31","reason":"replaced in January"}]}';

export function waiversIn(context: Context, path: string | undefined): Waiver[] {
  return path === undefined ? [] : readWaivers(textOf(context, path), { path, now: context.clock.now() });
}

const maximumBytes = 1024 * 1024;

function textOf(context: Context, path: string): string {
  try {
    const bytes = readFileSync(resolve(context.settings.cwd, path));
    if (bytes.length > maximumBytes) throw new Failure("usage", `--waivers: ${path} is too large for a waiver file.`);
    return bytes.toString("utf8");
  } catch (error) {
    if (error instanceof Failure) throw error;
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT")
      throw new Failure("usage", `--waivers: file not found: ${path}.`, { hint: "Name a file that exists." });
    throw new Failure("usage", `--waivers: ${path} cannot be read (${code ?? "unknown error"}).`);
  }
}

/** @throws Failure `usage` for an invalid file: a mistyped waiver would accept the wrong findings */
export function readWaivers(text: string, at: { readonly path: string; readonly now: number }): Waiver[] {
  const refuse = (why: string): Failure =>
    new Failure("usage", `${at.path}: ${why}.`, { meaning: `A waiver file looks like ${example}` });
  const file = tryParseJson(text);
  if (file === undefined) throw refuse("it is not valid JSON");
  const list = isObject(file) ? file.waivers : undefined;
  if (!Array.isArray(list)) throw refuse('a list under "waivers" is missing');
  return list.map((item: unknown, index) => {
    const waiver = readWaiver(item, at.now);
    if (typeof waiver === "string") throw refuse(`waiver ${index + 1}: ${waiver}`);
    return waiver;
  });
}

const members = new Set(["rule", "key", "until", "reason"]);

function readWaiver(item: unknown, now: number): Waiver | string {
  if (typeof item !== "object" || item === null || Array.isArray(item)) return "it is not an object";
  const { rule, key, until, reason = null } = item as Record<string, unknown>;
  const unknown = Object.keys(item).find((name) => !members.has(name));
  if (unknown !== undefined) return `it has an unknown member "${unknown}"`;
  const ruleName = ruleNames.find((name) => name === rule);
  if (ruleName === undefined) return `unknown rule "${String(rule)}"; the rules are ${ruleNames.join(", ")}`;
  if (typeof key !== "string" || key === "") return '"key" must be the id of a key';
  if (reason !== null && typeof reason !== "string") return '"reason" must be a text';
  const endsAt = typeof until === "string" ? endOf(until) : undefined;
  if (typeof until !== "string" || endsAt === undefined) return '"until" must be a date like 2027-01-31: a waiver ends';
  if (endsAt - now > maxDurationMs) return `it lasts until ${until}: a year is the longest`;
  return { rule: ruleName, key, until, endsAt, reason };
}

function endOf(until: string): number | undefined {
  const day = /^(\d{4})-(\d{2})-(\d{2})$/.exec(until);
  if (!day) return timeOf(until);
  const [year, month, date] = day.slice(1).map(Number) as [number, number, number];
  const start = new Date(Date.UTC(year, month - 1, date));
  // `Date.UTC` would accept February 31 as March 3.
  return start.getUTCMonth() === month - 1 && start.getUTCDate() === date ? start.getTime() + 86_400_000 : undefined;
}

export function applyWaivers(findings: readonly Finding[], waivers: readonly Waiver[], now: number): Waived {
  // If a finding has several waivers, the one that ends last applies.
  const byFinding = new Map(
    waivers.toSorted((a, b) => a.endsAt - b.endsAt).map((waiver) => [findingOf(waiver), waiver]),
  );
  const pairs = findings.map((finding) => ({
    finding,
    waiver: finding.key_id === null ? undefined : byFinding.get(finding.id),
  }));
  const waivedIds = new Set(pairs.flatMap(({ finding, waiver }) => (waiver === undefined ? [] : [finding.id])));
  const isValid = (waiver: Waiver | undefined): waiver is Waiver => waiver !== undefined && waiver.endsAt > now;
  return {
    findings: pairs.filter(({ waiver }) => !isValid(waiver)).map(({ finding }) => finding),
    waived: pairs.flatMap(({ finding, waiver }) =>
      isValid(waiver) ? [{ ...finding, until: waiver.until, reason: waiver.reason }] : [],
    ),
    ended: pairs.flatMap(({ waiver }) => (waiver !== undefined && !isValid(waiver) ? [waiver] : [])),
    unused: waivers.filter((waiver) => !waivedIds.has(findingOf(waiver))),
  };
}

function findingOf({ rule, key }: Waiver): string {
  return `${rule}:${key}`;
}
