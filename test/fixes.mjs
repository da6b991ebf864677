// What to break to have a defect of findings.md back: put-back-findings.mjs does it, one at a time.

/**
 * Number of the defect, a test of it, and what has to be broken: the file below `src/`, what it says, what it said before.
 * A test is a file below `test/`; of one that runs the built program, a part of its name too, since the others take long.
 */
/** @type {[number: string, test: string, ...changes: [file: string, now: string, before: string][]][]} */
export const fixes = [
  ["4", "unit/journal/prunable", ["journal/prunable.ts", "choice.includeLive ? aged", "true ? aged"]],
  ["5", "unit/changes/oauth-client/create", ["changes/oauth-client/create.ts", "isTooEarly(met)", "false"]],
  [
    "7",
    "unit/secrets/secret-format",
    ["secrets/secret-format.ts", "return secret.secret;", "return `${secret.secret}\\n`;"],
  ],
  ["8", "unit/commands/own-key", ["commands/keys/own-key.ts", 'ids.size === 1 ? "own" : "maybe"', '"other"']],
  [
    "10",
    "unit/api/contract",
    [
      "api/contract.ts",
      "return compareAnswer(root, { name, response: responses[expected.success], shape: expected.answer });",
      "return [];",
    ],
  ],
  ["15", "unit/commands/durations", ["commands/options/global.ts", "&& Number(text) !== 0)", "&& false)"]],
  ["20", "unit/api/http/retry", ["api/http/retry.ts", "attempt.problem?.retryable", "undefined"]],
  ["21", "unit/api/auth/authorization", ["api/auth/authorization.ts", "source?.drop() ?? false", "false"]],
  ["23", "unit/profiles/address", ["profiles/address.ts", "named[0] === region ||", "named[0] !== region ||"]],
  [
    "26",
    "unit/changes/recovery",
    ["changes/recovery.ts", "results.filter(({ isSkipped }) => isSkipped !== true)", "results"],
  ],
  ["28", "unit/api/json/iso-time", ["api/json/iso-time.ts", "new Date(text).toISOString() : text", "text : text"]],
  ["29", "unit/changes/simultaneous", ["changes/sending.ts", "if (others.length === 0) return;", "return;"]],
  [
    "31",
    "unit/api/auth/authorization",
    [
      "api/http/transport.ts",
      '...request.headers, "user-agent": options.userAgent',
      '"user-agent": options.userAgent, ...request.headers',
    ],
  ],
  ["36", "unit/commands/known", ["commands/keys/pick-key.ts", 'status !== "revoked"', "true"]],
  ["39", "unit/api/http/retry", ["api/http/retry.ts", "&& refusals < mostRefusals", ""]],
  ["40", "unit/completion/candidates", ["completion/candidates.ts", "!typed.includes(name)", "typed.includes(name)"]],
  [
    "49",
    "unit/changes/recovery",
    ["changes/delivery-recovery.ts", "id ? await secrets.profileWith(id) : undefined", "undefined"],
  ],
  ["51", "unit/changes/access-key/rotations", ["changes/overlap.ts", "if (others.length === 0) return;", "return;"]],
  ["53", "unit/changes/recover-dimensions", ["changes/workbench.ts", "place !== here", "false"]],
  ["54", "unit/output/csv", ["output/formats/csv.ts", "formula.test(cell) && !isExact", "formula.test(cell)"]],
  [
    "56",
    "unit/api/http/redaction",
    ["api/http/redaction.ts", 'units.map((unit) => `\\\\\\\\+u${hexOf(unit, 4)}`).join(""),', ""],
  ],
  [
    "57",
    "unit/profiles/configure",
    ["profiles/configure.ts", "const hasMoved = host !== originOf(after.base_url);", "const hasMoved = false;"],
  ],
  [
    "59",
    "unit/changes/receipts",
    ["changes/overlap.ts", 'newId !== "" && newId !== oldId', "true"],
    ["api/oauth-client-creation.ts", "known.notIds?.includes(client.id) &&", "false &&"],
  ],
  ["60", "unit/changes/receipts", ["api/oauth-client-creation.ts", "...scopeDifferences(asked, shown),", ""]],
  ["60", "unit/changes/receipts", ["changes/revocation.ts", 'shown === id && status === "revoked"', 'status === "revoked"']],
  ["61", "unit/changes/revoke", ["changes/revocation.ts", "const isSettled = !mayHaveArrived;", "const isSettled = true;"]],
  [
    "64",
    "unit/journal/file/release",
    ["disk/lock-owner.ts", "owner.boot === self.boot && owner.space === self.space", "owner.pid > 0"],
  ],
  [
    "65",
    "unit/commands/api-send",
    ["commands/api/send.ts", 'typeof parsed === "string" ? JSON.stringify(value) : value', "JSON.stringify(parsed)"],
  ],
  ["66", "unit/output/out-file", ["output/out-file.ts", "if (isAmong(options.own, file))", "if (false)"]],
  ["69", "unit/changes/invalid-ids", ["changes/revocation.ts", 'segment(id, "key id")', "id"]],
  ["70", "unit/commands/keys-audit", ["next-step.ts", "/^[\\w@%+:,./-][\\w@%+=:,./-]*$/.test(word)", "true"]],
  [
    "72",
    "unit/profiles/shell-command",
    ["profiles/command-end.ts", 'if (leadsGroup) return kill(-pid, "SIGKILL");', 'return kill(pid, "SIGKILL");'],
  ],
  [
    "74",
    "unit/changes/clock",
    ["changes/sending.ts", "bench.clock.elapsed() - at.startedAt", "bench.clock.now() - at.startedAt"],
  ],
  ["75", "unit/disk/error-words", ["disk/error-words.ts", 'isOneOf("ENOLCK", "EINVAL"', 'isOneOf("EINVAL"']],
  [
    "77",
    "unit/commands/keys-audit",
    ["commands/keys/audit-rules.ts", 'status === "active" ? undefined', 'status !== "" ? undefined'],
  ],
  ["79", "unit/journal/file/file-journal", ["journal/fold.ts", ": sequence <= last;", ": false;"]],
  ["82", "unit/api/json/iso-time", ["api/json/iso-time.ts", "form !== null && Number", "form !== null || Number"]],
  ["19", "unit/changes/request-ids", ["changes/sending.ts", "[...request_ids, id].slice", "[id].slice"]],
  ["25", "unit/output/lists", ["output/fields.ts", "if (this.#unseen.size === 0) return;", "return;"]],
  [
    "30",
    "unit/changes/oauth-client/replace",
    ["changes/oauth-client/replace.ts", 'if (state !== "secret_lost" || id', "if (true || id"],
  ],
  [
    "50",
    "unit/changes/recover-dimensions",
    ["changes/oauth-client/rotate.ts", "proof === undefined ? bench.account.proof : proof", "bench.account.proof"],
  ],
  [
    "52",
    "unit/changes/clock",
    ["changes/workbench.ts", "Date.parse(created_at) + (clock_offset_ms ?? 0)", "Date.parse(created_at)"],
  ],
  [
    "2",
    "unit/changes/oauth-client/rotate",
    [
      "changes/overlap.ts",
      "  await assertWorks(contract, newId);\n  return (await contract.statusOf",
      "  return (await contract.statusOf",
    ],
  ],
  [
    "6",
    "unit/secrets/file",
    ["secrets/delivery-proof.ts", "isDelivered(text, record.proof, keys) === true", "isSameFile(path, record)"],
  ],
  ["33", "unit/output/lists", ["output/formats/table.ts", 'return kind === "id" || kind === "word" ||', "return false && "]],
  [
    "1",
    "unit/changes/recover-dimensions",
    ["changes/oauth-client/create.ts", "...(begun ? madeAs(begun) : madeFor(account))", "...madeFor(account)"],
  ],
  ["3", "unit/changes/clock", ["changes/delivery-recovery.ts", "return detail.own_key !== true;", "return false;"]],
  ["12", "unit/commands/known", ["commands/oauth-clients/clients.ts", "gone.has(id) ||", ""]],
  [
    "12",
    "unit/commands/known",
    ["commands/oauth-clients/clients.ts", "entries.filter(({ base_url }) => base_url === baseUrl).map(", "entries.map("],
  ],
  [
    "14",
    "e2e/findings: that token is never sent",
    ["api/pages.ts", "isObject(tail) && tail.has_more === true ? tail", "isObject(tail) ? tail"],
  ],
];
