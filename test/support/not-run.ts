// Prints in one line which tests a run left out, and how to run them.
import type { TestProject } from "vitest/node";
import { missingTools } from "./tools.mjs";

/** Before the first test. @returns a function to run after the last one */
export default function sayWhatIsNotRun({ vitest }: TestProject): () => void {
  const played = vitest.projects.map(({ name }) => name);
  const left = played.includes("tools")
    ? []
    : [
        "crashes, terminals, a team's journal, stores and other real tools, commands of the documents (npm run test:all)",
      ];
  const missing = missingTools();
  if (missing.length > 0) left.push(`what needs ${missing.join(", ")}, missing here`);
  return () => {
    if (left.length > 0) console.log(`\nnot run: ${left.join("; ")}`);
  };
}
