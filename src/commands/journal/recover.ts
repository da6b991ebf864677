import { DiskHealth } from "../../disk/disk-health.ts";
import { addDryRun, defineVerb } from "../verb.ts";
import { recover, rootOf, type Recovered } from "../../operations/recovery.ts";
import { serviceTime, type Workbench } from "../../operations/workbench.ts";
import { EntryAccounts } from "./entry-accounts.ts";
import { assertProfileKnown } from "./profile-entries.ts";
import { type EntryExtras, entriesView, publicEntry, receiptViewOf } from "./view.ts";
import {
  addSecretOptions,
  confirmOwnProfile,
  issuedAs,
  type SecretFlags,
  secretOptionsOf,
} from "../options/secrets.ts";
import { parseDuration } from "../options/global.ts";
import {
  accountOf,
  entriesOfProfile,
  mayReplace,
  mayRevokeUnproven,
  warnOfDamage,
  deliveryWords,
  checkedDeliveryWords,
  workbenchOf,
} from "../running/change.ts";
import { missingAccount, missingFor, requiredStepOf } from "../running/missing.ts";
import { overlapNote } from "../running/overlap-words.ts";
import { releaseSettled, cleanUp } from "../running/settled.ts";
import { TakenPlaces } from "./taken-places.ts";
import type { Context } from "../../context.ts";
import { Failure, worstOf } from "../../errors.ts";
import { dueAt, isEarly, isSettled, kindOf, type Entry } from "../../journal/entry.ts";
import type { Journal } from "../../journal/journal.ts";
import type { Report } from "../../output/formats/format.ts";
import { type Destination, isForProfile, placesOf, type SecretOptions } from "../../secrets/destination.ts";
import {
  isOptionFor,
  optionsFor,
  ignoredNote,
  refusingDestination,
  type RecoveryOptions,
} from "./remembered-destination.ts";
import { flags, needsForce, shell } from "../../next-step.ts";

export const command = defineVerb({
  fields: entriesView.columns.map(({ path }) => path),
  configure: (command) =>
    addSecretOptions(
      addDryRun(command)
        .argument("[id...]", "Entries to recover (default: all unfinished ones)")
        .option(
          "--replace-lost-secret",
          "If a secret is lost, revoke the client or key and create another, or rotate again",
        )
        .option(
          "--revoke <id>",
          "Revoke this client or key, whose secret is lost, and create another; needed for a key that only its name and time identify",
        )
        .option(
          "--accept-unproven",
          "Revoke the old client or key even if integ cannot prove that the new one works, or a new key is bound to another user",
        )
        .option("--now", "End the overlap of the named rotations: revoke the old client or key immediately")
        .option("--wait <duration>", "Time to wait for a pending client; 0s: do not wait", "1m"),
    ),
  examples: [
    { line: "integ journal recover", does: "finish what is due and needs no decision" },
    { line: "integ journal recover 6k2f9", does: "finish one entry with its saved request and idempotency key" },
    {
      line: "integ journal recover 6k2f9 --replace-lost-secret --secret-file ./client.secret",
      does: "replace a client whose secret was lost",
    },
    { line: "integ journal recover 6k2f9 --now", does: "revoke the old client or key of a rotation before it is due" },
  ],
  more: "The secret goes to its original file, profile or store. Commands are not stored: pass --secret-command again. If you name an entry by its id, your secret options replace its stored destination; otherwise they apply only to entries that have none. --force replaces the content of stored destinations only for entries that you name.",
  async run(context, { args: [ids], options }) {
    const journal = await context.journal();
    const disk = new DiskHealth();
    await warnOfDamage(context);
    const entries = await selectedEntries(context, ids);
    if (entries.length === 0) await assertProfileKnown(context, journal);
    assertNamed(ids, options);
    if (options.now) refuseWithoutOverlap(entries);
    const shown = context.output.report({ ...entriesView, empty: "No unfinished changes." });
    const replaces = options.replaceLostSecret === true;
    const { revoke: revokes } = options;
    const requested = { options: secretOptionsOf(options), isNamed: ids.length > 0, replaces };
    refuseSharedDestination(entries, requested);
    await refuseInvalidStore(context, requested.options);
    if (options.dryRun)
      return showPlanned(context, entries, {
        isEnded: options.now === true,
        replaces: replaces || revokes !== undefined,
      });
    for (const entry of entries) await refuseProfileLockout(journal, entry, requested);
    const taken = new TakenPlaces();
    const benches = new Map<string, Workbench>();
    const accounts = new EntryAccounts((entry) => accountOf(context, entry), requested.options);
    const progress = progressOf(context, entries);
    const mayAsk = context.output.interactive && !context.settings.yes && !replaces;
    const startedAt = new Date(context.clock.now()).toISOString();
    const results = await recover(journal, entries, {
      atOnce: mayAsk || requested.options.to.length > 0 ? 1 : parallelEntries,
      watch: progress.watch,
      waitMs: parseDuration(options.wait, "--wait"),
      destinationOf: (entry) => destinationOf(context, entry, { requested, shown, taken }),
      mayReplace: (entry) => mayReplace(context, entry, replaces),
      namedRevocation: revokes,
      mayRevokeUnproven: (entry, words) => mayRevokeUnproven(context, entry, words, options.acceptUnproven),
      overlap: options.now ? "end" : "leave",
      // The profile `env` needs environment variables that this shell may lack.
      isOptional: ({ profile }) => ids.length === 0 && profile === "env",
      mayTryAgain: (ended) => accounts.retryWithOwnAccount(ended),
      benchFor: async (entry) => {
        // A waiting or undelivered entry may need no request, so its recovery must not require a credential.
        const needsNoRequest = entry.state === "waiting" || entry.state === "undelivered";
        const missing = await (needsNoRequest ? missingAccount : missingFor)(context, entry);
        if (missing !== undefined) throw missing;
        const bench = await workbenchOf(context, { entry, disk, account: () => accounts.of(entry) });
        benches.set(entry.id, bench);
        return bench;
      },
    }).finally(() => progress.done());
    await cleanUp(context, () =>
      releaseSettled(context, { ids: results.map(({ entry }) => entry.id), newestCount: 1000 }),
    );
    const all = (await cleanUp(context, () => withReplacements(journal, results))) ?? results;
    const made = (await cleanUp(context, () => creationsFor(journal, results, startedAt))) ?? [];
    await print(context, shown, all);
    await cleanUp(context, () => reportDeliveries(context, benches, all));
    if (results.length + made.length > 1) context.output.ending(`Recovered: ${countsOf(results, made)}.`);
    reportFailures(context, all, { isOne: ids.length === 1, isTyped: requested.options.to.length > 0 });
  },
});

