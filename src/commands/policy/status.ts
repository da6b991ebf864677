// `integ status` prints a page for people, and rows or samples for programs.
import { maxClients } from "../../api/oauth-client-creation.ts";
import { existsSync, lstatSync } from "node:fs";
import { resolve } from "node:path";
import { type AccessKey, readAccessKey } from "../../api/access-keys.ts";
import type { Context } from "../../context.ts";
import { Failure, isInterruption } from "../../errors.ts";
import { dueAt, type Entry, isEarly, mayHaveArrived, needsAttention, nextStep } from "../../journal/entry.ts";
import { type Account } from "../../operations/workbench.ts";
import type { Plan } from "../../policy/plan.ts";
import type { Observed, SeenCredential } from "../../policy/observed.ts";
import type { Policy } from "../../policy/policy.ts";
import { ClientInventory, itemKey, type ItemKind } from "../../policy/works.ts";
import { type NextStep, shell, stepAs, stepBeside } from "../../next-step.ts";
import { parseLifetime } from "../options/global.ts";
import { accountOf, warnOfDamage, warnOfMove, entriesOfProfile } from "../running/change.ts";
import { noteMissing } from "../running/missing.ts";
import { read, serviceNow } from "../running/read.ts";
import { defineVerb } from "../verb.ts";
import { actingFor, planOptions, missingForItems } from "./acting.ts";
import { stepForHeld } from "./held.ts";
import { noItems, observe, scopeOf } from "./observe.ts";
import { type LiveCredential, type Status, type StatusItem, statusPage } from "./status-page.ts";
import { assertFolder, readTextFile } from "./text-file.ts";
import { fileWords, loadPolicy, standardFile } from "./policy-file.ts";

const columns = [
  { path: "topic", heading: "topic", kind: "id" },
  { path: "name", heading: "name", kind: "id" },
  { path: "state", heading: "state", kind: "status" },
  { path: "detail", heading: "detail", kind: "sentence" },
  { path: "due_at", heading: "due", kind: "time" },
  { path: "next_step", heading: "next step", kind: "command" },
] as const;

interface Row {
  readonly topic: "profile" | "journal" | "policy" | "slots" | "key";
  readonly name: string;
  readonly state: string;
  readonly detail?: string | undefined;
  readonly due_at?: string | null | undefined;
  readonly next_step?: string | null | undefined;
}

