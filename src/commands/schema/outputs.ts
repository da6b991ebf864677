// The JSON Schemas of `integ schema`. A new key is compatible; a removed key or another type breaks scripts.
import { z } from "zod";

const text = z.string();
const textOrNull = text.nullable();
const time = text.describe("ISO 8601, UTC");
const timeOrNull = time.nullable();
const command = text.describe("A command for a shell");
const count = z.int().min(0);

const severity = z.enum(["high", "medium", "low"]);
const itemKind = z.enum(["oauth_client", "access_key"]);

const finding = z.looseObject({
  object: z.literal("finding"),
  id: text.describe("Stable: the rule and the client or key"),
  rule: text,
  severity,
  message: text,
  remedy: text,
});

const keyFinding = finding.extend({ key_id: textOrNull, key_name: textOrNull });

const waiver = z.looseObject({ rule: text, key: text, until: text });

const journalEntry = z.looseObject({
  id: text,
  object: z.literal("journal_entry"),
  operation: text,
  state: text,
  idempotency_key: textOrNull,
  profile: text,
  region: text,
  base_url: text,
  service_version: textOrNull,
  request: z.unknown().describe("The body as it was sent"),
  resource_id: textOrNull,
  attempts: count,
  request_ids: z.array(text),
  created_at: time,
  updated_at: time,
  last_error: z.looseObject({ kind: text, message: text }).nullable(),
  next_step: command.nullable(),
  due_at: timeOrNull.optional(),
  replaces: text.optional(),
  replaced_by: text.optional(),
  parent: text.optional(),
  policy_name: text.optional(),
  policy_id: text.optional(),
  needs: text.optional(),
  untrusted: z.boolean().optional(),
  holder: z.looseObject({ user: textOrNull, host: textOrNull, since: timeOrNull }).partial().optional(),
});

const profile = z.looseObject({
  object: z.literal("profile"),
  name: text,
  default: z.boolean(),
  region: text,
  base_url: text,
  organization_id: textOrNull,
  service_version: textOrNull,
  credential: z.looseObject({ kind: text }).nullable(),
  legacy: z.looseObject({}).nullable(),
  oauth: z.looseObject({}).nullable(),
});

const planRow = z.looseObject({
  name: text,
  kind: itemKind,
  grants: text,
  scopes: z.array(text),
  service_account: textOrNull,
  type: textOrNull,
  expires_in: textOrNull.describe("A duration, as a policy writes it"),
  expires_at: timeOrNull,
  action: text,
  reason: text,
  age: textOrNull.describe("A duration, as a policy writes it"),
  due_at: timeOrNull,
  slots_before: count.nullable(),
  slots_after: count.nullable(),
  destinations: z.array(text),
  changed: z.array(text).describe("Commands that did not receive the last secret"),
  state: text,
  resource_id: textOrNull,
  entry: textOrNull,
});

const reportKeys = {
  id: text,
  name: textOrNull.optional(),
  owner: textOrNull.optional().describe("Of a change: who made it, and as which profile"),
  permissions: z.array(text).optional(),
  status: text.optional(),
  created_at: timeOrNull.optional(),
  last_used_at: timeOrNull.optional(),
  expires_at: timeOrNull.optional(),
  delivered_to: z.array(text).optional(),
  proof: text.optional(),
  policy_item: text.optional(),
  note: text.optional(),
};

const reportRow = (kind: string, ...always: readonly (keyof typeof reportKeys)[]): z.ZodObject =>
  z
    .looseObject({ kind: z.literal(kind), ...reportKeys })
    .required(Object.fromEntries(always.map((key) => [key, true])) as { id: true });

const reportRows = z.union([
  reportRow("report", "owner", "created_at", "note"),
  reportRow("oauth_client", "status", "note"),
  reportRow("access_key"),
  reportRow("policy_item", "permissions", "status", "policy_item", "note"),
  reportRow("change", "name", "owner", "status", "created_at"),
  reportRow("unknown", "note"),
]);

const commandShape = z.looseObject({
  object: z.literal("command"),
  name: text,
  command: text,
  aliases: z.array(text),
  summary: text,
  usage: text,
  arguments: z.array(z.looseObject({ name: text, summary: text })),
  flags: z.array(z.looseObject({ name: text })),
  examples: z.array(z.looseObject({ line: text, does: text })),
  notes: textOrNull,
  commands: z.array(z.looseObject({ object: z.literal("command") })).describe("The commands below this one"),
});

const mergeCounts = { added: count, extended: count, unchanged: count };

interface Output {
  readonly what: string;
  readonly schema: z.ZodType;
  /** Commands that print the object alone, in a `list` envelope, or as NDJSON lines. */
  readonly printedBy: readonly string[];
  /** True if JSON output has this object instead of the envelope. */
  readonly isDocument?: true;
  /** True for an object of the service: integ prints all of it, and checks only what integ needs. */
  readonly isOfService?: true;
}

