import { createHash } from "node:crypto";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const shared = {
  setupFiles: ["test/support/record-here.ts", "test/support/fixed-seed.ts"],
  testTimeout: 60_000,
  hookTimeout: 60_000,
  pool: "forks" as const,
  // No test replaces a module, so the files of a process share loaded modules. A full run isolates them.
  isolate: process.env.INTEG_TEST_FULL === "1",
};

// A large file of certificate authorities slows down every process that a test starts.
delete process.env.NODE_EXTRA_CA_CERTS;

/** The slowest test files, as measured. Files that mostly wait alternate with files that compute, so that all cores are busy. */
const longest = [
  "cut-connections",
  "policy-killed",
  "errno",
  "recipes",
  "canary",
  "examples",
  "guides",
  "concurrency",
  "team",
  "kubernetes-store",
  "completion",
  "keys-ci-doc",
  "team-kill",
  "lists-hostile",
  "recover-words",
  "out-resume",
  "kill-twice",
  "network-proxy",
  "kill-stores",
  "package-bytes",
  "kill-keys",
  "interruption",
  "keys-lost-answers",
  "rotation",
  "cut-stores",
  "ending",
  "kill-creation",
  "hostile-text",
  "journal-faults",
  "postgres-journal",
  "policy-apply",
  "errors",
  "output",
  "shell-command",
].map((name) => `/${name}.test.ts`);

/** A seed such as `7` for a random order of a project's files, which reveals tests that depend on another file. */
const order = process.env.INTEG_TEST_ORDER;

/** Slow files first. A project's files follow each other: they share a process, which a file of another project would end. */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    if (order !== undefined) {
      const randomKey = ({ moduleId, project }: TestSpecification): string =>
        project.name + createHash("sha256").update(`${order} ${moduleId}`).digest("hex");
      return sorted.toSorted((one, other) => (randomKey(one) < randomKey(other) ? -1 : 1));
    }
    const rank = ({ moduleId, project }: TestSpecification): number => {
      if (project.name === "team") return 1000;
      const place = longest.findIndex((name) => moduleId.endsWith(name));
      const first = project.name === "unit" ? 2000 : 0;
      if (place >= 0) return first + place;
      return first + longest.length + (/[\\/](?:crash|terminal|model)[\\/]/.test(moduleId) ? 0 : 1);
    };
    return sorted.toSorted((one, other) => rank(one) - rank(other));
  }
}

/** Tests of changes of the account that also run with a journal in PostgreSQL. */
const onEveryEngine = ["rotation", "keys-replacement", "recover-command"];

/** Unit tests that start processes, listen on a socket or wait for a terminal: too slow for `npm run test:unit`. */
const withProcesses = [
  "api/{http/{redaction,responses,transport,transport-breaks,transport-tls},call/{caller,salvage}}",
  "completion/scripts",
  "disk/{lock-races,process-lock}",
  "output/output",
  "journal/{file/{archive,failing-disk,lock-waits},postgres/tls}",
  "profiles/{credentials,shell-command,store}",
  "sandbox/{control,fuzz,neighbors,server,store}",
  "secrets/{command,failing-disk,github-answers,kubernetes-answers,refusals,registry,secret-format,stdout,vault-answers,vault-fields,vault-store}",
].map((names) => `test/unit/${names}.test.ts`);

/** Tests that need a tool of test/support/tools.json or a pseudo-terminal, and the slowest tests. */
const withTools = [
  "test/{crash,integration,terminal}/**/*.test.ts",
  "test/unit/secrets/{kubernetes-store,github-store}.test.ts",
  ...[
    "{team,team-*}",
    "{hosted-ci,policy,secret-stores}-doc",
    "{stores,stores-*,canary-stores,keychain,recipes}",
    "{bench,executable,lists-ahead,network-proxy,package-bytes,recover-words}",
  ].map((names) => `test/e2e/${names}.test.ts`),
];

/** Tests of documented commands, of memory and streams, and tests of the built program that repeat a test in memory. */
const fuller = [
  "test/contract/{answers,redocly}.test.ts",
  "test/unit/{sandbox/fuzz,secrets/vault-fields}.test.ts",
  ...[
    "{document-commands,documents,examples,guides,keys-ci-doc,tour}",
    "{canary,concurrency,ending,hostile-input,lists-hostile,long-journal,lost-output,package,report,sandbox-start,sbom,start}",
    "{bad-destinations,cut-secrets,kept-copy,keys-shapes,missing-account,too-early,recover-command,recover-credential}",
    "policy-{adopt,destinations,edits,identity,own}",
  ].map((names) => `test/e2e/${names}.test.ts`),
];

/** Test files that `npm test` leaves to `npm run test:all`. */
const leftToAll = [...withTools, ...fuller];

const programSetup = ["test/support/build.ts", "test/support/recorded-answers.ts", "test/support/recorded-steps.ts"];

export default defineConfig({
  test: {
    // All recorded answers are checked after the last test.
    teardownTimeout: 120_000,
    // Three workers for each of two cores: tests of crashes, terminals and stores mostly wait.
    maxWorkers: 6,
    reporters: ["default"],
    sequence: { sequencer: LongFirst },
    globalSetup: ["test/support/clean-tree.ts", "test/support/postgres-template.ts", "test/support/not-run.ts"],
    projects: [
      {
        test: {
          ...shared,
          name: "unit",
          include: ["test/unit/**/*.test.ts", "test/*.test.ts"],
          exclude: [...withProcesses, ...leftToAll],
          globalSetup: ["test/support/recorded-answers.ts"],
        },
      },
      {
        test: {
          ...shared,
          name: "program",
          include: ["test/{contract,e2e,model}/**/*.test.ts", ...withProcesses],
          exclude: leftToAll,
          globalSetup: programSetup,
        },
      },
      {
        test: { ...shared, name: "tools", include: leftToAll, globalSetup: programSetup },
      },
      {
        test: {
          ...shared,
          name: "team",
          include: onEveryEngine.map((name) => `test/e2e/${name}.test.ts`),
          setupFiles: [...shared.setupFiles, "test/support/on-postgres.ts"],
          globalSetup: [
            "test/support/build.ts",
            "test/support/recorded-answers.ts",
            "test/support/postgres-template.ts",
            "test/support/postgres-engine.ts",
          ],
        },
      },
    ],
  },
});
