import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { Failure } from "../../errors.ts";
import { stepAs } from "../../next-step.ts";
import { itemOf } from "../../policy/works.ts";
import { parseLifetime } from "../options/global.ts";
import { noItems, observe } from "../policy/observe.ts";
import { standardFile } from "../policy/policy-file.ts";
import { workbenchOf } from "../running/change.ts";
import { printFindings, whereOf } from "../running/read.ts";
import { defineVerb } from "../verb.ts";
import type { ClientFinding } from "./audit-rules.ts";

const columns = [
  { path: "severity", heading: "severity", kind: "status" },
  { path: "rule", heading: "rule", kind: "id" },
  { path: "client_id", heading: "client" },
  { path: "service_account_id", heading: "service account" },
  { path: "message", heading: "finding", kind: "sentence" },
  { path: "remedy", heading: "next step", kind: "command" },
] as const;

export const command = defineVerb({
  isPaged: true,
  formats: ["sarif"],
  fields: columns.map(({ path }) => path),
  configure: (command) =>
    command
      .option("--max-age <duration>", "Report clients older than this as too old", "90d")
      .option("--fix", "Revoke disabled and expired clients and rotate old ones, after you confirm")
      .option("--dry-run", "With --fix: show what would be sent, and change nothing"),
  examples: [
    {
      line: "integ oauth-clients audit",
      does: "old and unusable clients, and slots; if this folder has integ.yaml, also clients in no item",
    },
    { line: "integ oauth-clients audit --json | jq -r '.data[].remedy'", does: "the remedy of each finding" },
    { line: "integ oauth-clients audit --fix", does: "revoke unusable clients and rotate old ones" },
  ],
  more: "The API has no list of clients, so integ checks those in the journal. Exit 10 if there is a finding. --fix rotates an old client, with an overlap of 24h, if its secret went to a file, profile or store, and leaves clients of policy items to integ apply.",
  async run(context, { options }) {
    const maxAgeMs = parseLifetime(options.maxAge, "--max-age");
    const bench = await workbenchOf(context);
    const { observed } = await observe(context, { policy: noItems, account: bench.account });
    const { auditClients } = await import("./audit-rules.ts");
    const works = [...observed.works.values()];
    const declared = existsSync(resolve(context.settings.cwd, standardFile))
      ? new Set([
          ...works.flatMap(({ candidates, waiting }) => [...candidates, waiting?.old ?? ""]),
          ...(observed.unsettled ?? []),
        ])
      : undefined;
    const items = new Map(
      [...observed.works].flatMap(([key, { candidates }]) =>
        candidates.map((id): [string, string] => [id, itemOf(key).name]),
      ),
    );
    const clients = [...observed.clients.values()];
    const names = new Set([...observed.works.keys()].map((key) => itemOf(key).name));
    const findings = auditClients(clients, { maxAgeMs, nowMs: observed.nowMs, declared, items, names });
    const view = { columns, empty: "No findings." };
    const { profile } = context.settings;
    const rows = findings.map((row) => ({ ...row, remedy: stepAs(profile, row.remedy) }));
    if (options.fix) {
      if (context.output.format === "table") await printFindings(context, rows, view);
      const { fixClients } = await import("./audit-fix.ts");
      const left = await fixClients(context, findings, { isTrial: options.dryRun === true });
      if (left.length > 0) throw findingsFailure(left, await whereOf(context));
      return;
    }
    await printFindings(context, rows, view);
    const note = `Audited ${clients.length} ${clients.length === 1 ? "client" : "clients"} of this journal; the API cannot list others.`;
    context.output.note(note);
    if (findings.length > 0) throw findingsFailure(findings, await whereOf(context));
  },
});

function findingsFailure({ length }: readonly ClientFinding[], where: string): Failure {
  const words = `The audit has ${length === 1 ? "1 finding" : `${length} findings`}.`;
  return new Failure("findings", words, { where });
}
