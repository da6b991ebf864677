import { shortened, visibleText } from "../visible-text.ts";
import { askOnTerminal, type PromptContext } from "./prompts.ts";
import type { PlainList } from "./plain.ts";

/** Something that is known, offered by its own name. */
export interface Choice {
  readonly value: string;
  /** What distinguishes it from the others. */
  readonly hint?: string;
}

export interface PickList {
  readonly question: string;
  /** At least one, the likeliest first. */
  readonly choices: readonly Choice[];
  /** The last line of the list: it is none of these. Without it these are all there are. */
  readonly other?: string;
}

/** What was picked of a list, in the list's order, and whether there is more to be said than the list has. */
export interface Picked {
  readonly values: readonly string[];
  readonly somethingElse: boolean;
}

/** A list of this length or more is searched by typing. */
const searchedFrom = 11;
const rowsShown = 10;
/** A longer name would fill a screen. */
const longestLabel = 200;
/** No choice has it for its key: those are numbers. */
const otherKey = "other";

interface Option {
  readonly value: string;
  readonly label: string;
  readonly hint?: string;
}

/**
 * One of the choices, the first one marked. If they are many, typing searches them.
 * @throws Failure `interrupted` for Ctrl-C, Escape, Ctrl-D and a closed input, and the reason for the interruption
 */
export async function pickOne(context: PromptContext, list: PickList): Promise<Picked> {
  if (context.terminal.isPlain)
    return pickedOf(list, [await (await import("./plain.ts")).plainPick(context, plainList(list))]);
  const { autocomplete, select } = await import("@clack/prompts");
  // A hint would be shown on the marked row alone, and it is what distinguishes the rows.
  const options = optionsOf(list).map(({ hint, label, ...option }) => ({ ...option, label: withHint(label, hint) }));
  const shown = { message: visibleText(list.question), options, maxItems: rowsShown };
  const key = await askOnTerminal(context, (streams) =>
    options.length < searchedFrom
      ? select({ ...streams, ...shown })
      : autocomplete({ ...streams, ...shown, filter: fits, validate: isSomething }),
  );
  return pickedOf(list, [key]);
}

/**
 * Any number of the choices, but not nothing. Space takes one or leaves it, typing searches.
 * @param chosen those that are taken to begin with
 * @throws Failure `interrupted` for Ctrl-C, Escape, Ctrl-D and a closed input, and the reason for the interruption
 */
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
    // Not clack's `multiselect`: that marks the row one is on by its colour alone. This one shows the hint there.
    autocompleteMultiselect({
      ...streams,
      message: visibleText(list.question),
      maxItems: rowsShown,
      required: true,
      filter: fits,
      // The last of these is the row one begins on.
      initialValues: keysOf(list.choices, chosen).reverse(),
      options() {
        // Otherwise Space would be a letter to search for until an arrow was pressed.
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
  return { values, somethingElse: keys.includes(otherKey) };
}

function optionsOf({ choices, other }: PickList): Option[] {
  const known = choices.map(({ value, hint }, index) => ({
    value: String(index),
    label: labelOf(value),
    ...(hint !== undefined && { hint: labelOf(hint) }),
  }));
  return other === undefined ? known : [...known, { value: otherKey, label: other, hint: "type a value" }];
}

function keysOf(choices: readonly Choice[], values: readonly string[]): string[] {
  return choices.flatMap(({ value }, index) => (values.includes(value) ? [String(index)] : []));
}

function labelOf(text: string): string {
  return shortened(visibleText(text), longestLabel);
}

/** What is none of these always fits: the way on must not be searched away. */
function fits(
  search: string,
  { value, label = "", hint = "" }: { value: string; label?: string; hint?: string },
): boolean {
  const wanted = search.trim().toLowerCase();
  return value === otherKey || `${label} ${hint}`.toLowerCase().includes(wanted);
}

/** Enter does nothing if no choice fits what was typed. */
function isSomething(key: string | string[] | undefined): string | undefined {
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
