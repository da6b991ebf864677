// `integ report` lists all credentials that integ can find, with a row for each kind of unknown fact.
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { extname, join, parse, resolve } from "node:path";
import { readAccessKey } from "../../api/access-keys.ts";
import type { CreationRequest } from "../../api/oauth-client-creation.ts";
import { isDate } from "../../api/json/iso-time.ts";
import type { Context } from "../../context.ts";
import { Failure, invalidValue, isInterruption } from "../../errors.ts";
import type { Journal } from "../../journal/journal.ts";
import { type Entry, kindOf, resourcesOf, revokedBy } from "../../journal/entry.ts";
import { quotedWord } from "../../next-step.ts";
import type { Account } from "../../operations/workbench.ts";
import type { Column, Format, ListView } from "../../output/formats/format.ts";
import { roundedDuration } from "../../output/relative-time.ts";
import { eachInParallel } from "../../parallel.ts";
import type { Policy } from "../../policy/policy.ts";
import { isOf, itemKey, type ItemWorks, worksByName } from "../../policy/works.ts";
import { describeDestination, placesOf } from "../../secrets/destination.ts";
import { untrustedWords } from "../journal/view.ts";
import { type Waiver, waiversIn } from "../keys/audit-waivers.ts";
import { sinceOf } from "../options/since.ts";
import { scopeOf } from "../policy/observe.ts";
import { loadPolicy, standardFile } from "../policy/policy-file.ts";
import { assertFolder } from "../policy/text-file.ts";
import { accountOf, warnOfDamage } from "../running/change.ts";
import { read, readAnswer, serviceNow, whereOf } from "../running/read.ts";
import { defineVerb } from "../verb.ts";

const columns: readonly Column[] = [
  { path: "kind", heading: "kind", kind: "word" },
  { path: "id", heading: "id", kind: "id" },
  { path: "name", heading: "name" },
  { path: "owner", heading: "owner" },
  { path: "permissions", heading: "permissions", kind: "list" },
  { path: "status", heading: "status", kind: "status" },
  { path: "created_at", heading: "created", kind: "time" },
  { path: "last_used_at", heading: "last used", kind: "time" },
  { path: "expires_at", heading: "expires", kind: "time" },
  { path: "delivered_to", heading: "delivered to", kind: "list" },
  { path: "proof", heading: "proof", kind: "sentence" },
  { path: "policy_item", heading: "policy item" },
  { path: "note", heading: "note", kind: "sentence" },
];

export const view: ListView = { columns, singular: "row", plural: "access review" };

interface Row {
  /**
   * `report` is about the report itself, `unknown` names facts that the report lacks, and `change` is a change since
   * `--since`.
   */
  readonly kind: "report" | "oauth_client" | "access_key" | "policy_item" | "change" | "unknown";
  readonly id: string;
  readonly name?: string | null | undefined;
  readonly owner?: string | null | undefined;
  readonly permissions?: readonly string[] | undefined;
  readonly status?: string | undefined;
  readonly created_at?: string | null | undefined;
  readonly last_used_at?: string | null | undefined;
  readonly expires_at?: string | null | undefined;
  readonly delivered_to?: readonly string[] | undefined;
  readonly proof?: string | undefined;
  readonly policy_item?: string | undefined;
  readonly note?: string | undefined;
}

