// A first policy file for what exists already: the text that `integ policy init` writes.
import { flags } from "../next-step.ts";
import { type ItemKind, nameOf } from "./works.ts";

export interface DraftItem {
  readonly kind: ItemKind;
  readonly id: string;
  /** What it is called elsewhere: the base of its name in the file. */
  readonly called: string;
  /** Its name in the journal: it is under a policy already. */
  readonly name?: string | undefined;
  /** The lines below its name; values are JSON, which is YAML. */
  readonly lines: readonly string[];
}

const age = "90d";

/** @returns the file's text; it needs no change to be valid */
export function draftPolicy(
  items: readonly DraftItem[],
  { profile }: { readonly profile: string | undefined },
): string {
  const names = namesFor(items);
  const section = (kind: DraftItem["kind"], heading: string): string[] => {
    const mine = items.filter((item) => item.kind === kind);
    return mine.length === 0 ? [] : [`${heading}:`, ...mine.flatMap((item) => linesOf(item, names.get(item)!))];
  };
  return [
    "# Which credentials should exist. Check: integ policy check. Compare: integ plan. Apply: integ apply.",
    "# What exists comes under the policy with the integ adopt command beside it. Without it, the item is a new credential.",
    "# `secret: unknown` is valid until the first rotation: replace it with { file: … }, { command: … } or { profile: … }.",
    "version: 1",
    ...(profile === undefined ? [] : [`profile: ${JSON.stringify(profile)}`]),
    "defaults: { overlap: 24h, max_failures: 3 }",
    "limits: { changes_per_run: 20, keep_free_slots: 0 }",
    ...section("oauth_client", "oauth_clients"),
    ...section("access_key", "access_keys"),
    "unmanaged: report",
    "",
  ].join("\n");
}

function linesOf({ kind, id, lines, name: known }: DraftItem, name: string): string[] {
  // An id with other characters cannot be in a command that is pasted as it is.
  const isPlain = /^\w[\w.:-]*$/.test(id);
  const adopt =
    known === name
      ? `${id}, known under this name`
      : `integ adopt ${kind === "oauth_client" ? "oauth-client" : "access-key"} ${id} ${flags.name} ${name}`;
  return [
    `  ${JSON.stringify(name)}: # ${isPlain ? adopt : id.replaceAll(/[^\w.:-]/g, "?")}`,
    ...lines.map((line) => `    ${line}`),
    `    rotate: { every: ${age} }`,
  ];
}

/** A name of its own for each: of what it is called, as far as a name may have its letters. */
function namesFor(items: readonly DraftItem[]): Map<DraftItem, string> {
  const taken = new Set<string>();
  const inOrder = [...items].sort((a, b) => Number(b.name !== undefined) - Number(a.name !== undefined));
  return new Map(
    inOrder.map((item) => {
      const base = item.name ?? nameOf(item.called, item.kind);
      let name = base;
      for (let number = 2; taken.has(name); number++) name = `${base}-${number}`;
      taken.add(name);
      return [item, name];
    }),
  );
}
