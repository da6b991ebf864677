import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const shared = {
  setupFiles: "test/support/record-here.ts",
  testTimeout: 60_000,
  hookTimeout: 60_000,
  pool: "forks" as const,
  // No test replaces a module: the files of one process share what they load. A full run keeps them apart.
  isolate: process.env.INTEG_TEST_FULL === "1",
};

// Reading a large file of authorities takes a process that a test starts longer than anything else it does.
delete process.env.NODE_EXTRA_CA_CERTS;

/** The files that take longest, so that no core waits for the last of them. */
const long = /[\\/]test[\\/](?:crash|terminal)[\\/]|[\\/](?:canary|rotation|keys-rotation|concurrency)\.test\.ts$/;

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification): boolean => long.test(moduleId);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

/** What is about changes of the account, whatever engine the journal has. */
const onEveryEngine = [
  "oauth-clients",
  "rotation",
  "keys",
  "keys-rotation",
  "keys-replacement",
  "recover-command",
  "kept-copy",
  "policy-apply",
];

export default defineConfig({
  test: {
    // All recorded answers are checked after the last test.
    teardownTimeout: 120_000,
    // One more than the cores that it is made for: some tests wait most of their time.
    maxWorkers: 3,
    reporters: ["default"],
    sequence: { sequencer: LongFirst },
    globalSetup: ["test/support/clean-tree.ts", "test/support/full-figures.ts"],
    projects: [
      {
        test: {
          ...shared,
          name: "unit",
          setupFiles: [shared.setupFiles, "test/support/fixed-seed.ts"],
          include: ["test/unit/**/*.test.ts", "test/*.test.ts"],
          globalSetup: ["test/support/recorded-answers.ts"],
        },
      },
      {
        test: {
          ...shared,
          name: "program",
          include: ["test/{contract,crash,e2e,model,terminal}/**/*.test.ts"],
          globalSetup: ["test/support/build.ts", "test/support/recorded-answers.ts", "test/support/recorded-steps.ts"],
        },
      },
      {
        test: {
          ...shared,
          name: "team",
          include: onEveryEngine.map((name) => `test/e2e/${name}.test.ts`),
          setupFiles: [shared.setupFiles, "test/support/on-postgres.ts"],
          globalSetup: ["test/support/build.ts", "test/support/recorded-answers.ts", "test/support/postgres-engine.ts"],
        },
      },
    ],
  },
});