export const command = defineVerb({
  isPaged: true,
  fields: columns.map(({ path }) => path),
  result: columns,
  formats: ["html"],
  configure: (command) =>
    command
      .option("-f, --file <path>", `Policy file (default: ${standardFile}, if it exists)`)
      .option("--since <date>", "Also show the journal's changes since this date, such as 2026-07-01")
      .option("--waivers <file>", "Show the waivers of this file, in the format of keys audit")
      .option("--out <file>", "Write to a new file; its suffix chooses the format (.html, .csv, .json, .md)"),
  examples: [
    { line: "integ report --out review.html", does: "one page to read, sort and print" },
    { line: "integ report --since 2026-07-01 -o csv", does: "the same rows, with what changed, for a spreadsheet" },
    { line: "integ report --json | jq '.data[] | select(.kind == \"unknown\")'", does: "what the report cannot say" },
  ],
  more: "The report has each client and key with its owner, permissions, age, use, expiry, deliveries and policy item, each item of the policy file, and a row for each unknown fact.",
  neverAsks: true,
  async run(context, { options }) {
    const { out, since: typed } = options;
    const since = typed === undefined ? undefined : pastTime(typed, context.clock.now());
    const format = out === undefined ? context.output.format : formatOf(out, context.output);
    if (out !== undefined) assertNew(out, context.settings.cwd);
    const waivers = options.waivers === undefined ? undefined : waiversIn(context, options.waivers);
    const texts = await rowsOf(context, { file: options.file ?? standardFile, since, waivers });
    if (out === undefined) return context.output.list(view).whole(texts);
    const pieces: string[] = [];
    const sink = { write: async (data: string | Buffer) => void pieces.push(data.toString()) };
    await context.output.list(view, { sink, rowsBefore: 0, format }).whole(texts);
    await writeReport(context, out, pieces);
  },
});

/** A date means its first moment in UTC. */
function pastTime(text: string, now: number): string {
  const since = isDate(text) ? new Date(text).toISOString() : sinceOf(text, now);
  if (Date.parse(since) <= now) return since;
  throw invalidValue("--since", text, { why: "it is in the future", hint: "Name a date that has passed." });
}

const suffixes: Readonly<Record<string, Format>> = {
  ".html": "html",
  ".csv": "csv",
  ".json": "json",
  ".ndjson": "ndjson",
  ".md": "markdown",
  ".yaml": "yaml",
};

function formatOf(path: string, { typedFormat }: Context["output"]): Format {
  const named = suffixes[extname(path).toLowerCase()];
  const format = typedFormat ?? named;
  if (named !== undefined && format !== named)
    throw new Failure("usage", `The format ${format} does not fit the name ${path}.`, {
      hint: `Leave the format out for ${named}, or name another file.`,
    });
  if (format !== undefined && format !== "table") return format;
  throw new Failure("usage", `The format of ${path} is not known.`, {
    hint: "Name a file that ends with .html, .csv, .json or .md.",
  });
}

/** The check precedes the requests, so that a long run does not fail at its end. */
function assertNew(typed: string, cwd: string): void {
  const path = resolve(cwd, typed);
  const { dir, name, ext } = parse(typed);
  if (existsSync(path))
    throw new Failure("usage", `--out: ${typed} already exists.`, {
      meaning: "It was not changed.",
      hint: `Name a new file, like --out ${quotedWord(join(dir, `${name}-2${ext}`))}.`,
    });
  assertFolder(path, typed);
}

async function writeReport({ output, settings }: Context, path: string, pieces: readonly string[]): Promise<void> {
  try {
    await output.newFile(resolve(settings.cwd, path), pieces);
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code === "EEXIST" ? "it exists" : (error as Error).message;
    throw new Failure("failed", `The report was not written to ${path}: ${why}.`, {
      meaning: "Nothing of it was written.",
      hint: "Name another file with --out.",
    });
  }
  output.note(`The report is in ${path}.`);
}

interface ReportOptions {
  readonly file: string;
  readonly since: string | undefined;
  readonly waivers: readonly Waiver[] | undefined;
}

