import { Failure } from "../../errors.ts";
import { printFindings } from "../running/read.ts";
import { defineVerb } from "../verb.ts";

export const command = defineVerb({
  configure: (command) => command,
  examples: [{ line: "integ journal verify", does: "exit 10 if a record is damaged, with its line" }],
  async run(context) {
    const journal = await context.journal();
    const findings = await journal.verify();
    const columns = [
      { path: "severity", heading: "severity", kind: "status" },
      { path: "where", heading: "where", kind: "id" },
      { path: "message", heading: "message", kind: "sentence" },
    ] as const;
    await printFindings(context, findings, { columns, empty: "No findings. The journal is sound." });
    const problems = findings.filter((finding) => finding.severity === "problem").length;
    if (problems === 0) return;
    if (journal.isShared)
      throw new Failure("findings", `The journal has ${problems === 1 ? "1 problem" : `${problems} problems`}.`);
    throw new Failure("findings", `The journal is damaged in ${problems === 1 ? "1 place" : `${problems} places`}.`, {
      meaning: "Sound entries are kept; damaged bytes are set aside in a file next to the journal, never deleted.",
    });
  },
});