export const command = defineVerb({
  isPaged: true,
  fields: columns.map(({ path }) => path),
  result: columns,
  formats: ["openmetrics"],
  configure: (command) =>
    command
      .option("-f, --file <path>", `Policy file (default: ${standardFile}, if it exists)`)
      .option("--expires-within <duration>", "Show keys that expire within this time", "14d")
      .option("--out <file>", "With -o openmetrics: replace this file in one step; other users may read it"),
  examples: [
    { line: "integ status", does: "profile, unfinished changes, what is due, slots, keys about to expire" },
    { line: "integ status -o openmetrics --out integ.prom", does: "the same as samples, for a textfile collector" },
    { line: "integ status --json | jq '.data[] | select(.topic == \"policy\")'", does: "what is due, for a script" },
  ],
  more: "The exit code is 0 even if something is due. To fail a job when something is due or wrong, use integ plan --exit-code or integ doctor.",
  neverAsks: true,
  async run(given, { options }) {
    const withinMs = parseLifetime(options.expiresWithin, "--expires-within");
    if (options.out !== undefined) assertReplaceable(given, options.out);
    const { policy, file, unread, context } = await policyOf(given, options.file);
    const account = await accountOf(context);
    await warnOfDamage(context);
    await warnOfMove(context);
    if (context.output.format === "openmetrics") return printSamples(context, { policy, account, out: options.out });
    const { profile, region, baseUrl } = account;
    const { due, slots, clients, covered, idsByItem, failed } = await comparison(context, { policy, account, file });
    // A second request to an unreachable service would only wait.
    const listed = failed?.kind === "unreachable" ? unlistedKeys(failed) : await listedKeys(context);
    const unfinished = await unfinishedRows(context, listed);
    const step = (next: string | null | undefined): string | null =>
      next ? stepBeside(policy?.profile, stepAs(context.settings.profile, next)) : null;
    const ending = keyRows(listed, { withinMs, except: new Set([...covered, ...keysOfChanges(unfinished)]) });
    const unreadRows = [
      ...unread,
      ...(failed ? [unreadRow("policy", "policy", failed)] : []),
      ...(listed.unread ?? []),
    ];
    if (context.output.isTable) {
      const live = listed.keys.filter(({ status }) => status !== "revoked");
      const nowMs = listed.nowMs || context.clock.now();
      const { keyId } = await context.profiles.active();
      const own = live.find(({ id }) => id !== undefined && id === keyId);
      const unlisted = due.filter(({ name }) =>
        unfinished.every(({ entry }) => entry.id !== idsByItem.get(name)?.entry),
      );
      return context.output.page(({ width = 80, ...screen }) => {
        const time = (iso: string): string => screen.time(iso, nowMs);
        const status: Status = {
          headline: [
            profile,
            region,
            baseUrl.replace(/^https:\/\//, ""),
            ...(own?.expiresAt ? [`key ${own.id} (expires ${time(own.expiresAt)})`] : []),
            ...(policy ? [`policy ${file}, ${failed ? "not compared" : changeCount(due)}`] : []),
          ],
          ...itemsOf({ unfinished, due: unlisted, ending, unreadRows }, { time, file, nowMs, idsByItem, step }),
          unread: unreadWords(listed, policy),
          credentials: [...live.map(ofKey), ...clients],
          slots,
          commands: [shell`integ status ${fileWords(file)} --json`, shell`integ report`].map((one) => step(one)!),
          nowMs,
          soonMs: withinMs,
        };
        return statusPage(status, { width, ...screen });
      });
    }
    const rows: Row[] = [
      { topic: "profile", name: profile, state: region, detail: baseUrl },
      ...unfinished.map(({ row }) => row),
      ...due,
      ...[...slots].map(slotRow),
      ...ending,
      ...unreadRows,
    ];
    const list = context.output.list({ columns: [...columns], singular: "row", plural: "rows" });
    await list.whole(rows.map(({ due_at = null, ...row }) => ({ ...row, due_at, next_step: step(row.next_step) })));
  },
});

/**
 * The status has other facts too, so a failure of the default file or its profile becomes a row, except in openmetrics.
 */
async function policyOf(
  context: Context,
  typed: string | undefined,
): Promise<{
  readonly policy?: Policy;
  readonly file: string;
  readonly unread: readonly Row[];
  readonly context: Context;
}> {
  const file = typed ?? standardFile;
  if (typed === undefined && !existsSync(resolve(context.settings.cwd, file))) return { file, unread: [], context };
  try {
    const loaded = await loadPolicy(context, file);
    const acting = actingFor(context, loaded.policy);
    await acting.profiles.active();
    return { ...loaded, unread: [], context: acting };
  } catch (error) {
    if (!(error instanceof Failure) || typed !== undefined || context.output.format === "openmetrics") throw error;
    return { file, unread: [unreadRow("policy", "policy", error)], context };
  }
}

function unreadWords({ withoutKeys: why }: ListedKeys, policy: Policy | undefined): string | undefined {
  return why && `${policy ? "Access keys were not read" : "The service was not asked for access keys"}: ${why}`;
}

function changeCount(due: readonly Row[]): string {
  const { length } = due.filter(({ state }) => state !== "wait");
  return `${length === 0 ? "nothing" : length === 1 ? "1 change" : `${length} changes`} due`;
}

function unreadRow(topic: Row["topic"], name: string, { kind, message, details: { nextCommand, hint } }: Failure): Row {
  const why = message.replace(/^Cannot [^:]+: |\.$/g, "");
  const common = { topic, name, state: "unknown", due_at: null };
  if (kind === "usage" && typeof nextCommand !== "string")
    return { ...common, detail: [why, hint?.replace(/\.$/, "")].filter(Boolean).join(". ") };
  const next_step = typeof nextCommand === "string" ? nextCommand : shell`integ doctor`;
  const not = { unreachable: "not reached: ", usage: "" }[kind as string];
  return { ...common, detail: `${not ?? `could not be ${topic === "key" ? "read" : "compared"}: `}${why}`, next_step };
}

/** Another file could be a journal or a secret, so only an earlier output may be replaced. */
function assertReplaceable({ output, settings }: Context, typed: string): void {
  if (output.format !== "openmetrics")
    throw new Failure("usage", "--out needs -o openmetrics.", { hint: "Use the shell for another format: > file." });
  const path = resolve(settings.cwd, typed);
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true)
    throw new Failure("usage", `${typed} is a symbolic link, which would be replaced.`, {
      meaning: "It was not changed.",
      hint: "Name the file that it leads to.",
    });
  const existing = readTextFile(path, 16 * 1024 * 1024);
  const isOwnOutput = "text" in existing ? existing.text.startsWith("# TYPE integ_") : existing.isMissing;
  if (isOwnOutput) return assertFolder(path, typed);
  throw new Failure("usage", `${typed} exists, and is not an earlier output of this command.`, {
    meaning: "It was not changed.",
    hint: "Name another file with --out, or remove it first.",
  });
}