/** @returns JSON texts, the summary first */
async function rowsOf(context: Context, options: ReportOptions): Promise<string[]> {
  const { file, since, waivers } = options;
  const isThere = file !== standardFile || existsSync(resolve(context.settings.cwd, file));
  const policy = isThere ? (await loadPolicy(context, file)).policy : undefined;
  const account = await accountOf(context);
  const journal = await context.journal();
  // Reading the list of keys takes much memory for a moment, so integ reads the list before the journal.
  const keys = await keyRows(context);
  await warnOfDamage(context);
  const entries: Entry[] = [];
  for await (const entry of journal.each({ all: true, archived: true }))
    if (isOf(entry, scopeOf(account))) entries.push(entry);
  const changed = since === undefined ? [] : entries.filter(({ updated_at }) => updated_at >= since);
  const untrusted = await journal.untrusted(entries.map(({ id }) => id));
  if (untrusted.size > 0) context.output.warn(untrustedWords([...untrusted].slice(0, 5), untrusted.size));
  const facts = factsIn(entries);
  const clients = await clientRows(context, { account, entries, facts, untrusted });
  const credentials = [...clients, ...keys.map((row) => withFacts(row, facts))];
  const nowMs = serviceNow(context, account.service);
  const rows = [
    ...withWaivers(credentials, waivers ?? [], nowMs),
    ...itemRows(policy, { works: worksByName(entries, scopeOf(account), untrusted), credentials }),
    ...(await changeRows(journal, changed)),
    ...unknownRows(policy, options),
  ];
  const untrustedIds = new Set(
    entries.flatMap((entry) => (untrusted.has(entry.id) ? [entry.id, ...resourcesOf(entry), entry.policy?.item] : [])),
  );
  const texts = rows.map((row) => JSON.stringify(untrustedIds.has(row.id) ? withWarning(row) : row));
  const hash = createHash("sha256").update("[");
  for (const [index, text] of texts.entries()) hash.update(index === 0 ? text : `,${text}`);
  const digest = hash.update("]").digest("hex");
  const { profile, region, baseUrl, principal, keyId, organizationId } = account;
  const madeAt = new Date(nowMs).toISOString();
  const as = principal === undefined ? `access key ${keyId ?? "(id not known)"}` : `client ${principal}`;
  const about: Row = {
    kind: "report",
    id: digest.slice(0, 16),
    owner: `profile ${profile} (${region})`,
    created_at: madeAt,
    note: `Made ${madeAt} with ${as} of organization ${organizationId ?? "(not known)"} at ${baseUrl}, and with the journal ${journal.path}${since === undefined ? "" : `, changes since ${since}`}. Digest of the other rows: sha256:${digest}.`,
  };
  return [JSON.stringify(about), ...texts];
}

function withWarning({ note = "", proof, ...row }: Row): Row {
  const warning = "Untrusted: what the journal says of it is not proven by this machine's journal key.";
  return { ...row, proof: proof && `untrusted: ${proof}`, note: `${warning} ${note}`.trim() };
}

interface ClientSources {
  readonly account: Account;
  readonly entries: readonly Entry[];
  readonly facts: ReadonlyMap<string, JournalFacts>;
  readonly untrusted: ReadonlySet<string>;
}

/** Failures that end the report. Any other failure to read a client becomes a row. */
const fatalKinds: ReadonlySet<string> = new Set(["auth", "unreachable", "interrupted", "terminated"]);

