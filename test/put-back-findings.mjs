// Breaks what was fixed for a defect of findings.md in a copy of the sources, one at a time, and shows that its test fails:
// `npm run test:findings`, or `npm run test:findings -- <number>`.
import { spawnSync } from "node:child_process";
import { sourceCopy } from "./support/source-copy.mjs";

const [, , wanted] = process.argv;

/** Number of the defect, a test of it, and what has to be broken: the file below `src/`, what it says, what it said before. */
/** @type {[number: string, test: string, ...changes: [file: string, now: string, before: string][]][]} */
const fixes = [
  ["4", "journal/prunable", ["journal/prunable.ts", "choice.includeLive ? aged", "true ? aged"]],
  ["5", "changes/oauth-client/create", ["changes/oauth-client/create.ts", "isTooEarly(met)", "false"]],
  [
    "7",
    "secrets/secret-format",
    ["secrets/secret-format.ts", "return secret.secret;", "return `${secret.secret}\\n`;"],
  ],
  ["8", "commands/own-key", ["commands/keys/own-key.ts", 'ids.size === 1 ? "own" : "maybe"', '"other"']],
  [
    "10",
    "api/contract",
    [
      "api/contract.ts",
      "return compareAnswer(root, { name, response: responses[expected.success], shape: expected.answer });",
      "return [];",
    ],
  ],
  ["15", "commands/durations", ["commands/options/global.ts", "&& Number(text) !== 0)", "&& false)"]],
  ["20", "api/http/retry", ["api/http/retry.ts", "attempt.problem?.retryable", "undefined"]],
  ["21", "api/auth/authorization", ["api/auth/authorization.ts", "source?.drop() ?? false", "false"]],
  ["23", "profiles/address", ["profiles/address.ts", "named[0] === region ||", "named[0] !== region ||"]],
  [
    "26",
    "changes/recovery",
    ["changes/recovery.ts", "results.filter(({ isSkipped }) => isSkipped !== true)", "results"],
  ],
  ["28", "api/json/iso-time", ["api/json/iso-time.ts", "new Date(text).toISOString() : text", "text : text"]],
  ["29", "changes/simultaneous", ["changes/sending.ts", "if (others.length === 0) return;", "return;"]],
  [
    "31",
    "api/auth/authorization",
    [
      "api/http/transport.ts",
      '...request.headers, "user-agent": options.userAgent',
      '"user-agent": options.userAgent, ...request.headers',
    ],
  ],
  ["36", "commands/known", ["commands/keys/pick-key.ts", 'status !== "revoked"', "true"]],
  ["39", "api/http/retry", ["api/http/retry.ts", "&& refusals < mostRefusals", ""]],
  ["40", "completion/candidates", ["completion/candidates.ts", "!typed.includes(name)", "typed.includes(name)"]],
  [
    "49",
    "changes/recovery",
    ["changes/delivery-recovery.ts", "id ? await secrets.profileWith(id) : undefined", "undefined"],
  ],
  ["51", "changes/access-key/rotations", ["changes/overlap.ts", "if (others.length === 0) return;", "return;"]],
  ["53", "changes/recover-dimensions", ["changes/workbench.ts", "place !== here", "false"]],
  ["54", "output/csv", ["output/formats/csv.ts", "formula.test(cell) && !isExact", "formula.test(cell)"]],
  [
    "56",
    "api/http/redaction",
    ["api/http/redaction.ts", 'units.map((unit) => `\\\\\\\\+u${hexOf(unit, 4)}`).join(""),', ""],
  ],
  [
    "57",
    "profiles/configure",
    ["profiles/configure.ts", "const hasMoved = host !== originOf(after.base_url);", "const hasMoved = false;"],
  ],
  [
    "59",
    "changes/receipts",
    ["changes/overlap.ts", 'newId !== "" && newId !== oldId', "true"],
    ["api/oauth-client-creation.ts", "known.notIds?.includes(client.id) &&", "false &&"],
  ],
  ["60", "changes/receipts", ["api/oauth-client-creation.ts", "...scopeDifferences(asked, shown),", ""]],
  ["60", "changes/receipts", ["changes/revocation.ts", 'shown === id && status === "revoked"', 'status === "revoked"']],
  ["61", "changes/revoke", ["changes/revocation.ts", "const isSettled = !mayHaveArrived;", "const isSettled = true;"]],
  [
    "64",
    "journal/file/release",
    ["disk/lock-owner.ts", "owner.boot === self.boot && owner.space === self.space", "owner.pid > 0"],
  ],
  [
    "65",
    "commands/api-send",
    ["commands/api/send.ts", 'typeof parsed === "string" ? JSON.stringify(value) : value', "JSON.stringify(parsed)"],
  ],
  ["66", "output/out-file", ["output/out-file.ts", "if (isAmong(options.own, file))", "if (false)"]],
  ["69", "changes/invalid-ids", ["changes/revocation.ts", 'segment(id, "key id")', "id"]],
  ["70", "commands/keys-audit", ["next-step.ts", "/^[\\w@%+:,./-][\\w@%+=:,./-]*$/.test(word)", "true"]],
  [
    "72",
    "profiles/shell-command",
    ["profiles/command-end.ts", 'if (leadsGroup) return kill(-pid, "SIGKILL");', 'return kill(pid, "SIGKILL");'],
  ],
  [
    "74",
    "changes/clock",
    ["changes/sending.ts", "bench.clock.elapsed() - at.startedAt", "bench.clock.now() - at.startedAt"],
  ],
  ["75", "disk/error-words", ["disk/error-words.ts", 'isOneOf("ENOLCK", "EINVAL"', 'isOneOf("EINVAL"']],
  [
    "77",
    "commands/keys-audit",
    ["commands/keys/audit-rules.ts", 'status === "active" ? undefined', 'status !== "" ? undefined'],
  ],
  ["79", "journal/file/file-journal", ["journal/fold.ts", ": sequence <= last;", ": false;"]],
  ["82", "api/json/iso-time", ["api/json/iso-time.ts", "form !== null && Number", "form !== null || Number"]],
  ["19", "changes/request-ids", ["changes/sending.ts", "[...request_ids, id].slice", "[id].slice"]],
  ["25", "output/lists", ["output/fields.ts", "if (this.#unseen.size === 0) return;", "return;"]],
  [
    "30",
    "changes/oauth-client/replace",
    ["changes/oauth-client/replace.ts", 'if (state !== "secret_lost" || id', "if (true || id"],
  ],
  [
    "50",
    "changes/recover-dimensions",
    ["changes/oauth-client/rotate.ts", "proof === undefined ? bench.account.proof : proof", "bench.account.proof"],
  ],
  [
    "52",
    "changes/clock",
    ["changes/workbench.ts", "Date.parse(created_at) + (clock_offset_ms ?? 0)", "Date.parse(created_at)"],
  ],
  [
    "2",
    "changes/oauth-client/rotate",
    [
      "changes/overlap.ts",
      "  await assertWorks(contract, newId);\n  return (await contract.statusOf",
      "  return (await contract.statusOf",
    ],
  ],
  [
    "6",
    "secrets/file",
    ["secrets/delivery-proof.ts", "isDelivered(text, record.proof, keys) === true", "isSameFile(path, record)"],
  ],
  ["33", "output/lists", ["output/formats/table.ts", 'return kind === "id" || kind === "word" ||', "return false && "]],
];

const copy = sourceCopy("findings");

/** @returns how many tests failed */
function failedIn(test) {
  const words = ["vitest", "run", "--project", "unit", `test/unit/${test}`, "--reporter=json", "--silent"];
  const { stdout } = spawnSync("npx", words, { cwd: copy.folder, encoding: "utf8", maxBuffer: 1e9 });
  return JSON.parse(stdout.slice(stdout.indexOf("{"), stdout.lastIndexOf("}") + 1)).numFailedTests;
}

let missed = 0;
try {
  for (const [number, test, ...changes] of fixes) {
    if (wanted !== undefined && number !== wanted) continue;
    const undo = changes.map(copy.put);
    const failed = failedIn(test);
    for (const back of undo.toReversed()) back();
    if (failed === 0) missed += 1;
    const where = changes.map(([file, now]) => `${file} without "${now.trim()}"`).join(", ");
    console.log(`${failed > 0 ? "seen  " : "MISSED"} ${number}: ${where}: ${failed} tests of ${test} fail`);
  }
} finally {
  copy.remove();
}
process.exitCode = missed === 0 ? 0 : 1;