interface SampleOptions {
  readonly policy: Policy | undefined;
  readonly account: Account;
  readonly out: string | undefined;
}

async function printSamples(context: Context, { policy = noItems, account, out }: SampleOptions): Promise<void> {
  const { observed } = await observe(context, { policy, account });
  const { planPolicy } = await import("../../policy/plan.ts");
  const { samplesOf } = await import("./metrics.ts");
  const { keys, nowMs } = await listedKeys(context);
  const samples = samplesOf({
    common: { profile: account.profile, region: account.region },
    observed,
    keys,
    areKeysRead: nowMs > 0,
    unfinished: await unfinishedOf(context),
    slots: slotsOf(observed),
    actions: planPolicy(policy, observed, planOptions({})).items.map(({ row }) => row.action),
    lastApply: { labels: { policy: policy.id }, at: context.lastApply.find(policy.id, scopeOf(account)) },
  });
  const { output } = context;
  let text = "";
  const sink = { write: async (data: string | Buffer) => void (text += data.toString()) };
  const view = { columns: [], singular: "sample", plural: "samples" };
  const to = out === undefined ? undefined : ({ sink, rowsBefore: 0, format: "openmetrics" } as const);
  await output.list(view, to).whole(samples);
  if (out !== undefined) await output.replacedFile(resolve(context.settings.cwd, out), text);
}

async function unfinishedOf(context: Context): Promise<readonly Entry[]> {
  const own = await entriesOfProfile(context, context.settings.profile);
  return (await (await context.journal()).select(own)).filter(({ parent }) => parent === null);
}

interface Unfinished {
  readonly entry: Entry;
  readonly row: Row;
  /** The old key's last use in words, if the overlap ends by use; else empty. */
  readonly used: string;
}

async function unfinishedRows(context: Context, listed: ListedKeys): Promise<Unfinished[]> {
  const unfinished = await unfinishedOf(context);
  const missing = await noteMissing(context, unfinished);
  const { lastUseWords } = await import("../../policy/decide.ts");
  const isLater = (entry: Entry): boolean => context.output.format === "table" && isEarly(entry, context.clock.now());
  return unfinished.map((entry) => {
    const first = missing.get(entry.id);
    const { old_key: old, overlap_unused_ms: unusedMs } = entry.detail;
    const lastUsedAt = listed.keys.find(({ id }) => id === old)?.lastUsedAt;
    const isByUse = entry.state === "waiting" && old !== undefined && unusedMs !== undefined;
    const used = isByUse ? `, ${lastUseWords(old, lastUsedAt, listed.nowMs)}` : "";
    const row: Row = {
      topic: "journal",
      name: entry.id,
      state: entry.state,
      detail: [entry.operation, entry.resource_id, entry.policy?.item].filter((part) => part).join(" ") + used,
      due_at: dueAt(entry),
      next_step: first === undefined ? (isLater(entry) ? null : nextStep(entry)) : first.command,
    };
    return { entry, row, used };
  });
}

