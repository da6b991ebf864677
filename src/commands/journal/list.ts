import type { Context } from "../../context.ts";
import { type Entry, isEarly, isSettled, operations, settledStates, unfinishedStates } from "../../journal/entry.ts";
import type { EntryFilter } from "../../journal/lookup.ts";
import { sinceOf } from "../options/since.ts";
import { warnOfDamage, warnOfMove, entriesOfProfile } from "../running/change.ts";
import { type FlagsOf, defineVerb, sharedOptions } from "../verb.ts";
import { inPages, pageOf } from "../../output/row-page.ts";
import { assertProfileKnown } from "./profile-entries.ts";
import { entriesView, publicEntry, sharedEntriesView, untrustedWords } from "./view.ts";

const addFilters = sharedOptions((command) =>
  command
    .option("--all", "Include finished entries")
    .addOption(
      command
        .createOption("--state <state...>", "Show entries in these states, finished or not")
        .choices([...unfinishedStates, ...settledStates]),
    )
    .addOption(command.createOption("--operation <operation>", "Show entries of one operation").choices(operations))
    .option("--actor <name>", "Show entries of one actor: a user, a host, user@host, or the URL of a CI run")
    .option("--since <when>", "Show entries updated since a time or within a duration (7d, 2026-11-01T00:00:00Z)"),
);

export const command = defineVerb({
  isPaged: true,
  fields: sharedEntriesView.columns.map(({ path }) => path),
  configure: (command) => addFilters(command),
  examples: [
    { line: "integ journal list", does: "unfinished changes, newest first, with the command to run now" },
    { line: "integ journal list --all --json | jq '.data[].state'", does: "every entry, for a script" },
    { line: "integ journal list --all --since 7d --actor ada", does: "what ada did this week" },
  ],
  async run(context, { options }) {
    const journal = await context.journal();
    await warnOfDamage(context);
    await warnOfMove(context);
    const { profile } = context.settings;
    const own = await entriesOfProfile(context, profile);
    const filter = { ...own, ...filterOf(context, options) };
    // The unfinished entries, which are few, are read together to find what this machine lacks for them. Other lists
    // are read page by page.
    const { all, state: states } = options;
    const open = states?.filter((state) => !isSettled(state));
    const due = open?.length === 0 ? [] : await journal.select({ ...filter, all: false, states: open });
    const isUnfinishedOnly = states === undefined ? all !== true : states.length === open?.length;
    const pages = inPages(isUnfinishedOnly ? due : journal.each(filter));
    const { value: shown = [] } = await pages.next();
    if (shown.length === 0) await assertProfileKnown(context, journal);
    const isEmpty = shown.length === 0 && (await journal.select({ ...own, all: true, limit: 1 })).length === 0;
    const empty = isEmpty ? noChangesWords(profile) : noMatchWords(profile, options);
    const view = journal.isShared ? sharedEntriesView : entriesView;
    const list = context.output.list({ ...view, empty, isWhole: shown.length < 100 });
    const holders = await journal.holders();
    const first = due.length > 0 ? await (await import("../running/missing.ts")).noteMissing(context, due) : undefined;
    const firstUntrusted: string[] = [];
    let untrustedCount = 0;
    const print = async (page: readonly Entry[]): Promise<void> => {
      const untrusted = await journal.untrusted(page.map(({ id }) => id));
      const isLater = (entry: Entry): boolean =>
        context.output.format === "table" && isEarly(entry, context.clock.now());
      const about = (entry: Entry) => ({
        holder: holders.get(entry.id),
        first: first?.get(entry.id) ?? (isLater(entry) ? { needs: undefined, command: null } : undefined),
        isUntrusted: untrusted.has(entry.id),
      });
      await list.page(pageOf(page.map((entry) => publicEntry(entry, about(entry)))));
      untrustedCount += untrusted.size;
      firstUntrusted.push(...[...untrusted].slice(0, 5 - firstUntrusted.length));
    };
    await print(shown);
    for await (const page of pages) await print(page);
    if (untrustedCount > 0) context.output.warn(untrustedWords(firstUntrusted, untrustedCount));
    await list.end({ nextPageToken: null, hasMore: false });
  },
});

type Filters = FlagsOf<typeof addFilters>;

function filterOf({ clock }: Context, { all, state, operation, actor, since }: Filters): EntryFilter {
  return {
    all: all === true,
    archived: all === true,
    states: state,
    operation,
    actor,
    since: since === undefined ? undefined : sinceOf(since, clock.now()),
  };
}

function noChangesWords(profile: string | undefined): string {
  return profile === undefined ? "No changes." : `No changes of profile ${profile}.`;
}

function noMatchWords(profile: string | undefined, options: Filters): string {
  const of = profile === undefined ? "" : ` of profile ${profile}`;
  const { all, state, operation, actor, since } = options;
  if ([state, operation, actor, since].every((value) => value === undefined))
    return `No unfinished changes${of}. integ journal list --all shows the finished ones.`;
  return all || state ? `No such changes${of}.` : `No such changes${of} are unfinished. --all shows the finished ones.`;
}
