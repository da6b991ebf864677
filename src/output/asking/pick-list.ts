import type { Writable } from "node:stream";
import { isolated, shortened, visibleText } from "../visible-text.ts";
import { askOnTerminal, type PromptContext } from "./prompts.ts";
import type { PlainList } from "./plain.ts";

export interface Choice {
  readonly value: string;
  /** Shown in parentheses after the label, to distinguish similar choices. */
  readonly hint?: string;
}

export interface PickList {
  readonly question: string;
  /** At least one choice, the likeliest first. */
  readonly choices: readonly Choice[];
  /** Label of a last row for entering another value; absent if the choices are complete. */
  readonly other?: string;
}

/** `values` are in the list's order. `isOther` is true if the user chose the row `other`. */
export interface Picked {
  readonly values: readonly string[];
  readonly isOther: boolean;
}

const searchMinimum = 11;
const rowsShown = 10;
const maxLabelLength = 200;
/** Differs from the keys of choices, which are numbers. */
const otherKey = "other";

interface Option {
  readonly value: string;
  readonly label: string;
  readonly hint?: string;
}

export async function pickOne(context: PromptContext, list: PickList): Promise<Picked> {
  if (context.terminal.isPlain)
    return pickedOf(list, [await (await import("./plain.ts")).plainPick(context, plainList(list))]);
  const { autocomplete, select } = await import("@clack/prompts");
  // Clack shows a hint on the active row only, but hints distinguish all rows.
  const options = optionsOf(list).map(({ hint, label, ...option }) => ({ ...option, label: withHint(label, hint) }));
  const shown = { message: isolated(visibleText(list.question)), options, maxItems: rowsShown };
  const key = await askOnTerminal(context, (streams) =>
    options.length < searchMinimum
      ? select({ ...streams, ...shown })
      : autocomplete({ ...streams, ...shown, filter: fits, validate: noMatchMessage }),
  );
  return pickedOf(list, [key]);
}

export async function pickSome(
  context: PromptContext,
  { chosen, ...list }: PickList & { readonly chosen: readonly string[] },
): Promise<Picked> {
  if (context.terminal.isPlain) {
    const { plainPickSome } = await import("./plain.ts");
    const shown = { ...plainList(list), chosen: keysOf(list.choices, chosen) };
    return pickedOf(list, await plainPickSome(context, shown));
  }
  const { autocompleteMultiselect } = await import("@clack/prompts");
  const options = optionsOf(list);
  let hasBegun = false;
  const keys = await askOnTerminal(context, (streams) =>
    // Clack's `multiselect` marks the active row by color only.
    autocompleteMultiselect({
      ...streams,
      // Corrects Clack's `1 items selected`.
      output: Object.assign(Object.create(streams.output) as Writable, {
        write: (text: string) => streams.output.write(text.replace(/(?<!\d)1 items/, "1 item")),
      }),
      message: isolated(visibleText(list.question)),
      maxItems: rowsShown,
      required: true,
      filter: fits,
      // Clack activates the last initial value, so the first chosen one comes last.
      initialValues: keysOf(list.choices, chosen).reverse(),
      options() {
        // Without this, Space is search text until the user presses an arrow key.
        if (!hasBegun) this.isNavigating = true;
        hasBegun = true;
        return options;
      },
    }),
  );
  return pickedOf(list, keys);
}

function pickedOf({ choices }: PickList, keys: readonly string[]): Picked {
  const values = choices.filter((_choice, index) => keys.includes(String(index))).map(({ value }) => value);
  return { values, isOther: keys.includes(otherKey) };
}

function optionsOf({ choices, other }: PickList): Option[] {
  const options = choices.map(({ value, hint }, index) => ({
    value: String(index),
    label: labelOf(value),
    ...(hint !== undefined && { hint: labelOf(hint) }),
  }));
  return other === undefined ? options : [...options, { value: otherKey, label: other, hint: "type a value" }];
}

function keysOf(choices: readonly Choice[], values: readonly string[]): string[] {
  return choices.flatMap(({ value }, index) => (values.includes(value) ? [String(index)] : []));
}

function labelOf(text: string): string {
  return isolated(shortened(visibleText(text), maxLabelLength));
}

function fits(
  search: string,
  { value, label = "", hint = "" }: { value: string; label?: string; hint?: string },
): boolean {
  const searchText = search.trim().toLowerCase();
  return value === otherKey || `${label} ${hint}`.toLowerCase().includes(searchText);
}

/** @returns the message for Enter if no choice matches the search */
function noMatchMessage(key: string | string[] | undefined): string | undefined {
  return key === undefined ? "No match." : undefined;
}

function withHint(label: string, hint: string | undefined): string {
  return hint === undefined ? label : `${label} (${hint})`;
}

function plainList(list: PickList): PlainList {
  const options = optionsOf(list).map(({ value: key, label, hint }, index) => {
    return { key, value: list.choices[index]?.value ?? key, label: withHint(label, hint) };
  });
  return { question: visibleText(list.question), options };
}
