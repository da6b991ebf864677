import { defineVerb } from "../verb.ts";
import { throwSandboxFailure } from "./failure.ts";

/** Every credential, two lines each: they are too long for two columns, and one copies them whole. */
const credentialNames = [
  ["API key", "api_key"],
  ["API key, second", "second_api_key"],
  ["API key, other account", "other_account_api_key"],
  ["API key, elsewhere", "other_organization_api_key"],
  ["API key, entity:read only", "scoped_api_key"],
  ["API key, revoked", "revoked_api_key"],
  ["API key, expired", "expired_api_key"],
  ["access key's secret", "access_key_secret"],
  ["bearer token (15 minutes)", "access_token"],
] as const;

export const command = defineVerb({
  configure: (command) => command,
  examples: [
    { line: "integ sandbox status", does: "the service accounts and credentials" },
    { line: "integ sandbox status --json | jq -r .us.service_account_id", does: "one of them, for a script" },
  ],
  async run(context) {
    const { describeSandbox } = await import("../../sandbox/sandbox.ts");
    const description = await describeSandbox(context.settings.stateDir).catch(throwSandboxFailure);
    if (context.output.format !== "table") return context.output.document(description);
    const { us, eu } = description;
    const credentials = credentialNames
      .map(([label, key]) => `  ${label.padEnd(28)}us ${us[key]}\n${" ".repeat(30)}eu ${eu[key]}`)
      .join("\n");
    await context.output.text(`The sandbox of this machine: --profile sandbox (us) and --profile sandbox-eu (eu), nothing to start.

                              us                                    eu
  service account, all rights ${us.service_account_id.padEnd(38)}${eu.service_account_id}
  service account, few rights ${us.poor_service_account_id.padEnd(38)}${eu.poor_service_account_id}
  organization                ${us.organization_id.padEnd(38)}${eu.organization_id}
  service account, elsewhere  ${us.other_organization_service_account_id.padEnd(38)}${eu.other_organization_service_account_id}
  organization, elsewhere     ${us.other_organization_id.padEnd(38)}${eu.other_organization_id}
  access key                  ${us.access_key_id.padEnd(38)}${eu.access_key_id}
${credentials}
  cohorts                     ${us.cohort_ids.join(" ")}

Try:
  integ oauth-clients create --profile sandbox --service-account ${us.service_account_id} --scope entity:read
  integ cohorts members ${us.cohort_ids[0] ?? ""} --profile sandbox
`);
  },
});