async function showPlanned(
  context: Context,
  entries: readonly Entry[],
  agreed: { readonly isEnded: boolean; readonly replaces: boolean },
): Promise<void> {
  const [{ showSteps }, { recoverySteps }] = await Promise.all([
    import("../running/dry-run.ts"),
    import("../running/dry-changes.ts"),
  ]);
  const journal = await context.journal();
  const choice = { ...agreed, nowMs: context.clock.now(), secrets: await context.secrets.undelivered() };
  const steps = [];
  for (const entry of [...entries].sort((a, b) => (a.created_at < b.created_at ? -1 : 1)))
    steps.push(...(await recoverySteps(journal, entry, choice)));
  return showSteps(context, steps);
}

/** The same number as the default of `apply --parallel`. */
const parallelEntries = 4;

interface Progress {
  readonly watch: (id: string, event: "begin" | Recovered) => void;
  readonly done: () => void;
}

function progressOf(context: Context, entries: readonly Entry[]): Progress {
  const table = context.output.liveTable(
    "Recovering",
    entries.map(({ id }) => id),
  );
  return {
    watch(id, event) {
      if (event === "begin") return table.set(id, "recovering");
      table.end(id, resultWords(event));
    },
    done: () => table.done(),
  };
}

function resultWords({ entry, failure, isSkipped }: Recovered): string {
  if (isSkipped === true) return "skipped";
  return failure === undefined ? entry.state : `${entry.state}: ${failure.message}`;
}

async function creationsFor(journal: Journal, results: readonly Recovered[], since: string): Promise<Entry[]> {
  const ids = new Set<string | null>(results.map(({ entry }) => entry.id));
  const done = await journal.select({ states: ["done"], since });
  return done.filter((one) => one.operation.endsWith(".create") && (ids.has(one.parent) || ids.has(one.replaces)));
}

