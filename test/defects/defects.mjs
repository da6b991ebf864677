// Small defects of commands, edge, destinations and policies: a file of src/, its text, the text with the defect, and
// the tests that fail with it. `node test/defects/run.mjs` proves that they fail, and that histories of model/one-seed
// find the defects of model/defects.mjs. Run it with a new suite before you remove an old one.
export const defects = [
  {
    name: "clients are revoked without a question",
    changes: [
      [
        "commands/oauth-clients/revoke.ts",
        "const agreed = await context.output.confirm(",
        "const agreed = ((..._words: unknown[]) => true)(",
      ],
    ],
    tests: ["test/e2e/oauth-clients.test.ts"],
  },
  {
    name: "keys are revoked without a question",
    changes: [
      [
        "commands/keys/revoke.ts",
        "const agreed = await context.output.confirm(",
        "const agreed = ((..._words: unknown[]) => true)(",
      ],
    ],
    tests: ["test/e2e/keys.test.ts"],
  },
  {
    name: "an entry is forgotten although the answer was no",
    changes: [
      [
        "commands/journal/forget.ts",
        "if (!(await context.output.confirm(question, { destructive: true })))\n        throw",
        "if (question === '')\n        throw",
      ],
    ],
    tests: ["test/e2e/journal.test.ts"],
  },
  {
    name: "a policy is applied without a question",
    changes: [
      [
        "commands/policy/applied.ts",
        "if (!(await output.confirm(`${as}: ${verb} ${what} of ${file}?`, { destructive: true })))",
        "if (`${as}: ${verb} ${what} of ${file}?` === '')",
      ],
    ],
    tests: ["test/e2e/policy-apply.test.ts", "test/e2e/policy.test.ts"],
  },
  {
    name: "a profile is removed without a question",
    changes: [
      [
        "commands/profiles/remove.ts",
        "if (!(await context.output.confirm(question, { destructive: true })))",
        "if (question === '')",
      ],
    ],
    tests: ["test/e2e/profiles.test.ts"],
  },
  {
    name: "the caller's own key is revoked before the others",
    changes: [
      ["commands/keys/revoke.ts", "Number(a === own) - Number(b === own)", "Number(b === own) - Number(a === own)"],
    ],
    tests: ["test/e2e/keys.test.ts"],
  },
  {
    name: "rotate ignores --keep-old",
    changes: [
      [
        "commands/oauth-clients/rotate.ts",
        "const keepOld = options.keepOld === true;",
        "const keepOld = false as boolean;",
      ],
    ],
    tests: ["test/e2e/rotation.test.ts"],
  },
  {
    name: "rotate ignores --dry-run",
    changes: [
      ["commands/oauth-clients/rotate.ts", "if (options.dryRun) {", "if (options.dryRun && options.keepOld) {"],
    ],
    tests: ["test/e2e/dry-run.test.ts"],
  },
  {
    name: "journal list ignores --since",
    changes: [
      [
        "commands/journal/list.ts",
        "since: since === undefined ? undefined : sinceOf(since, clock.now()),",
        "since: since === undefined || sinceOf(since, clock.now()) === '' ? undefined : undefined,",
      ],
    ],
    tests: ["test/e2e/journal.test.ts"],
  },
  {
    name: "token ignores --scope",
    changes: [["commands/oauth-clients/token.ts", "scopes: options.scope }", "scopes: undefined }"]],
    tests: ["test/e2e/oauth-profile.test.ts", "test/e2e/oauth-clients.test.ts"],
  },
  {
    name: "a lockout message names the old key's id",
    changes: [
      [
        "commands/keys/own-key.ts",
        "--api-key-stdin --api-key-id ${newId}`",
        "--api-key-stdin --api-key-id ${newId === id ? newId : id}`",
      ],
    ],
    tests: ["test/e2e/keys-rotation.test.ts"],
  },
  {
    name: "a replaced key's new id is shown as the old one's",
    changes: [
      [
        "commands/keys/replacement.ts",
        "return dueAt === undefined ? newId : undefined;",
        "return dueAt === undefined ? oldId : undefined;",
      ],
    ],
    tests: ["test/e2e/keys-rotation.test.ts"],
  },
  {
    name: "every error exits with 1",
    changes: [["edge/run.ts", "known?.exitCode ?? exitCodes.failed;", "(known === undefined ? exitCodes.failed : 1);"]],
    tests: ["test/e2e/errors.test.ts", "test/e2e/oauth-clients.test.ts"],
  },
  {
    name: "a noun without a verb exits with 0",
    changes: [["edge/run.ts", "return help.toStderr ? exitCodes.usage : 0;", "return 0;"]],
    tests: ["test/e2e/help.test.ts"],
  },
  {
    name: "a reader that stops early is a failure",
    changes: [
      ["edge/run.ts", "if (error instanceof BrokenPipe) return 0;", "if (error instanceof BrokenPipe) return 1;"],
    ],
    tests: ["test/e2e/lists.test.ts"],
  },
  {
    name: "an error prints the value of an unknown flag",
    changes: [["edge/run.ts", ".replace(/(unknown option '--?[^=']+)=.*'/, \"$1'\")", ""]],
    tests: ["test/unit/edge/run.test.ts"],
  },
  {
    name: "a failed destination of several counts as delivered",
    changes: [["secrets/several.ts", 'part.state = "failed";', 'part.state = "delivered";']],
    tests: ["test/unit/secrets/several.test.ts"],
  },
  {
    name: "a destination with the secret gets it again",
    changes: [
      ["secrets/several.ts", 'if (place.state !== "delivered") continue;', 'if (place.state !== "pending") continue;'],
    ],
    tests: ["test/unit/secrets/several.test.ts"],
  },
  {
    name: "no mask is printed on GitHub Actions",
    changes: [
      [
        "secrets/stdout.ts",
        'if (env.GITHUB_ACTIONS === "true") onStderr(',
        'if (env.GITHUB_ACTIONS === "yes") onStderr(',
      ],
    ],
    tests: ["test/unit/secrets/stdout.test.ts"],
  },
  {
    name: "an agent gets the secret on standard output",
    changes: [["secrets/stdout.ts", "if (variable === undefined) return;", "if (variable !== '') return;"]],
    tests: ["test/e2e/agent-mode.test.ts"],
  },
  {
    name: "one destination takes two secrets",
    changes: [
      [
        "secrets/several.ts",
        "if (twice === undefined) return;",
        "if (twice === undefined || parts.length > 0) return;",
      ],
    ],
    tests: ["test/unit/secrets/several.test.ts"],
  },
  {
    name: "a rotation is due before its time",
    changes: [["policy/decide.ts", "const ms = created + everyMs;", "const ms = created - everyMs;"]],
    tests: ["test/unit/policy/plan.test.ts"],
  },
  {
    name: "the key that the profile uses is replaced without --include-own",
    changes: [["policy/decide.ts", '(ownership === "own" && options.includeOwn)', '(ownership === "own")']],
    tests: ["test/unit/policy/plan.test.ts"],
  },
  {
    name: "a plan ignores keep_free_slots",
    changes: [["policy/slots.ts", "const limit = maxClients - keepFree;", "const limit = maxClients - 0 * keepFree;"]],
    tests: ["test/unit/policy/plan.test.ts"],
  },
  {
    name: "an older secret counts as the current one at a destination",
    changes: [
      [
        "policy/holders.ts",
        "entries.filter(mayHold).sort((a, b) => (a.id < b.id ? 1 : -1))",
        "entries.filter(mayHold).sort((a, b) => (a.id < b.id ? -1 : 1))",
      ],
    ],
    tests: ["test/unit/policy/holders.test.ts"],
  },
];
