import type { SandboxDescription } from "../../sandbox/description.ts";
import { invalidValue } from "../../errors.ts";
import { defineVerb } from "../verb.ts";
import { throwSandboxFailure } from "./failure.ts";

export const command = defineVerb({
  configure: (command) =>
    command
      .option("--port-us <n>", "Port of the us host (default: a free one)")
      .option("--port-eu <n>", "Port of the eu host (default: a free one)")
      .option("--entities <n>", "Number of entities of the organization, 0 to 100000000")
      .option("--seed <n>", "Seed of the generated data")
      .option("--fault <spec...>", "A fault, such as 'POST /v1/oauth_clients drop=after times=1'; repeatable")
      .option("--log", "Log a line for each request on stderr"),
  examples: [
    { line: "integ sandbox start", does: "both regional hosts, until Ctrl-C; prints what to export" },
    {
      line: "integ sandbox start --fault 'POST /v1/oauth_clients drop=after times=1'",
      does: "simulate a failure",
    },
    { line: "integ sandbox start -o json", does: "addresses and credentials, for scripts" },
  ],
  more: "docs/sandbox.md lists every fault, docs/design/sandbox.md every choice that the API document leaves open.",
  async run(context, { options }) {
    const { startSandbox } = await import("../../sandbox/sandbox.ts");
    const running = await startSandbox({
      stateDir: context.settings.stateDir,
      portUs: wholeNumber("--port-us", options.portUs, 65_535),
      portEu: wholeNumber("--port-eu", options.portEu, 65_535),
      entities: wholeNumber("--entities", options.entities, 100_000_000),
      seed: wholeNumber("--seed", options.seed, 2 ** 32 - 1),
      faults: options.fault ?? [],
      log: options.log ? (line) => context.output.log(line) : undefined,
    }).catch(throwSandboxFailure);
    try {
      const description = running.describe();
      if (context.output.format === "table") await context.output.text(usageText(description));
      else await context.output.document(description);
      await untilInterrupted(context.clock.interruption);
    } finally {
      await running.close();
    }
  },
});

function wholeNumber(flag: string, text: string | undefined, most: number): number | undefined {
  if (text === undefined) return undefined;
  const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value <= most))
    throw invalidValue(flag, text, {
      why: `it is not a whole number from 0 to ${most}`,
      hint: `Write it like ${flag} 0.`,
    });
  return value;
}

function untilInterrupted(interruption: AbortSignal): Promise<void> {
  if (interruption.aborted) return Promise.resolve();
  return new Promise((resolve) => interruption.addEventListener("abort", () => resolve(), { once: true }));
}

function usageText({ us, eu }: SandboxDescription): string {
  return `The sandbox listens: us ${us.base_url}, eu ${eu.base_url}. Ctrl-C stops it.

Use it from another terminal:
  export INTEG_REGION=us INTEG_BASE_URL=${us.base_url} INTEG_ORGANIZATION_ID=${us.organization_id}
  export INTEG_API_KEY=${us.api_key}
  export INTEG_ACCESS_TOKEN=${us.access_token}      # legacy contract, for 15 minutes: keys, people
or as profiles:
${profileLines("us", us)}${profileLines("eu", eu)}and then:
  integ entities list
  integ oauth-clients create --service-account ${us.service_account_id} --scope entity:read
  integ keys list
Faults and requests: curl -X POST -d '{"fault":"POST /v1/oauth_clients drop=after times=1"}' ${us.control_url}
  for eu: ${eu.control_url}
`;
}

function profileLines(region: "us" | "eu", host: SandboxDescription["us"]): string {
  const name = region === "us" ? "local" : "local-eu";
  return `  echo ${host.access_key_secret} | integ profiles add ${name} --region ${region} --base-url ${host.base_url} \\
    --organization-id ${host.organization_id} --access-token-endpoint ${host.access_token_endpoint} \\
    --token-endpoint ${host.token_endpoint} --api-key-stdin --api-key-id ${host.access_key_id}
`;
}