function countsOf(results: readonly Recovered[], { length: created }: readonly Entry[]): string {
  const counts = new Map<string, number>();
  for (const { entry, failure, isSkipped } of results) {
    const end = isSkipped ? "skipped" : failure === undefined ? entry.state : "failed";
    counts.set(end, (counts.get(end) ?? 0) + 1);
  }
  if (created > 0) counts.set("created", created);
  return [...counts].map(([end, count]) => `${count} ${end}`).join(", ");
}

function refuseSharedDestination(entries: readonly Entry[], requested: RecoveryOptions): void {
  const open = entries.filter(({ state, operation }) => !isSettled(state) && !operation.endsWith(".revoke"));
  for (const option of requested.options.to) {
    if (option.kind === "command") continue;
    const sharing = open.filter((entry) => optionsFor(entry, requested)?.to.includes(option));
    if (sharing.length < 2) continue;
    const ids = sharing.map(({ id }) => id);
    const place = option.kind === "file" ? option.path : option.kind === "profile" ? option.name : option.to;
    throw new Failure(
      "usage",
      `${place} takes one secret, and ${ids.length} entries would write theirs to it: ${ids.join(", ")}.`,
      {
        meaning: "Nothing was sent. Only the last secret written would remain.",
        hint: "Give each its own destination, one by one.",
        nextCommand: shell`integ journal recover ${ids[0]!} --secret-file ${`./${ids[0]}.secret`}`,
      },
    );
  }
}

async function refuseProfileLockout(journal: Journal, entry: Entry, { options: { to }, isNamed }: RecoveryOptions) {
  if (!isNamed || to.length === 0) return;
  const { id, operation, state, profile, destination } = await rootOf(journal, entry.id);
  const isRotation = operation.endsWith(".rotate") && !isSettled(state);
  if (!isRotation || !isForProfile(destination, profile) || destination?.kind === "several") return;
  if (to.some((option) => option.kind === "profile" && option.name === profile)) return;
  throw new Failure("usage", `The rotation ${id} replaces the credential of profile ${profile}.`, {
    meaning: "Nothing was sent. If the new secret goes elsewhere, the profile is locked out.",
    hint: `Add --secret-profile ${profile}, or leave out the other destination.`,
  });
}

async function refuseInvalidStore({ secrets }: Context, { to }: SecretOptions): Promise<void> {
  const stores = to.filter(({ kind }) => kind === "store");
  if (stores.length > 0) await secrets.destination({ to: stores }, async () => {});
}

type Flags = Partial<SecretFlags> & { readonly now?: true | undefined; readonly revoke?: string | undefined };

/** Without an id, a consent would cover entries that the person may not know of. */
function assertNamed(ids: readonly string[], options: Flags): void {
  const refuse = (message: string): never => {
    throw new Failure("usage", message, { meaning: "Nothing was sent.", nextCommand: shell`integ journal list` });
  };
  if (options.revoke !== undefined && ids.length !== 1) refuse("--revoke needs the id of exactly one entry.");
  if (ids.length > 0) return;
  if (options.now) refuse("--now needs the ids of the rotations to end.");
  if (options.force && secretOptionsOf(options).to.length === 0)
    refuse("--force needs the ids of the entries whose destinations it overwrites.");
}

function refuseWithoutOverlap(entries: readonly Entry[]): void {
  const other = entries.find(({ state, detail }) => isSettled(state) || detail.overlap_until === undefined);
  if (other === undefined) return;
  throw new Failure(
    "usage",
    `--now: the entry ${other.id} has no running overlap (${other.operation}, ${other.state}).`,
    {
      meaning: "Nothing was sent.",
      nextCommand: shell`integ journal show ${other.id}`,
    },
  );
}

async function selectedEntries(context: Context, ids: readonly string[]): Promise<Entry[]> {
  const journal = await context.journal();
  if (ids.length > 0) return Promise.all(ids.map((id) => journal.find(id)));
  const open = await journal.select(await entriesOfProfile(context, context.settings.profile));
  // The recovery of a parent entry also finishes its steps.
  const openIds = new Set(open.map(({ id }) => id));
  return open.filter(({ parent }) => parent === null || !openIds.has(parent));
}

