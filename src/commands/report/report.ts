// `integ report`: the access review, with all known credentials and a row for each fact that the report lacks.
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { extname, resolve } from "node:path";
import { readAccessKey } from "../../api/access-keys.ts";
import type { Context } from "../../context.ts";
import { Failure, invalidValue } from "../../errors.ts";
import { type Entry, resourcesOf } from "../../journal/entry.ts";
import type { Column, Format, ListView } from "../../output/formats/format.ts";
import { pageOf } from "../../output/row-page.ts";
import { describeDestination, placesOf } from "../../secrets/destination.ts";
import { observe } from "../policy/observe.ts";
import { addPolicyFile, loadPolicy, standardFile } from "../policy/policy-file.ts";
import { accountOf, mentionDamage } from "../running/change.ts";
import { read } from "../running/read.ts";
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
  /** `report`: the whole; `unknown`: a fact that the report lacks; `change`: since the date. */
  readonly kind: "report" | "oauth_client" | "access_key" | "change" | "unknown";
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
  formats: ["html"],
  configure: (command) =>
    addPolicyFile(command)
      .option("--since <date>", "Show the changes of the journal since this date too, like 2026-07-01")
      .option("--out <file>", "Write to a new file; its suffix chooses the format (.html, .csv, .json, .md)"),
  examples: [
    { line: "integ report --out review.html", does: "one page to read, sort and print" },
    { line: "integ report --since 2026-07-01 -o csv", does: "the same rows, with what changed, for a spreadsheet" },
    { line: "integ report --json | jq '.data[] | select(.kind == \"unknown\")'", does: "what the report cannot say" },
  ],
  more: "Each client and key with its owner, permissions, age, use, expiry, deliveries and policy item. Each unknown fact has a row.",
  neverAsks: true,
  async run(context, { options }) {
    const since = sinceOf(options.since);
    const { out } = options;
    const format = out === undefined ? context.output.format : formatOf(out, context.output);
    const texts = await rowsOf(context, { file: options.file, since });
    const print = async (list: ReturnType<Context["output"]["list"]>): Promise<void> => {
      await list.page(pageOf(texts));
      await list.end({ nextPageToken: null, hasMore: false });
    };
    if (out === undefined) return print(context.output.list(view));
    let text = "";
    const sink = { write: async (data: string | Buffer) => void (text += data.toString()) };
    await print(context.output.list(view, { sink, rowsBefore: 0, format }));
    await writeReport(context, out, text);
  },
});

function sinceOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const ms = Date.parse(text);
  if (/^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(ms)) return new Date(ms).toISOString();
  throw invalidValue("--since", text, { why: "it is not a date", hint: "Write it like --since 2026-07-01." });
}

const suffixes: Readonly<Record<string, Format>> = {
  ".html": "html",
  ".csv": "csv",
  ".json": "json",
  ".ndjson": "ndjson",
  ".md": "markdown",
};

function formatOf(path: string, { typedFormat }: Context["output"]): Format {
  const format = typedFormat ?? suffixes[extname(path).toLowerCase()];
  if (format !== undefined && format !== "table") return format;
  throw new Failure("usage", `The format of ${path} is not known.`, {
    hint: "Name a file that ends with .html, .csv, .json or .md.",
  });
}

async function writeReport({ output, settings }: Context, path: string, text: string): Promise<void> {
  async function* whole(): AsyncIterable<string> {
    yield text;
  }
  try {
    await output.newFile(resolve(settings.cwd, path), whole());
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code === "EEXIST" ? "it exists" : (error as Error).message;
    throw new Failure("failed", `The report was not written to ${path}: ${why}.`, {
      meaning: "Nothing of it was written.",
      hint: "Name another file with --out.",
    });
  }
  output.note(`The report is in ${path}.`);
}

interface Wanted {
  readonly file: string;
  readonly since: string | undefined;
}