/** integ does not request revoked clients, of which there may be thousands: their rows come from the journal. */
async function clientRows(context: Context, { account, entries, facts, untrusted }: ClientSources): Promise<Row[]> {
  const ofClients = entries.filter((entry) => kindOf(entry) === "oauth_client");
  const ids = new Set(ofClients.flatMap(({ resource_id, detail }) => [resource_id, detail.old_client]));
  const revoked = new Map(ofClients.flatMap((entry) => (untrusted.has(entry.id) ? [] : [[revokedBy(entry), entry]])));
  const rows = new Map<string, Row>();
  for (const { operation, resource_id: id, request_text, created_at } of ofClients) {
    const end = id === null ? undefined : revoked.get(id);
    if (id === null || end === undefined) continue;
    const request = operation.endsWith(".create") || operation.endsWith(".adopt") ? JSON.parse(request_text) : {};
    const { service_account_id: owner, scopes: permissions } = request as Partial<CreationRequest>;
    const created = operation.endsWith(".create") ? { created_at } : {};
    const note = `From the journal, which has its revocation of ${end.updated_at}.`;
    rows.set(id, {
      ...(rows.get(id) ?? { kind: "oauth_client", id, status: "revoked", ...facts.get(id), note }),
      ...(owner && { owner, permissions }),
      ...created,
    });
  }
  const requested = [...ids].filter((id) => typeof id === "string").filter((id) => !rows.has(id));
  const where = await whereOf(context);
  const progress = context.output.progress("Reading the clients");
  try {
    await eachInParallel(requested, 16, async (id) => {
      const what = { what: `get OAuth client ${id}`, where };
      try {
        const { value } = await readAnswer(context, what, () => account.service.oauthClients.get(id));
        const { status, service_account_id: owner, scopes: permissions, created_at } = value;
        const note = "The API does not show when a client was last used or expires.";
        rows.set(id, { kind: "oauth_client", id, owner, permissions, status, created_at, ...facts.get(id), note });
      } catch (error) {
        if (!(error instanceof Failure) || fatalKinds.has(error.kind)) throw error;
        if (error.kind === "not_found") {
          const note = "An entry of the journal names this id, and the service does not find it.";
          rows.set(id, { kind: "oauth_client", id, status: "absent", ...facts.get(id), note });
          return;
        }
        const note = `The client ${id} could not be read: ${error.message}`;
        context.output.warn(note);
        rows.set(id, { kind: "unknown", id, ...facts.get(id), note });
      }
    });
  } finally {
    progress.done();
  }
  // The rows are sorted, because responses arrive in any order and the digest covers the order.
  return [...rows.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

function withWaivers(rows: readonly Row[], waivers: readonly Waiver[], nowMs: number): Row[] {
  const words = ({ rule, until, endsAt, reason }: Waiver): string =>
    `${rule}: ${endsAt > nowMs ? "accepted until" : "was accepted until"} ${until}: ${reason ?? "no reason given"}.`;
  const ids = new Set(rows.map(({ id }) => id));
  return [
    ...rows.map((row) => {
      const own = waivers.filter(({ key }) => key === row.id).map(words);
      return own.length === 0 ? row : { ...row, note: [row.note, ...own].filter(Boolean).join(" ") };
    }),
    ...waivers
      .filter(({ key }) => !ids.has(key))
      .map((one): Row => ({ kind: "unknown", id: one.key, note: `No such key was listed. ${words(one)}` })),
  ];
}

function itemRows(
  policy: Policy | undefined,
  { works, credentials }: { readonly works: ReadonlyMap<string, ItemWorks>; readonly credentials: readonly Row[] },
): Row[] {
  return (policy?.items ?? []).map((item) => {
    const id = works.get(itemKey(item))?.candidates[0];
    const { everyMs, beforeExpiryMs } = item.rotate ?? {};
    const limits = [
      everyMs !== undefined && `every ${roundedDuration(everyMs)}`,
      beforeExpiryMs !== undefined && `${roundedDuration(beforeExpiryMs)} before its expiry`,
    ].filter(Boolean);
    const note = [
      id === undefined ? "The journal has no credential of this item." : `Its credential is ${id}.`,
      item.rotate === undefined ? "The policy does not rotate it." : `The policy rotates it ${limits.join(" or ")}.`,
    ];
    return {
      kind: "policy_item",
      id: item.name,
      owner: item.kind === "oauth_client" ? item.serviceAccount : undefined,
      permissions: item.scopes,
      status: id === undefined ? "missing" : (credentials.find((row) => row.id === id)?.status ?? "not known"),
      policy_item: item.name,
      note: note.filter(Boolean).join(" "),
    };
  });
}

type JournalFacts = Pick<Row, "delivered_to" | "proof" | "policy_item">;

function factsIn(entries: readonly Entry[]): Map<string, JournalFacts> {
  const facts = new Map<string, JournalFacts>();
  for (const entry of [...entries].sort((a, b) => a.updated_at.localeCompare(b.updated_at))) {
    const id = entry.resource_id;
    if (id === null) continue;
    const earlier = facts.get(id);
    const places = entry.state === "done" ? placesOf(entry.destination).map(describeDestination) : [];
    facts.set(id, {
      ...(places.length > 0
        ? { delivered_to: places.map(({ name }) => name), proof: places.map(({ proof }) => proof).join("; ") }
        : { delivered_to: earlier?.delivered_to, proof: earlier?.proof }),
      ...(entry.state === "undelivered" && {
        delivered_to: undefined,
        proof: `not delivered: the secret is kept for integ journal claim ${entry.id}`,
      }),
      policy_item: entry.policy?.item ?? earlier?.policy_item,
    });
  }
  return facts;
}

async function keyRows(context: Context): Promise<Row[]> {
  try {
    await (await context.profiles.active()).legacy();
    const service = await context.connect();
    const { value } = await read(context, "list access keys", () => service.accessKeys.list());
    const nowMs = serviceNow(context, service);
    const rows = value.rows.map((row): Row => {
      const { id = "", createdAt, lastUsedAt, expiresAt, ...key } = readAccessKey(row.value);
      const { name, boundEmail: owner = key.createdByUserId, scopes: permissions } = key;
      const status = key.status === "active" && Date.parse(expiresAt ?? "") <= nowMs ? "expired" : key.status;
      const times = { created_at: createdAt, last_used_at: lastUsedAt, expires_at: expiresAt };
      const note = [
        lastUsedAt === undefined && "The service does not show when it was last used.",
        lastUsedAt === null && "Never used.",
        expiresAt === null && "It does not expire.",
      ];
      const fields = { id, name, owner, permissions, status, ...times };
      return { kind: "access_key", ...fields, note: note.filter(Boolean).join(" ") };
    });
    const more: Row = { kind: "unknown", id: "access_keys", note: "The service has more keys than it listed." };
    return value.saysMore ? [...rows, more] : rows;
  } catch (error) {
    if (!(error instanceof Failure) || isInterruption(error)) throw error;
    const note = `The access keys could not be listed: ${error.message}`;
    context.output.warn(note);
    return [{ kind: "unknown", id: "access_keys", note }];
  }
}

function withFacts({ note, ...row }: Row, facts: ReadonlyMap<string, JournalFacts>): Row {
  const known = facts.get(row.id);
  const more = row.kind === "access_key" && !known?.proof && "The journal has no record that its secret was delivered.";
  return { ...row, ...known, note: [note, more].filter(Boolean).join(" ") || undefined };
}

/** The creation of a rotation has its own entry, so the row of the creation names the rotation. */
async function changeRows(journal: Journal, changed: readonly Entry[]): Promise<Row[]> {
  const actors = await journal.actors(changed.map(({ id }) => id));
  return changed.map(({ id, operation, state, updated_at, profile, principal, parent, ...entry }) => ({
    kind: "change",
    id,
    name: operation,
    owner: [...(actors.get(id) ?? []), `profile ${profile}`, principal && `client ${principal}`]
      .filter(Boolean)
      .join(", "),
    status: state,
    created_at: updated_at,
    policy_item: entry.policy?.item,
    note: [...new Set(resourcesOf(entry)), parent && `part of ${parent}`].filter(Boolean).join(", ") || undefined,
  }));
}

function unknownRows(policy: Policy | undefined, { waivers, since }: ReportOptions): Row[] {
  const changes =
    since === undefined
      ? "Changes are not included: add --since."
      : "Only changes of this journal are included, not those in the console, by machines with another journal, or of pruned entries.";
  const rows: [id: string, note: string | false][] = [
    ["oauth_clients", "The API has no list of clients: this report has only clients that the journal knows."],
    [
      "policy",
      policy === undefined && "No policy file was read: the report cannot show which credentials should exist.",
    ],
    ["exceptions", waivers === undefined && "Waivers are not included: add --waivers."],
    ["changes", changes],
  ];
  return rows.flatMap(([id, note]) => (note === false ? [] : [{ kind: "unknown", id, note }]));
}
