import { defineVerb } from "../verb.ts";
import { throwSandboxFailure } from "./failure.ts";

export const command = defineVerb({
  configure: (command) => command,
  examples: [
    { line: "integ sandbox status", does: "which service accounts and credentials there are" },
    { line: "integ sandbox status --json | jq -r .us.service_account_id", does: "one of them, for a script" },
  ],
  async run(context) {
    const { describeSandbox } = await import("../../sandbox/sandbox.ts");
    const description = await describeSandbox(context.settings.stateDir).catch(throwSandboxFailure);
    if (context.output.format !== "table") return context.output.document(description);
    const { us, eu } = description;
    await context.output.text(`The sandbox of this machine: --profile sandbox (us) and --profile sandbox-eu (eu), nothing to start.

                              us                                    eu
  service account, all rights ${us.service_account_id.padEnd(38)}${eu.service_account_id}
  service account, few rights ${us.poor_service_account_id.padEnd(38)}${eu.poor_service_account_id}
  organization                ${us.organization_id.padEnd(38)}${eu.organization_id}
  access key                  ${us.access_key_id.padEnd(38)}${eu.access_key_id}
  cohorts                     ${us.cohort_ids.join(" ")}

Try:
  integ oauth-clients create --profile sandbox --service-account ${us.service_account_id} --scope entity:read
  integ cohorts members ${us.cohort_ids[0] ?? ""} --profile sandbox
`);
  },
});