/** Keys whose expiry needs no row, because a row of an unfinished change covers it. */
function keysOfChanges(unfinished: readonly Unfinished[]): (string | undefined)[] {
  return unfinished.flatMap(({ entry: { detail } }) => [detail.old_key, detail.key_id]);
}

function workOf({ operation, request_text }: Entry): string {
  const [kind = "", verb] = operation.split(".");
  if (operation !== "oauth_client.create") return `${verb} ${kind === "oauth_client" ? "client" : "key"}`;
  return `create client of ${(JSON.parse(request_text) as { service_account_id: string }).service_account_id}`;
}

const stateWords: Readonly<Record<string, string>> = {
  open: "not sent yet",
  unknown: "outcome unknown",
  pending: "accepted, not completed yet",
  secret_lost: "its secret is lost",
  undelivered: "its secret is kept, not delivered",
};

/** @param at time of the next or last step, in words */
function progressWords(entry: Entry, { at, used }: { readonly at: string; readonly used: string }): string {
  const { state } = entry;
  if (dueAt(entry) !== undefined)
    return state === "waiting"
      ? `the old and the new one work; the overlap ends ${at}${used}`
      : `refused as too early (429), due ${at}`;
  const words = state === "open" && mayHaveArrived(entry) ? stateWords["unknown"] : stateWords[state];
  return `${words ?? state}, ${at}`;
}

interface Rows {
  readonly unfinished: readonly Unfinished[];
  readonly due: readonly Row[];
  readonly ending: readonly Row[];
  readonly unreadRows: readonly Row[];
}

interface ItemIds {
  /** The item's unfinished entry, whose row replaces the item's row. */
  readonly entry: string | undefined;
  readonly credential: string | undefined;
}

interface Shown {
  readonly nowMs: number;
  readonly time: (iso: string) => string;
  readonly file: string;
  readonly idsByItem: ReadonlyMap<string, ItemIds>;
  readonly step: (next: string | null | undefined) => string | null;
}

function itemsOf(
  { unfinished, due, ending, unreadRows }: Rows,
  { nowMs, time, file, idsByItem, step }: Shown,
): Pick<Status, "needed" | "waiting"> {
  const ofEntry = ({ entry, row, used }: Unfinished): StatusItem => {
    const { state, resource_id, policy, updated_at } = entry;
    const end = dueAt(entry);
    const at = time(end ?? updated_at);
    const isDue = needsAttention(entry, nowMs);
    return {
      mark: !isDue ? "·" : state === "unknown" || state === "secret_lost" ? "✗" : "!",
      what: [workOf(entry), resource_id ?? "", policy ? `(${policy.item})` : ""].filter(Boolean).join(" "),
      state: progressWords(entry, { at, used }),
      command: isDue ? row.next_step : undefined,
      at: end ?? updated_at,
    };
  };
  const ofPolicy = ({ name, state, detail = "", due_at, next_step }: Row): StatusItem => {
    const id = idsByItem.get(name)?.credential;
    return {
      mark: state === "wait" ? "·" : "!",
      what: id === undefined || detail.includes(id) ? name : `${name} (${id})`,
      state: detail,
      command: next_step,
      at: due_at,
    };
  };
  const ofEnd = ({ name, state, detail, due_at, next_step }: Row): StatusItem => ({
    mark: state === "expired" ? "✗" : "!",
    what: `${name}${detail ? ` "${detail}"` : ""}`,
    state: `${state === "expired" ? "expired" : "expires"} ${time(due_at ?? "")}`,
    command: next_step,
    at: due_at,
  });
  const adoptable = due.filter(({ state, next_step }) => state === "adopt" && next_step?.startsWith("integ adopt "));
  const adoption: StatusItem = {
    mark: "!",
    what: `${adoptable.length} items`,
    state: "credentials exist but are not adopted",
    command: shell`integ adopt --all ${fileWords(file)}`,
  };
  const ofPolicies =
    adoptable.length > 1
      ? [adoption, ...due.filter((row) => !adoptable.includes(row)).map(ofPolicy)]
      : due.map(ofPolicy);
  const kinds = [unseenItems(unreadRows), unfinished.map(ofEntry), ofPolicies, ending.map(ofEnd)];
  const items = kinds.flatMap((ofKind, kind) => ofKind.map((item) => ({ ...item, command: step(item.command), kind })));
  return {
    needed: items.filter(({ mark }) => mark !== "·"),
    waiting: items.filter(({ mark }) => mark === "·"),
  };
}

