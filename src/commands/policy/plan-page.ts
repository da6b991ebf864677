// The page of a plan: all items except unchanged ones, the credentials in no item, and a line of counts.
import type { PageLine } from "../../output/output.ts";
import { roughWidth } from "../../output/visible-text.ts";
import { grantWords, type PlannedItem, type Plan, type Unmanaged } from "../../policy/plan.ts";
import { nounOf } from "./adoption.ts";

export interface PlanPage {
  readonly plan: Plan;
  readonly file: string;
  /** The acting profile and its region, in words. */
  readonly as: string;
  /** Columns of the terminal; undefined without a limit. */
  readonly width: number | undefined;
}

export function planPage({ plan, file, as, width = Number.POSITIVE_INFINITY }: PlanPage): PageLine[] {
  const { items, unmanaged } = plan;
  const shown = items.filter((item) => kindOf(item) !== "unchanged");
  const names = Math.min(24, Math.max(0, ...shown.map(({ row }) => roughWidth(row.name))));
  // Text that does not fit beside the names moves below them.
  const margin = names + 6 + 36 > width ? 6 : names + 6;
  const lines = shown.flatMap((item) => itemLines(item, { margin, width }));
  if (unmanaged.length > 0) lines.push({ mark: "?", tone: "yellow", margin: 4, text: unmanagedWords(unmanaged) });
  return [
    { margin: 0, text: `${file} · ${as} · ${counted(items.length, "item")}` },
    blank,
    ...(lines.length === 0 ? [] : [...lines, blank]),
    { margin: 0, text: summary(plan, file) },
  ];
}

const blank: PageLine = { margin: 0, text: "" };

function itemLines(
  item: PlannedItem,
  { margin, width }: { readonly margin: number; readonly width: number },
): PageLine[] {
  const { decision, row } = item;
  const [mark, tone] = marks[kindOf(item)];
  const named = { mark, tone, lead: row.name, margin };
  const text = itemWords(item);
  const targets = decision.hold === "not_adopted" || decision.step.do === "adopt" ? [] : arrows(item);
  const beside = `${text}  ${targets.join("")}`;
  if (targets.length === 1 && margin + beside.length <= width) return [{ ...named, text: beside }];
  return [{ ...named, text }, ...targets.map((target) => ({ margin, text: target }))];
}

function arrows({ row: { destinations, changed } }: PlannedItem): string[] {
  return destinations.map((name) => `→ ${name}${changed.includes(name) ? " (changed since the last delivery)" : ""}`);
}

type Kind = "create" | "rotate" | "adopt" | "revoke" | "wait" | "held" | "changed" | "unchanged";

const marks: Readonly<Record<Kind, readonly [mark: string, tone: PageLine["tone"]]>> = {
  create: ["+", "green"],
  rotate: ["~", "yellow"],
  adopt: ["?", "yellow"],
  revoke: ["-", "red"],
  wait: ["·", undefined],
  held: ["!", "red"],
  changed: ["·", "yellow"],
  unchanged: ["", undefined],
};

function kindOf({ decision: { action, hold }, row }: PlannedItem): Kind {
  if (action === "adopt") return hold === "no_destination" ? "held" : "adopt";
  if (hold !== undefined) return "held";
  if (action === "none") return row.changed.length > 0 ? "changed" : "unchanged";
  if (action === "change_scopes" || action === "redeliver") return "rotate";
  return action === "revoke_old" ? "revoke" : action;
}

function itemWords({ decision, row: { reason }, postponed }: PlannedItem): string {
  const { item, action, step, hold, current } = decision;
  const later = postponed === undefined ? "" : `; ${postponed}`;
  if (hold !== undefined) return reason;
  if (action === "create" && step.do === "create" && reason === "it does not exist yet")
    return `create a ${grantWords(item)}${later}`;
  if (step.do === "replace")
    return `${action === "change_scopes" ? "replace" : "rotate"} ${nounOf(item.kind)}${current === undefined ? "" : ` ${current.id}`}: ${reason}${later}`;
  if (action === "create") return `create a ${grantWords(item)}: ${reason}${later}`;
  return `${reason}${later}`;
}

export function unmanagedWords(unmanaged: readonly Unmanaged[]): string {
  const of = (kind: Unmanaged["kind"]): number => unmanaged.filter((one) => one.kind === kind).length;
  const counts = [
    ...(of("access_key") > 0 ? [counted(of("access_key"), "key")] : []),
    ...(of("oauth_client") > 0 ? [counted(of("oauth_client"), "client")] : []),
  ];
  const ids = unmanaged.slice(0, 10).map(({ id, name }) => (name === null ? id : `${id} (${name})`));
  const more = unmanaged.length > ids.length ? ` and ${unmanaged.length - ids.length} more` : "";
  return `${counts.join(" and ")} ${unmanaged.length === 1 ? "is" : "are"} in no item: ${ids.join(", ")}${more}`;
}

function summary({ items, unmanaged }: Plan, file: string): string {
  const kinds = items.map(kindOf);
  const count = (kind: Kind, what: string): string[] => {
    const { length } = kinds.filter((one) => one === kind);
    return length === 0 ? [] : [`${length} ${what}`];
  };
  const parts = [
    ...count("create", "to create"),
    ...count("rotate", "to rotate"),
    ...count("revoke", "to revoke"),
    ...count("adopt", "to adopt"),
    ...count("held", "to decide"),
    ...count("wait", "waiting"),
  ];
  const others = unmanaged.length === 0 ? [] : [`${unmanaged.length} in no item (left unchanged)`];
  const { length: unchanged } = kinds.filter((kind) => kind === "unchanged" || kind === "changed");
  if (parts.length === 0 && items.length === 0) return `${file} has no items: nothing is compared.`;
  if (parts.length === 0)
    return `${unchangedWords(items.length, file)}${others.length === 0 ? "" : ` ${others.join("")}.`}`;
  return `Plan: ${[...parts, `${unchanged} unchanged`, ...others].join(", ")}.`;
}

export function unchangedWords(count: number, file: string): string {
  return `No changes. ${count === 1 ? "1 item is" : `${count} items are`} as ${file} says.`;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