type Shape = z.ZodRawShape | z.ZodType;

const row = (what: string, printedBy: readonly string[], shape: Shape): Output => ({
  what,
  printedBy,
  schema: shape instanceof z.ZodType ? shape : z.looseObject(shape),
});

const document = (what: string, printedBy: readonly string[], shape: Shape): Output => ({
  ...row(what, printedBy, shape),
  isDocument: true,
});

const ofService = (what: string, printedBy: readonly string[], shape: z.ZodRawShape): Output => ({
  ...row(`${what}, as the service sent it`, printedBy, shape),
  isOfService: true,
});

const verbs = (noun: string, ...names: readonly string[]): string[] => names.map((name) => `${noun} ${name}`);

export const outputs: Readonly<Record<string, Output>> = {
  access_key: ofService(
    "An access key",
    [
      ...verbs("keys", "list", "get", "create", "rotate", "revoke", "audit --fix"),
      ...verbs("journal", "claim", "recover"),
    ],
    {
      id: text,
      name: text,
      keyType: text,
      boundEmail: text,
      status: text,
      lastUsedAt: timeOrNull.optional(),
      expiresAt: timeOrNull.optional(),
      createdAt: time,
      createdByUserId: text,
      scopes: z.array(text),
      secret: textOrNull.optional().describe("null: it went to a destination"),
    },
  ),
  applied_item: row(
    "What was done for an item of a policy",
    ["apply", ...verbs("adopt", "oauth-client", "access-key"), "adopt"],
    {
      name: text,
      kind: itemKind,
      action: text,
      result: text,
      resource_id: textOrNull,
      due_at: timeOrNull,
      entry: textOrNull,
      message: text,
      choices: z.array(text),
      error: z.looseObject({ kind: text, exit_code: count }).optional(),
    },
  ),
  client_finding: row(
    "A finding about an OAuth client or a service account",
    ["oauth-clients audit"],
    finding.extend({ client_id: textOrNull, service_account_id: textOrNull }),
  ),
  command: row("A command with its arguments, options and examples", ["commands"], commandShape),
  commands: document("All commands with their options, and the environment variables", ["commands"], {
    object: z.literal("program"),
    commands: z.array(commandShape),
    environment: z.array(z.looseObject({})),
  }),
  contract_finding: row("A difference between the published contract and integ's own", ["spec check"], {
    severity: text,
    subject: text,
    detail: text,
  }),
  check: row("A check of the profile, the service or this machine", ["doctor"], {
    check: text,
    status: text,
    message: text,
    next: command.nullable(),
    hint: textOrNull,
  }),
  default_profile: document("The profile that is now the default", ["profiles use"], {
    object: z.literal("default_profile"),
    name: text,
  }),
  entity: ofService("An entity", ["entities list", "cohorts members"], {
    id: text,
    object: text,
    type: text,
    status: text,
    display_name: text,
    email: text,
    created_at: time,
    updated_at: time,
  }),
  error: row("The last line of standard error of a command that failed", [], {
    error: z.looseObject({
      kind: text,
      message: text,
      exit_code: count,
      status: count.optional(),
      code: text.optional(),
      title: text.optional(),
      detail: text.optional(),
      param: text.optional(),
      request_id: text.optional(),
      doc_url: text.optional(),
      retryable: z.boolean().optional(),
      hint: text.optional(),
      next_command: command.optional(),
    }),
  }),
  journal_entry: row("An entry of the journal: one change", verbs("journal", "list", "recover"), journalEntry),
  journal_entry_history: document(
    "An entry of the journal with its steps and the destinations of its secret",
    ["journal show"],
    journalEntry.extend({
      destinations: z.array(z.looseObject({ address: text, state: text, proof: textOrNull, at: timeOrNull })),
      history: z.array(z.looseObject({ at: time, state: text })),
    }),
  ),
  journal_finding: row("A defect of the journal", ["journal verify"], { severity: text, where: text, message: text }),
  journal_import: document("How many entries were imported", ["journal import"], {
    object: z.literal("journal_import"),
    ...mergeCounts,
  }),
  journal_move: document("How many entries were moved to another journal", ["journal move"], {
    object: z.literal("journal_move"),
    from: text,
    to: text,
    ...mergeCounts,
  }),
  journal_path: document("The place of the journal", ["journal path"], {
    object: z.literal("journal_path"),
    path: text,
  }),
  journal_pruned: document("How many entries were removed", ["journal prune"], {
    object: z.literal("journal_pruned"),
    removed: count,
    kept_live: count,
    live: z.array(z.looseObject({ id: text, operation: text, resource_id: textOrNull, profile: text })),
  }),
  journal_record: row("A line of an export: first the header, then each record of each entry", ["journal export"], {
    sum: text,
    v: count,
  }),
  journal_release: document("An entry that was taken from a process", ["journal release"], {
    object: z.literal("journal_release"),
    entry: text,
    holder: z.looseObject({}).nullable(),
  }),
  journal_tables: document("The tables of a team's journal", ["journal init"], {
    object: z.literal("journal_tables"),
    address: text,
    version: count,
    created: z.boolean(),
    key: text.optional(),
  }),
  journal_trust: document("The entries that were signed", ["journal trust"], {
    object: z.literal("journal_trust"),
    entries: z.array(text),
  }),
  key_finding: row("A finding about an access key", ["keys audit"], keyFinding),
  keys_audit: document("All findings about access keys, and what was judged", ["keys audit"], {
    object: z.literal("list"),
    data: z.array(keyFinding),
    audit: z.looseObject({
      checked_at: time,
      where: text,
      keys: count,
      keys_judged: count,
      complete: z.boolean(),
      findings_by_severity: z.looseObject({ high: count, medium: count, low: count }),
      thresholds_seconds: z.looseObject({ max_age: z.number(), max_idle: z.number(), expires_within: z.number() }),
    }),
    unjudged: z.array(z.looseObject({ rule: text, key_id: textOrNull, key_name: textOrNull, reason: text })),
    waived: z.array(z.looseObject({})),
    waivers_ended: z.array(waiver),
    waivers_unused: z.array(waiver),
  }),
  list: row("The envelope of rows in JSON", [], {
    object: z.literal("list"),
    receipts: z.array(z.looseObject({})).optional().describe("What a change made before its list"),
    data: z.array(z.looseObject({})).describe("Rows of the schema of the command"),
    next_page_token: textOrNull,
    has_more: z.boolean(),
  }),
  membership: ofService("A person's membership", ["people membership"], {}),
  oauth_client: ofService(
    "An OAuth client",
    [...verbs("oauth-clients", "list", "get", "create", "rotate", "revoke"), ...verbs("journal", "claim", "recover")],
    {
      object: text,
      id: text,
      service_account_id: text,
      client_id: textOrNull,
      scopes: z.array(text),
      status: text,
      created_at: time,
      client_secret: textOrNull.optional().describe("null: it went to a destination"),
    },
  ),
  person: ofService("A person", ["people search"], { id: text, displayName: text, email: text, status: text }),
  plan: document("A plan, which integ apply takes", ["plan"], {
    object: z.literal("plan"),
    version: z.literal(1),
    digest: text,
    made_at: time,
    policy_file: text,
    profile: text,
    region: text,
    base_url: text,
    only: z.array(text),
    data: z.array(planRow),
    unmanaged: z.array(
      z.looseObject({
        kind: itemKind,
        id: text,
        name: textOrNull,
        service_account_id: textOrNull,
        state: text,
        created_at: timeOrNull,
        ownership: text,
      }),
    ),
    made_from: z.record(text, text),
  }),
  plan_item: row("What is to be done for an item of a policy", ["plan"], planRow),
  policy_file: document("The policy file that was written", ["policy init"], {
    object: z.literal("policy_file"),
    path: text,
    id: text,
    items: count,
  }),
  policy_finding: row("A valid setting of a policy file that is probably a mistake", ["policy check"], {
    object: text,
    id: text,
    rule: text,
    item: textOrNull,
    message: text,
  }),
  profile: row("A stored profile, without its secrets", verbs("profiles", "add", "edit", "list", "show"), profile),
  report_row: row("A row of the access review: a credential, item, change or unknown fact", ["report"], reportRows),
  sandbox: document("The addresses and credentials of the sandbox", ["sandbox start", "sandbox status"], {
    object: z.literal("sandbox"),
    us: z.looseObject({}),
    eu: z.looseObject({}),
  }),
  schema: row(
    "A schema's name with the commands that print such objects, or the schema itself",
    ["schema"],
    z.union([
      z.looseObject({ name: text, printed_by: z.array(text) }),
      z.looseObject({ $schema: text }).describe("With an object: its JSON Schema"),
    ]),
  ),
  status_row: row("A fact that needs attention, or that status always shows", ["status"], {
    topic: text,
    name: text,
    state: text,
    detail: textOrNull.optional(),
    due_at: timeOrNull,
    next_step: command.nullable(),
  }),
  step: row("A request or a local change that --dry-run shows", ["any change with --dry-run"], {
    step: count.optional(),
    what: text.optional(),
    method: textOrNull,
    url: textOrNull,
    headers: z.record(text, textOrNull).nullable(),
    body: z.unknown(),
  }),
  token: ofService("An access token", ["oauth-clients token"], {
    access_token: text,
    token_type: text,
    expires_in: z.number().optional(),
  }),
};

export function outputJsonSchema(name: string): object | undefined {
  const output = Object.hasOwn(outputs, name) ? outputs[name] : undefined;
  if (output === undefined) return undefined;
  const { $schema, ...rest } = z.toJSONSchema(output.schema, { target: "draft-2020-12" });
  return { $schema, title: `integ ${name.replaceAll("_", " ")}`, ...rest, description: `${output.what}.` };
}
