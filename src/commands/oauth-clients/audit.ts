import { clientRevocationIntent, revokeOAuthClient } from "../../changes/revocation.ts";
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import { parseLifetime } from "../options/global.ts";
import { observe } from "../policy/observe.ts";
import { actingAs, mentionUnsettled, workbenchOf } from "../running/change.ts";
import { printFindings } from "../running/read.ts";
import { changeEach } from "../running/several.ts";
import { defineVerb } from "../verb.ts";
import type { ClientFinding } from "./audit-rules.ts";
import { oauthClientView } from "./clients.ts";

const columns = [
  { path: "severity", heading: "severity", kind: "status" },
  { path: "rule", heading: "rule" },
  { path: "client_id", heading: "client" },
  { path: "service_account_id", heading: "service account" },
  { path: "message", heading: "what was seen" },
  { path: "remedy", heading: "what to do", kind: "command" },
] as const;

export const command = defineVerb({
  fields: columns.map(({ path }) => path),
  configure: (command) =>
    command
      .option("--max-age <duration>", "Age from which a client is too old", "90d")
      .option("--fix", "Make a plan of the safe remedies, ask, and do it: revoke what is disabled or expired")
      .option("--dry-run", "With --fix: show what would be sent, and change nothing"),
  examples: [
    { line: "integ oauth-clients audit", does: "old and unusable clients, slots, clients in no policy" },
    { line: "integ oauth-clients audit --json | jq -r '.data[].remedy'", does: "one remedy for each client" },
    { line: "integ oauth-clients audit --fix", does: "revoke disabled and expired clients, after a question" },
  ],
  more: "The API has no list of clients: those that the journal knows are judged. Exit 10 if anything is found.",
  async run(context, { options }) {
    const maxAgeMs = parseLifetime(options.maxAge, "--max-age");
    const bench = await workbenchOf(context);
    const { observed } = await observe(context, { policy: noItems, account: bench.account });
    const { auditClients } = await import("./audit-rules.ts");
    const declared = new Set(
      [...observed.works.values()].flatMap(({ candidates, waiting }) => [...candidates, waiting?.old ?? ""]),
    );
    const clients = [...observed.clients.values()];
    const findings = auditClients(clients, { maxAgeMs, nowMs: observed.nowMs, declared });
    if (options.fix) return fix(context, findings, options.dryRun === true);
    await printFindings(context, findings, { columns, empty: "No findings." });
    const judged = `${clients.length} ${clients.length === 1 ? "client" : "clients"} judged; clients made elsewhere are not known here.`;
    context.output.note(judged);
    if (findings.length > 0) throw remaining(findings);
  },
});

const noItems = { items: [], maxFailures: 1, changesPerRun: 1, keepFreeSlots: 0, unmanaged: "ignore" } as const;

function remaining({ length }: readonly ClientFinding[]): Failure {
  return new Failure("findings", `The audit found something: ${length === 1 ? "1 finding" : `${length} findings`}.`);
}

/** Revokes what works for no one. @throws Failure `findings` for what needs a person */
async function fix(context: Context, findings: readonly ClientFinding[], isTrial: boolean): Promise<void> {
  const { output } = context;
  const safe = findings.filter(({ rule, remedy }) => rule === "unusable" && remedy.startsWith("integ "));
  const ids = safe.flatMap(({ client_id }) => client_id ?? []);
  const left = findings.filter((finding) => !safe.includes(finding));
  for (const { client_id, service_account_id, message, remedy } of findings)
    output.note(
      `${client_id ?? service_account_id}: ${message}. ${remedy.startsWith("integ ") ? `Next: ${remedy}` : remedy}`,
    );
  const bench = await workbenchOf(context);
  if (isTrial) {
    const { requestStep, showSteps } = await import("../running/dry-run.ts");
    const stepOf = (id: string) => requestStep(`revoke ${id}`, clientRevocationIntent(bench, id), { body: "" });
    return showSteps(context, ids.map(stepOf));
  }
  if (ids.length > 0) {
    const question = `${actingAs(bench)}: revoke ${ids.join(", ")}? They do not work and use slots.`;
    if (!(await output.confirm(question, { destructive: true })))
      throw new Failure("usage", "Nothing was revoked: the answer was no.");
    await mentionUnsettled(context);
    await changeEach(context, { ids, view: oauthClientView, change: (id) => revokeOAuthClient(bench, id) });
  }
  if (left.length > 0) throw remaining(left);
}
