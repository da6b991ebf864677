import { readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { mutantsOf } from "./mutants.mjs";
import { readPlan } from "./plan.mjs";

const root = join(import.meta.dirname, "../..");
const { files } = readPlan();
delete process.env.NODE_EXTRA_CA_CERTS;

export default defineConfig({
  root,
  plugins: [
    {
      name: "mutants",
      enforce: "pre",
      load(id) {
        const file = files.find(({ path }) => id === join(root, path));
        return file && mutantsOf(file.path, readFileSync(id, "utf8"), file.first).text;
      },
    },
  ],
  test: {
    include: ["test/mutation/all-tests.ts"],
    globalSetup: ["test/support/postgres-template.ts"],
    runner: "test/mutation/runner.ts",
    setupFiles: ["test/mutation/question.ts", "test/support/record-here.ts", "test/support/fixed-seed.ts"],
    pool: "forks",
    isolate: false,
    maxWorkers: 1,
    testTimeout: 10_000_000,
    hookTimeout: 60_000,
    reporters: ["default"],
    dangerouslyIgnoreUnhandledErrors: true,
  },
});