/** Rows as JSON text, the summary first. */
async function rowsOf(context: Context, { file, since }: Wanted): Promise<string[]> {
  const isThere = file !== standardFile || existsSync(resolve(context.settings.cwd, file));
  const policy = isThere ? (await loadPolicy(context, file)).policy : undefined;
  const account = await accountOf(context);
  await mentionDamage(context);
  const { observed, entries } = await observe(context, { policy: policy ?? noItems, account });
  const known = knownOf(entries);
  // Sorted, because the digest covers the rows and responses arrive in any order.
  const clients = [...observed.clients.values()]
    .toSorted((a, b) => (a.id < b.id ? -1 : 1))
    .map(
      ({ id, status, serviceAccount, scopes, createdAt }): Row => ({
        kind: "oauth_client",
        id,
        owner: serviceAccount,
        permissions: scopes,
        status,
        created_at: createdAt,
        ...known.get(id),
        note: "The API does not say when a client was last used, nor when it expires.",
      }),
    );
  const rows = [
    ...clients,
    ...(await keyRows(context, known)),
    ...changesSince(entries, since),
    ...unknownRows({ hasPolicy: policy !== undefined, since }),
  ];
  const texts = rows.map((row) => JSON.stringify(row));
  const digest = createHash("sha256")
    .update(`[${texts.join(",")}]`)
    .digest("hex");
  const { profile, region, baseUrl } = account;
  const { path } = await context.journal();
  const made = new Date(observed.nowMs).toISOString();
  const about: Row = {
    kind: "report",
    id: digest.slice(0, 16),
    owner: `profile ${profile} (${region})`,
    created_at: made,
    note: `Made ${made} against ${baseUrl}, with the journal ${path}${since === undefined ? "" : `, changes since ${since}`}. Digest of the other rows: sha256:${digest}.`,
  };
  return [JSON.stringify(about), ...texts];
}

const noItems = { id: "", items: [], maxFailures: 1, changesPerRun: 1, keepFreeSlots: 0, unmanaged: "ignore" } as const;

type Known = Pick<Row, "delivered_to" | "proof" | "policy_item">;

/** The journal's facts about each credential: destination and item. Later entries win. */
function knownOf(entries: readonly Entry[]): Map<string, Known> {
  const known = new Map<string, Known>();
  for (const entry of [...entries].sort((a, b) => a.updated_at.localeCompare(b.updated_at))) {
    const id = entry.resource_id;
    if (id === null) continue;
    const before = known.get(id);
    const places =
      entry.destination === null || entry.state !== "done" ? [] : placesOf(entry.destination).map(describeDestination);
    known.set(id, {
      delivered_to: places.length > 0 ? places.map(({ name }) => name) : before?.delivered_to,
      proof: places.length > 0 ? places.map(({ proof }) => proof).join("; ") : before?.proof,
      policy_item: entry.policy?.item ?? before?.policy_item,
    });
  }
  return known;
}

async function keyRows(context: Context, known: ReadonlyMap<string, Known>): Promise<Row[]> {
  try {
    await (await context.profiles.active()).legacy();
    const service = await context.connect();
    const { value } = await read(context, "list access keys", () => service.accessKeys.list());
    const rows = value.rows.map((row): Row => {
      const {
        id = "",
        name,
        boundEmail,
        createdByUserId,
        scopes,
        status,
        createdAt,
        lastUsedAt,
        expiresAt,
      } = readAccessKey(row.value);
      const of = { created_at: createdAt, last_used_at: lastUsedAt, expires_at: expiresAt };
      const note = [
        lastUsedAt === undefined && "The service does not say when it was last used.",
        lastUsedAt === null && "Never used.",
        expiresAt === null && "It does not expire.",
        !known.get(id)?.delivered_to && "This journal does not know where its secret went.",
      ];
      const owner = boundEmail ?? createdByUserId;
      return {
        kind: "access_key",
        id,
        name,
        owner,
        permissions: scopes,
        status,
        ...of,
        ...known.get(id),
        note: note.filter(Boolean).join(" "),
      };
    });
    const more: Row = { kind: "unknown", id: "access_keys", note: "The service has more keys than it listed." };
    return value.saysMore ? [...rows, more] : rows;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return [{ kind: "unknown", id: "access_keys", note: `The access keys could not be listed: ${error.message}` }];
  }
}

function changesSince(entries: readonly Entry[], since: string | undefined): Row[] {
  if (since === undefined) return [];
  return entries
    .filter(({ updated_at }) => updated_at >= since)
    .map(({ id, operation, state, updated_at, profile, ...entry }) => ({
      kind: "change",
      id,
      name: operation,
      owner: `profile ${profile}`,
      status: state,
      created_at: updated_at,
      policy_item: entry.policy?.item,
      note: resourcesOf(entry).join(", "),
    }));
}

function unknownRows({ hasPolicy, since }: { readonly hasPolicy: boolean; readonly since: string | undefined }): Row[] {
  const rows: [id: string, note: string | false][] = [
    ["oauth_clients", "The API has no list of clients: this report has only clients that the journal knows."],
    ["policy", !hasPolicy && "No policy file was read: the report cannot show which credentials should exist."],
    ["exceptions", "Accepted exceptions are in the waiver file of integ keys audit, which this report does not read."],
    ["changes", since === undefined && "Changes are not included: add --since."],
  ];
  return rows.flatMap(([id, note]) => (note === false ? [] : [{ kind: "unknown", id, note }]));
}
