import { read } from "../running/read.ts";
import { defineVerb } from "../verb.ts";
import { documentVersion } from "../options/global.ts";

export const command = defineVerb({
  isPaged: true,
  configure: (command) =>
    command.option("--contract-version <date>", "Contract version of the snapshot (default: the current one)"),
  examples: [
    { line: "integ spec show --json | jq '.paths | keys'", does: "the published operations" },
    { line: "integ spec show --contract-version 2026-07-01 > openapi.json", does: "the snapshot of one version" },
  ],
  async run(context, { options }) {
    const version = documentVersion(context, options);
    const service = await context.connect();
    const answer = await read(context, "get the published contract", () => service.contract.published(version));
    // integ prints the published document unchanged, except as YAML.
    if (context.output.format === "yaml") await context.output.document(answer.value, { isRead: true });
    else await context.output.text(answer.body.toString());
  },
});
