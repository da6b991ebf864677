import type { Context } from "../../context.ts";
import { Failure, isInterruption, onFailure } from "../../errors.ts";
import type { PolicyFinding } from "../../policy/findings.ts";
import type { Policy } from "../../policy/policy.ts";
import { printFindings } from "../running/read.ts";
import { defineVerb } from "../verb.ts";
import { deliveredFiles, destinationOptions } from "./destinations.ts";
import { addPolicyFile, loadPolicy } from "./policy-file.ts";

const columns = [
  { path: "rule", heading: "rule", kind: "id" },
  { path: "item", heading: "item", kind: "id" },
  { path: "message", heading: "message", kind: "sentence" },
] as const;

export const command = defineVerb({
  configure: (command) =>
    addPolicyFile(command).option("--offline", "Check the file only, not its profile and destinations"),
  examples: [
    { line: "integ policy check", does: "check ./integ.yaml and whether its destinations can take a secret" },
    {
      line: "integ policy check -f prod.yaml --offline --json",
      does: "check a file in a pull request, without a credential",
    },
  ],
  more: "Exit 2 if the file is invalid, with the line and column of each defect. Exit 10 for settings that are probably mistakes. integ runs no command of the file.",
  neverAsks: true,
  async run(context, { options }) {
    const { policy, file } = await loadPolicy(context, options.file).catch(onFailure(withoutItself));
    // `named` refuses a profile that does not exist, as `integ plan` does.
    if (!options.offline && policy.profile !== undefined) await context.profiles.named(policy.profile, "policy");
    const { findingsOf } = await import("../../policy/findings.ts");
    const findings = [...findingsOf(policy), ...(options.offline ? [] : await destinationFindings(context, policy))];
    const { length: count } = policy.items;
    const content =
      count === 0 ? "it has no items, and nothing is compared" : `${count} ${count === 1 ? "item" : "items"}`;
    const valid = `${file} is valid: ${content}.`;
    await printFindings(context, findings, { columns, empty: `No findings. ${valid}` });
    if (findings.length > 0) context.output.note(valid);
    if (findings.length > 0)
      throw new Failure(
        "findings",
        `${findings.length === 1 ? "1 finding" : `${findings.length} findings`} in ${file}.`,
      );
  },
});

/** The next step for an invalid file is this command, which would repeat the failure. */
function withoutItself({ kind, message, details: { nextCommand, ...details } }: Failure): never {
  const isItself = typeof nextCommand === "string" && nextCommand.startsWith("integ policy check");
  throw new Failure(kind, message, isItself ? details : { ...details, nextCommand });
}

async function destinationFindings(context: Context, { items }: Policy): Promise<PolicyFinding[]> {
  const { policyFinding } = await import("../../policy/findings.ts");
  const written = await deliveredFiles(context);
  const findings: PolicyFinding[] = [];
  for (const { name, kind, destinations } of items) {
    if (destinations.length === 0) continue;
    try {
      const place = await context.secrets.destination(
        {
          ...destinationOptions(destinations),
          mayBeOwn: destinations.every((one) => !("file" in one) || written.has(one.file)),
          yields: kind,
        },
        async () => {},
      );
      await place.check();
    } catch (error) {
      if (!(error instanceof Failure) || isInterruption(error)) throw error;
      findings.push(policyFinding("destination", name, error.message));
    }
  }
  return findings;
}