async function destinationOf(
  context: Context,
  entry: Entry,
  { requested, shown, taken }: { requested: RecoveryOptions; shown: Report; taken: TakenPlaces },
): Promise<Destination> {
  const found = optionsFor(entry, requested);
  if (found === undefined) return refusingDestination(entry, requested);
  const options = requested.isNamed ? await confirmOwnProfile(context, found, entry) : found;
  const note = ignoredNote(entry, requested, context.settings.cwd);
  if (note !== undefined) context.output.note(note);
  const view = await receiptViewOf(kindOf(entry));
  const own = { ...options, ...issuedAs(entry), mayBeOwn: true };
  if (requested.isNamed) await checkTyped(context, entry, { ...requested.options, ...issuedAs(entry) });
  const place = await context.secrets.destination(own, (receipt) => shown.receipt(receipt, view));
  return taken.exclusive(place, entry.parent ?? entry.id);
}

/** Refuses an unusable typed destination while the entry is still unchanged. */
async function checkTyped({ secrets, settings }: Context, entry: Entry, options: SecretOptions): Promise<void> {
  const places = placesOf(entry.destination);
  for (const option of options.to) {
    if (places.some((place) => isOptionFor(option, place, settings.cwd))) continue;
    const destination = await secrets.destination({ ...options, to: [option] }, async () => {});
    await destination.check();
    // Preparing a file reserves space, which a crash would leave behind.
    if (option.kind !== "profile" && option.kind !== "store") continue;
    try {
      await destination.prepare(entry.id);
    } finally {
      await destination.release();
    }
  }
}

async function withReplacements(journal: Journal, results: readonly Recovered[]): Promise<Recovered[]> {
  const listed = new Set<string | null>([null, ...results.map(({ entry }) => entry.id)]);
  const all: Recovered[] = [];
  for (const result of results) {
    const { replaced_by: id } = result.entry;
    const [by] = id === null || listed.has(id) ? [] : await journal.select({ all: true, ids: [id] });
    all.push(result, ...(by ? [{ entry: by }] : []));
  }
  return all;
}

async function print(context: Context, { list }: Report, results: readonly Recovered[]): Promise<void> {
  try {
    const shownBelow = context.output.isTable ? worstOf(results) : undefined;
    const isLater = (entry: Entry): boolean => context.output.format === "table" && isEarly(entry, context.clock.now());
    // The error below the table may already show the next step.
    const stepOf = ({ entry, failure }: Recovered): EntryExtras["first"] =>
      failure === shownBelow && typeof failure?.details.nextCommand === "string"
        ? { needs: undefined, command: null }
        : failure === undefined && isLater(entry)
          ? { needs: undefined, command: null }
          : failure && requiredStepOf(entry, failure);
    await list.whole(results.map((result) => publicEntry(result.entry, { first: stepOf(result) })));
  } catch (error) {
    // A failed recovery has priority over a failed print.
    if (worstOf(results) === undefined) throw error;
    if (error instanceof Failure) context.output.warn(error.message);
  }
}

async function reportDeliveries(
  context: Context,
  benches: ReadonlyMap<string, Workbench>,
  results: readonly Recovered[],
): Promise<void> {
  const journal = await context.journal();
  for (const { entry, failure } of results) {
    // A rotation's destination is recorded in its creation.
    const isRotation = entry.operation.endsWith(".rotate");
    const [creation] = isRotation ? await journal.select({ states: ["done"], parent: entry.id }) : [];
    const due = dueAt(entry);
    const { old_client: old = entry.detail.old_key, overlap_unused_ms: unusedMs } = entry.detail;
    const bench = benches.get(entry.id);
    if (due !== undefined && old !== undefined && bench !== undefined && failure === undefined)
      context.output.note(overlapNote({ entry: entry.id, old, dueAt: due, unusedMs }, serviceTime(bench)));
    const place = deliveryWords(entry) && (await checkedDeliveryWords(context, creation ?? entry));
    if (place) context.output.note(`${entry.id}: ${place}`);
  }
}

function reportFailures(
  context: Context,
  results: readonly Recovered[],
  typed: { readonly isOne: boolean; readonly isTyped: boolean },
): void {
  const worst = worstOf(results);
  for (const { entry, failure, isSkipped } of results)
    if (failure && failure !== worst)
      context.output.warn(`${entry.id}: ${isSkipped ? "skipped: " : ""}${failure.message}`);
  if (worst === undefined) return;
  const { kind, message, details } = worst;
  if (typed.isOne || !needsForce(details)) throw worst;
  // `--force` in the same command would cover other entries too.
  const named = typed.isTyped || details.entry === undefined ? undefined : [details.entry, flags.force];
  throw new Failure(kind, message, { ...details, nextCommand: named && shell`integ journal recover ${named}` });
}