/** If the policy and the keys are unread for the same reason, one item has both names. */
function unseenItems(unreadRows: readonly Row[]): StatusItem[] {
  const names = (of: Row): string =>
    unreadRows.flatMap((one) => (one.detail === of.detail ? [one.name] : [])).join(", ");
  return unreadRows
    .filter((row, at) => unreadRows.findIndex(({ detail }) => detail === row.detail) === at)
    .map((row) => ({ mark: "✗", what: names(row), state: row.detail ?? "", command: row.next_step }));
}

function ofKey({ id = "a key without an id", name, createdAt, lastUsedAt, expiresAt }: AccessKey): LiveCredential {
  return { id, name: name ?? undefined, createdAt: createdAt ?? undefined, lastUsedAt, expiresAt };
}

/** If the profile lacks a credential, that concerns all items of a kind, so integ notes it once. */
async function dueRows(
  context: Context,
  { items }: Plan,
  { profile, file }: { readonly profile: string; readonly file: string },
): Promise<Row[]> {
  const due = items.filter(({ row }) => row.action !== "none");
  const missing = new Map<ItemKind, Failure | undefined>();
  for (const { row } of due)
    if (row.action !== "wait" && !missing.has(row.kind)) {
      const failure = await missingForItems(context, profile, row.kind);
      missing.set(row.kind, failure);
      if (failure) context.output.note(`${row.name}: ${failure.message} ${failure.details.hint ?? ""}`.trim());
    }
  return due.map(({ row: { name, kind, action, reason, due_at }, decision, postponed }) => {
    const failure = missing.get(kind);
    const apply: NextStep = { nextCommand: shell`integ apply ${fileWords(file)} --only ${name}` };
    const step: NextStep =
      action === "wait" || postponed !== undefined
        ? {}
        : (failure?.details ?? (decision.hold === undefined ? apply : stepForHeld(decision, file)));
    const more = decision.hold === undefined ? postponed : step.hint?.replace(/\.$/, "");
    return {
      topic: "policy",
      name,
      state: action,
      detail: more === undefined ? reason : `${reason}. ${more}`,
      due_at,
      next_step: typeof step.nextCommand === "string" ? step.nextCommand : null,
    };
  });
}

interface Compared {
  readonly due: readonly Row[];
  readonly slots: Slots;
  readonly clients: readonly LiveCredential[];
  /** Credentials of items with a planned action other than an adoption: the item's row covers the expiry too. */
  readonly covered: readonly (string | undefined)[];
  readonly idsByItem: ReadonlyMap<string, ItemIds>;
  readonly failed?: Failure;
}

/** If there is no policy, or integ cannot compare it, the clients are those of the journal. */
async function comparison(
  context: Context,
  { policy, account, file }: { readonly policy: Policy | undefined; readonly account: Account; readonly file: string },
): Promise<Compared> {
  let failed: Failure | undefined;
  try {
    if (policy !== undefined) return await policyStatus(context, { policy, account, file });
  } catch (error) {
    if (!(error instanceof Failure) || isInterruption(error)) throw error;
    failed = error;
  }
  return { due: [], covered: [], idsByItem: new Map(), ...(await knownClients(context, account)), failed };
}

async function policyStatus(
  context: Context,
  { policy, account, file }: { readonly policy: Policy; readonly account: Account; readonly file: string },
): Promise<Compared> {
  const { observed } = await observe(context, { policy, account });
  const { planPolicy } = await import("../../policy/plan.ts");
  const plan = planPolicy(policy, observed, planOptions({}));
  const due = await dueRows(context, plan, { profile: account.profile, file });
  const covered = plan.items
    .filter(({ row: { action } }) => action !== "none" && action !== "adopt")
    .map(({ decision }) => decision.current?.id);
  const idsByItem = new Map<string, ItemIds>();
  for (const { item, hold, current } of plan.items.map(({ decision }) => decision)) {
    const { unfinished, waiting } = observed.works.get(itemKey(item)) ?? {};
    const entry = hold === undefined ? (unfinished ?? waiting)?.entry.id : undefined;
    idsByItem.set(item.name, { entry, credential: current?.id });
  }
  return { due, slots: slotsOf(observed), clients: liveClients(observed), covered, idsByItem };
}

