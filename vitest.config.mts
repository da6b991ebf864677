import { defineConfig } from "vitest/config";

const shared = {
  setupFiles: "test/support/record-here.ts",
  testTimeout: 60_000,
  hookTimeout: 60_000,
  pool: "forks" as const,
};

export default defineConfig({
  test: {
    // One more than the cores that it is made for: some tests wait most of their time.
    maxWorkers: 3,
    reporters: ["default"],
    globalSetup: "test/support/clean-tree.ts",
    projects: [
      {
        test: {
          ...shared,
          name: "unit",
          include: ["test/unit/**/*.test.ts", "test/*.test.ts"],
          globalSetup: ["test/support/recorded-answers.ts"],
          // No test replaces a module: the files of one process share what they load.
          isolate: false,
        },
      },
      {
        test: {
          ...shared,
          name: "program",
          include: ["test/{contract,crash,e2e,model,terminal}/**/*.test.ts"],
          globalSetup: ["test/support/build.ts", "test/support/recorded-answers.ts"],
        },
      },
    ],
  },
});
