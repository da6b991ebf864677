// Compares the published contract with the supported one (§4.5, §9).
import { compareContract } from "../../api/contract.ts";
import { contractVersion } from "../../api/call/request.ts";
import { Failure } from "../../errors.ts";
import { printFindings, read } from "../running/read.ts";
import { defineVerb } from "../verb.ts";
import { documentVersion } from "../options/global.ts";

const columns = [
  { path: "severity", heading: "severity", kind: "status" },
  { path: "subject", heading: "subject", kind: "id" },
  { path: "detail", heading: "detail", kind: "sentence" },
] as const;

export const command = defineVerb({
  configure: (command) =>
    command.option("--contract-version <date>", "Snapshot to compare with (default: the current one)"),
  examples: [
    { line: "integ spec check", does: "exit 10 if the service differs from what integ supports" },
    { line: "integ spec check --json | jq '.data[] | select(.severity == \"drift\")'", does: "for a nightly job" },
  ],
  more: "Compares operations, parameters, bodies, responses, authentication, lifecycle stage and contract version. Additions (operations, optional fields) and notices (a deprecated operation) are not drift.",
  async run(context, { options }) {
    const version = documentVersion(context, options);
    const service = await context.connect();
    const { value } = await read(context, "get the published contract", () => service.contract.published(version));
    const findings = compareContract(value, { askedVersion: version });
    const supported = `The published contract is what integ supports (${contractVersion}).`;
    await printFindings(context, findings, { columns, empty: `No findings. ${supported}` });
    const drifts = findings.filter((finding) => finding.severity === "drift").length;
    if (drifts > 0)
      throw new Failure(
        "findings",
        `The published contract differs in ${drifts === 1 ? "1 place" : `${drifts} places`} from what integ supports.`,
        {
          hint: "Look for a newer integ, or pin a version that it speaks with --service-version.",
        },
      );
    if (findings.length > 0) context.output.note(supported);
  },
});
