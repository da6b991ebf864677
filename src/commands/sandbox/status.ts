import { defineVerb } from "../verb.ts";
import { throwSandboxFailure } from "./failure.ts";

/** Each value has its own line, so that a person can copy it. */
const labels = [
  ["service account, every permission", "service_account_id"],
  ["service account, entity:read only", "poor_service_account_id"],
  ["organization", "organization_id"],
  ["service account, other organization", "other_organization_service_account_id"],
  ["organization, other", "other_organization_id"],
  ["audience of OAuth tokens", "audience"],
  ["access key", "access_key_id"],
  ["API key", "api_key"],
  ["API key, second", "second_api_key"],
  ["API key, other service account", "other_account_api_key"],
  ["API key, other organization", "other_organization_api_key"],
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
    const { format, fields } = context.output;
    if (format !== "table" || fields !== undefined) return context.output.document(description, { isRead: true });
    const { us, eu } = description;
    const first = "This machine's sandbox: --profile sandbox (us) and --profile sandbox-eu (eu), nothing to start.";
    await context.output.page(({ width }) => {
      const rows = labels.map(
        ([label, key]) => `  ${label}\n${valueLine("us", us[key], width)}\n${valueLine("eu", eu[key], width)}\n`,
      );
      const text = `
${rows.join("")}  cohorts
    us  ${us.cohort_ids.join("\n        ")}

Try:
  integ oauth-clients create --profile sandbox --service-account ${us.service_account_id} --scope entity:read
  integ cohorts members ${us.cohort_ids[0] ?? ""} --profile sandbox`;
      return [first, ...text.split("\n")].map((line, at) => ({ margin: 0, text: line, isWhole: at > 0 }));
    });
  },
});

function valueLine(region: string, value: string, width = Number.POSITIVE_INFINITY): string {
  const beside = `    ${region}  ${value}`;
  return beside.length <= width ? beside : `    ${region}\n${value.length + 6 <= width ? "      " : ""}${value}`;
}
