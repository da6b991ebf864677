// The first policy file, which `integ policy init` writes for existing credentials.
import { flags } from "../next-step.ts";
import { freeName, type ItemKind } from "./works.ts";

export interface DraftItem {
  readonly kind: ItemKind;
  readonly id: string;
  readonly baseName: string;
  readonly lifeMs?: number | undefined;
  /** Lines of YAML below the item's name, except `expires_in` and `rotate`. */
  readonly lines: readonly string[];
}

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const everyMs = 90 * day;
const overlapMs = day;
const maxBeforeExpiryMs = 14 * day;

export function draftPolicy(
  items: readonly DraftItem[],
  { id, profile }: { readonly id: string; readonly profile: string | undefined },
): string {
  const names = namesFor(items);
  const section = (kind: DraftItem["kind"], heading: string): string[] => {
    const mine = items.filter((item) => item.kind === kind);
    return mine.length === 0 ? [] : [`${heading}:`, ...mine.flatMap((item) => linesOf(item, names.get(item)!))];
  };
  return [
    "# Which credentials should exist. Check: integ policy check. Compare: integ plan. Apply: integ apply.",
    `# To adopt the existing credentials: integ adopt ${flags.all}, or integ adopt access-key <id> ${flags.name} <item>. The comment beside an item is the id of its credential.`,
    "# `secret: unknown` is valid until the first rotation: replace it with { file: … }, { command: … }, { profile: … } or a store.",
    "version: 1",
    `id: ${id} # keep this id, even if the file moves: it links the credentials to the policy`,
    ...(profile === undefined ? [] : [`profile: ${JSON.stringify(profile)}`]),
    "defaults: { overlap: 24h, max_failures: 3 }",
    "limits: { changes_per_run: 20, keep_free_slots: 0 }",
    ...section("oauth_client", "oauth_clients"),
    ...section("access_key", "access_keys"),
    "unmanaged: report",
    "",
  ].join("\n");
}

function linesOf({ id, lines, lifeMs }: DraftItem, name: string): string[] {
  return [
    `  ${JSON.stringify(name)}: # ${id.replaceAll(/[^\w.:-]/g, "?")}`,
    ...lines.map((line) => `    ${line}`),
    ...rotation(lifeMs).map((line) => `    ${line}`),
  ];
}

/** `before_expiry` is at most a quarter of the lifetime, and the overlap ends before the key expires. */
function rotation(lifeMs: number | undefined): string[] {
  const every = `every: ${durationText(everyMs)}`;
  if (lifeMs === undefined) return [`rotate: { ${every} }`];
  const life = inWholeMultiples(lifeMs, day) ?? inWholeMultiples(lifeMs, hour) ?? lifeMs;
  const before = Math.min(maxBeforeExpiryMs, inWholeUnits(life / 4));
  const rules = [
    ...(everyMs + before < life ? [every] : []),
    `before_expiry: ${durationText(before)}`,
    ...(before > overlapMs ? [] : [`overlap: ${durationText(inWholeUnits(before / 2))}`]),
  ];
  return [`expires_in: ${durationText(life)}`, `rotate: { ${rules.join(", ")} }`];
}

/** Tolerates a minute, because a key's expiry is computed shortly before the key is created. */
function inWholeMultiples(ms: number, unit: number): number | undefined {
  const whole = Math.round(ms / unit) * unit;
  return whole > 0 && Math.abs(whole - ms) <= minute ? whole : undefined;
}

function inWholeUnits(ms: number): number {
  const unit = [day, hour, minute].find((one) => ms >= 2 * one) ?? 1000;
  return Math.max(1000, Math.floor(ms / unit) * unit);
}

export function durationText(ms: number): string {
  for (const [name, unit] of [
    ["d", day],
    ["h", hour],
    ["m", minute],
  ] as const)
    if (ms % unit === 0) return `${ms / unit}${name}`;
  return `${Math.floor(ms / 1000)}s`;
}

function namesFor(items: readonly DraftItem[]): Map<DraftItem, string> {
  const taken = new Set<string>();
  return new Map(items.map((item) => [item, freeName(item.baseName, item.kind, taken)]));
}