function slotsOf(observed: Observed): Slots {
  return clientCounts(liveClients(observed), observed.unresolved);
}

function liveClients({ clients }: Observed): readonly SeenCredential[] {
  return [...clients.values()].filter(({ status }) => status !== "revoked" && status !== "absent");
}

async function knownClients(
  context: Context,
  account: Account,
): Promise<{ readonly slots: Slots; readonly clients: readonly LiveCredential[] }> {
  const inventory = new ClientInventory(scopeOf(account));
  for await (const entry of (await context.journal()).each({ all: true })) inventory.add(entry);
  const { known, unresolved } = inventory;
  return { slots: clientCounts(known, unresolved), clients: known };
}

/** Number of clients by service account, with creations that may have made one. */
type Slots = ReadonlyMap<string, number>;

function clientCounts(clients: readonly { readonly serviceAccount?: string | undefined }[], unresolved: Slots): Slots {
  const counts = new Map(unresolved);
  for (const { serviceAccount } of clients)
    if (serviceAccount !== undefined) counts.set(serviceAccount, (counts.get(serviceAccount) ?? 0) + 1);
  return counts;
}

function slotRow([name, count]: readonly [string, number]): Row {
  return {
    topic: "slots",
    name,
    state: `${count} of ${maxClients}`,
    detail: "slots used by clients that the journal knows",
  };
}

function keyRows(
  { keys, nowMs }: ListedKeys,
  { withinMs, except }: { readonly withinMs: number; readonly except: ReadonlySet<string | undefined> },
): Row[] {
  return keys.flatMap(({ id = "", name, status, expiresAt }): Row[] => {
    const end = Date.parse(expiresAt ?? "");
    if (status === "revoked" || except.has(id) || Number.isNaN(end) || end - nowMs > withinMs) return [];
    const state = end <= nowMs ? "expired" : "expiring";
    const renewal = shell`integ keys rotate ${id} --by-replacement --expires-in 90d`;
    const next_step = state === "expired" ? shell`integ keys revoke ${id}` : renewal;
    return [{ topic: "key", name: id, state, detail: name, due_at: expiresAt, next_step }];
  });
}

interface ListedKeys {
  readonly keys: readonly AccessKey[];
  /** The service's time, milliseconds since 1970; 0 if the keys were not listed. */
  readonly nowMs: number;
  /** Why the profile cannot list keys. */
  readonly withoutKeys?: string;
  readonly unread?: readonly Row[];
}

/**
 * @returns no keys if the profile cannot list them; a row with the reason if the request fails
 * @throws Failure if the request fails and the output is OpenMetrics, or if the command is interrupted
 */
async function listedKeys(context: Context): Promise<ListedKeys> {
  const profile = await context.profiles.active();
  let isWithoutKeys = profile.organizationId === undefined || profile.keyExchange === undefined;
  try {
    await profile.legacy();
    isWithoutKeys = false;
    const service = await context.connect();
    const { value } = await read(context, "list access keys", () => service.accessKeys.list());
    return { keys: value.rows.map((row) => readAccessKey(row.value)), nowMs: serviceNow(context, service) };
  } catch (error) {
    // A monitoring system must not conclude that the account has no keys.
    if (
      !(error instanceof Failure) ||
      isInterruption(error) ||
      (context.output.format === "openmetrics" && !isWithoutKeys)
    )
      throw error;
    if (!isWithoutKeys) return unlistedKeys(error);
    // The page prints the same reason.
    if (!context.output.isTable) context.output.note(`Access keys are not included: ${error.message}`);
    return { keys: [], nowMs: 0, withoutKeys: error.message };
  }
}

function unlistedKeys(why: Failure): ListedKeys {
  return { keys: [], nowMs: 0, unread: [unreadRow("key", "access keys", why)] };
}
