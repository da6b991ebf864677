// JSON Schemas of the commands' output: `integ schema` prints them, and tests compare every output with them. Adding a key is
// compatible; removing one or changing its type breaks scripts.
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

const mergeCounts = { added: count, extended: count, unchanged: count };

interface Output {
  readonly schema: z.ZodType;
  /** The commands that print this object: alone, in a `list` envelope, or as NDJSON lines. */
  readonly printedBy: readonly string[];
  /** With `json`, the command prints this instead of the envelope. */
  readonly isDocument?: true;
  /** An object of the service: integ checks the fields that it needs, and prints the whole object. */
  readonly isOfService?: true;
}

const ofService = (shape: z.ZodRawShape, printedBy: readonly string[]): Output => ({
  schema: z.looseObject(shape),
  printedBy,
  isOfService: true,
});

/** Outputs by the name that `integ schema` takes. */
export const outputs: Readonly<Record<string, Output>> = {
  access_key: ofService(
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
    [
      "keys list",
      "keys get",
      "keys create",
      "keys rotate",
      "keys revoke",
      "keys audit --fix",
      "journal claim",
      "journal recover",
    ],
  ),
  applied_item: {
    schema: z.looseObject({
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
    }),
    printedBy: ["apply", "adopt", "adopt oauth-client", "adopt access-key"],
  },
  client_finding: {
    schema: finding.extend({ client_id: textOrNull, service_account_id: textOrNull }),
    printedBy: ["oauth-clients audit"],
  },
  commands: {
    schema: z.looseObject({
      object: z.literal("program"),
      commands: z.array(z.looseObject({})),
      environment: z.array(z.looseObject({})),
    }),
    printedBy: ["commands"],
    isDocument: true,
  },
  contract_finding: {
    schema: z.looseObject({ severity: text, subject: text, detail: text }),
    printedBy: ["spec check"],
  },
  check: {
    schema: z.looseObject({ check: text, status: text, message: text, next: command.nullable(), hint: textOrNull }),
    printedBy: ["doctor"],
  },
  default_profile: {
    schema: z.looseObject({ object: z.literal("default_profile"), name: text }),
    printedBy: ["profiles use"],
    isDocument: true,
  },
  entity: ofService(
    {
      id: text,
      object: text,
      type: text,
      status: text,
      display_name: text,
      email: text,
      created_at: time,
      updated_at: time,
    },
    ["entities list", "cohorts members"],
  ),
  error: {
    schema: z.looseObject({
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
    printedBy: [],
  },
  journal_entry: {
    schema: journalEntry,
    printedBy: ["journal list", "journal recover"],
  },
  journal_entry_history: {
    schema: journalEntry.extend({
      destinations: z.array(z.looseObject({ address: text, state: text, proof: textOrNull, at: timeOrNull })),
      history: z.array(z.looseObject({ at: time, state: text })),
    }),
    printedBy: ["journal show"],
    isDocument: true,
  },
  journal_finding: {
    schema: z.looseObject({ severity: text, where: text, message: text }),
    printedBy: ["journal verify"],
  },
  journal_import: {
    schema: z.looseObject({ object: z.literal("journal_import"), ...mergeCounts }),
    printedBy: ["journal import"],
    isDocument: true,
  },
  journal_move: {
    schema: z.looseObject({ object: z.literal("journal_move"), from: text, to: text, ...mergeCounts }),
    printedBy: ["journal move"],
    isDocument: true,
  },
  journal_path: {
    schema: z.looseObject({ object: z.literal("journal_path"), path: text }),
    printedBy: ["journal path"],
    isDocument: true,
  },
  journal_pruned: {
    schema: z.looseObject({
      object: z.literal("journal_pruned"),
      removed: count,
      kept_live: count,
      live: z.array(z.looseObject({ id: text, operation: text, resource_id: textOrNull, profile: text })),
    }),
    printedBy: ["journal prune"],
    isDocument: true,
  },
  journal_record: {
    schema: z.looseObject({ sum: text, v: count }).describe("A line: first the header, then each record of each entry"),
    printedBy: ["journal export"],
  },
  journal_release: {
    schema: z.looseObject({ object: z.literal("journal_release"), entry: text, holder: z.looseObject({}).nullable() }),
    printedBy: ["journal release"],
    isDocument: true,
  },
  journal_tables: {
    schema: z.looseObject({
      object: z.literal("journal_tables"),
      address: text,
      version: count,
      created: z.boolean(),
      key: text.optional(),
    }),
    printedBy: ["journal init"],
    isDocument: true,
  },
  journal_trust: {
    schema: z.looseObject({ object: z.literal("journal_trust"), entries: z.array(text) }),
    printedBy: ["journal trust"],
    isDocument: true,
  },
  key_finding: {
    schema: keyFinding,
    printedBy: ["keys audit"],
  },
  keys_audit: {
    schema: z.looseObject({
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
    printedBy: ["keys audit"],
    isDocument: true,
  },
  list: {
    schema: z.looseObject({
      object: z.literal("list"),
      receipts: z.array(z.looseObject({})).optional().describe("What a change made before its list"),
      data: z.array(z.looseObject({})).describe("Rows of the schema of the command"),
      next_page_token: textOrNull,
      has_more: z.boolean(),
    }),
    printedBy: [],
  },
  membership: ofService({}, ["people membership"]),
  oauth_client: ofService(
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
    [
      ...["list", "get", "create", "rotate", "revoke"].map((verb) => `oauth-clients ${verb}`),
      "journal claim",
      "journal recover",
    ],
  ),
  person: ofService({ id: text, displayName: text, email: text, status: text }, ["people search"]),
  plan: {
    schema: z.looseObject({
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
    printedBy: ["plan"],
    isDocument: true,
  },
  plan_item: { schema: planRow, printedBy: ["plan"] },
  policy_file: {
    schema: z.looseObject({ object: z.literal("policy_file"), path: text, id: text, items: count }),
    printedBy: ["policy init"],
    isDocument: true,
  },
  policy_finding: {
    schema: z.looseObject({ object: text, id: text, rule: text, item: textOrNull, message: text }),
    printedBy: ["policy check"],
  },
  profile: { schema: profile, printedBy: ["profiles add", "profiles edit", "profiles list", "profiles show"] },
  report_row: {
    schema: z.looseObject({
      kind: z.enum(["report", "oauth_client", "access_key", "policy_item", "change", "unknown"]),
      id: text,
      name: textOrNull.optional(),
      owner: textOrNull.optional(),
      permissions: z.array(text).optional(),
      status: text.optional(),
      created_at: timeOrNull.optional(),
      last_used_at: timeOrNull.optional(),
      expires_at: timeOrNull.optional(),
      delivered_to: z.array(text).optional(),
      proof: text.optional(),
      policy_item: text.optional(),
      note: text.optional(),
    }),
    printedBy: ["report"],
  },
  sandbox: {
    schema: z.looseObject({ object: z.literal("sandbox"), us: z.looseObject({}), eu: z.looseObject({}) }),
    printedBy: ["sandbox start", "sandbox status"],
    isDocument: true,
  },
  schema: {
    schema: z.union([
      z.looseObject({ name: text, printed_by: z.array(text) }),
      z.looseObject({ $schema: text }).describe("With an object: its JSON Schema"),
    ]),
    printedBy: ["schema"],
  },
  status_row: {
    schema: z.looseObject({
      topic: text,
      name: text,
      state: text,
      detail: textOrNull.optional(),
      due_at: timeOrNull,
      next_step: command.nullable(),
    }),
    printedBy: ["status"],
  },
  step: {
    schema: z.looseObject({
      step: count.optional(),
      what: text.optional(),
      method: textOrNull,
      url: textOrNull,
      headers: z.record(text, textOrNull).nullable(),
      body: z.unknown(),
    }),
    printedBy: ["any change with --dry-run"],
  },
  token: ofService({ access_token: text, token_type: text, expires_in: z.number().optional() }, [
    "oauth-clients token",
  ]),
};

/** @returns the JSON Schema of an output; undefined for an unknown name */
export function outputJsonSchema(name: string): object | undefined {
  const output = Object.hasOwn(outputs, name) ? outputs[name] : undefined;
  return output && z.toJSONSchema(output.schema, { target: "draft-2020-12" });
}
