// Prints one line about the tests that a run omits, and how to run them.
import type { TestProject } from "vitest/node";
import { missingTools } from "./tools.mjs";

export default function reportOmittedTests({ vitest }: TestProject): () => void {
  const projects = vitest.projects.map(({ name }) => name);
  const omitted = projects.includes("tools")
    ? []
    : [
        "crashes, terminals, a team's journal, stores and other real tools, commands of the documents (npm run test:all)",
      ];
  const missing = missingTools();
  if (missing.length > 0) omitted.push(`what needs ${missing.join(", ")}, missing here`);
  return () => {
    if (omitted.length > 0) console.log(`\nnot run: ${omitted.join("; ")}`);
  };
}
