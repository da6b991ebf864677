// What to break to have a defect of findings.md back: put-back-findings.mjs does it, one at a time.

/**
 * Number of the defect, a test of it, and what has to be broken: the file below `src/` (below the project if it begins with
 * `/`), what it says, what it said before.
 * A test is a file below `test/`; of one that runs the built program, a part of its name too, since the others take long.
 */
/** @type {[number: string, test: string, ...changes: [file: string, now: string, before: string][]][]} */
export const fixes = [
  [
    "1",
    "unit/changes/recover-dimensions",
    ["changes/oauth-client/create.ts", "...(begun ? madeAs(begun) : madeFor(account))", "...madeFor(account)"],
  ],
  [
    "2",
    "unit/changes/oauth-client/rotate",
    [
      "changes/overlap.ts",
      "  await assertWorks(work, contract, newId);\n  return (await contract.statusOf",
      "  return (await contract.statusOf",
    ],
  ],
  ["3", "unit/changes/clock", ["changes/delivery-recovery.ts", "return detail.own_key !== true;", "return false;"]],
  ["4", "unit/journal/prunable", ["journal/prunable.ts", "choice.includeLive ? aged", "true ? aged"]],
  ["5", "unit/changes/oauth-client/create", ["changes/oauth-client/create.ts", "isTooEarly(met)", "false"]],
  [
    "6",
    "unit/secrets/file",
    ["secrets/delivered-secret.ts", "isDelivered(text, record.proof, keys) === true", "isSameFile(path, record)"],
  ],
  [
    "7",
    "unit/secrets/secret-format",
    ["secrets/secret-format.ts", "return secret.secret;", "return `${secret.secret}\\n`;"],
  ],
  ["8", "unit/commands/own-key", ["commands/keys/own-key.ts", 'ids.size === 1 ? "own" : "maybe"', '"other"']],
  [
    "9",
    "e2e/keys-rotation: wants --yes in place",
    ["commands/keys/rotate.ts", "!(await output.confirm(question, { destructive: true }))", "false"],
  ],
  [
    "9",
    "unit/changes/oauth-client/rotate",
    ["changes/overlap.ts", "if (await options.mayRevokeUnproven(lease.entry)) return", "return"],
  ],
  [
    "10",
    "unit/api/contract",
    [
      "api/contract.ts",
      "return compareAnswer(root, { name, response: responses[expected.success], shape: expected.answer });",
      "return [];",
    ],
  ],
  [
    "11",
    "e2e/service: a missing permission is a problem where",
    ["commands/doctor/service-checks.ts", '{ name: "permissions", needs: "credential", run: checkPermissions },', ""],
  ],
  [
    "11",
    "e2e/service: asks once and waits 5 s at most",
    ["commands/doctor/diagnose.ts", "const limitMs = 5000;", "const limitMs = 20_000;"],
  ],
  ["12", "unit/commands/known", ["commands/oauth-clients/clients.ts", "this.#gone.add(revoked)", "void revoked"]],
  [
    "12",
    "unit/commands/known",
    ["commands/oauth-clients/clients.ts", "if (entry.base_url !== this.#baseUrl) return;", ""],
  ],
  [
    "13",
    "e2e/lists-walk: a finished export typed again",
    ["commands/running/list-walk.ts", "before.size !== undefined && (", "false && ("],
  ],
  [
    "13",
    "e2e/lists-walk: a finished export typed again",
    ["commands/options/lists.ts", 'if (found !== "table") return found;', "return found;"],
  ],
  [
    "14",
    "e2e/findings: that token is never sent",
    ["api/pages.ts", "isObject(tail) && tail.has_more === true ? tail", "isObject(tail) ? tail"],
  ],
  ["15", "unit/commands/durations", ["commands/options/global.ts", "&& Number(text) !== 0)", "&& false)"]],
  [
    "16",
    "e2e/findings: by integ api is sent again after 429",
    ["api/call/retry.ts", 'return attempt.kind === "refused" && attempt.status === 429;', "return false;"],
  ],
  [
    "17",
    "e2e/findings: is none: nothing is sent",
    ["api/http/request-rules.ts", 'if (!isDate(text)) return "it is not a date";', ""],
  ],
  [
    "17",
    "e2e/findings: is left out on request",
    ["api/http/request-rules.ts", "serviceVersion === noVersion ? {} :", "false ? {} :"],
  ],
  [
    "18",
    "e2e/oauth-clients: is understood by get where the journal knows the client",
    ["commands/oauth-clients/clients.ts", "if (meant === undefined) return undefined;", "return undefined;"],
  ],
  ["19", "unit/changes/request-ids", ["changes/sending.ts", "[...request_ids, id].slice", "[id].slice"]],
  ["20", "unit/api/call/retry", ["api/call/retry.ts", "attempt.problem?.retryable", "undefined"]],
  ["21", "unit/api/auth/authorization", ["api/auth/authorization.ts", "source?.drop() ?? false", "false"]],
  [
    "22",
    "e2e/rotation: at 20 of 20 slots",
    ["changes/oauth-client/create.ts", "throw await noSlot(this.#bench, this.#entry,", "throw ((..._) => refusal)("],
  ],
  ["23", "unit/profiles/address", ["profiles/address.ts", "named[0] === region ||", "named[0] !== region ||"]],
  [
    "24",
    "e2e/oauth-clients: two scopes in one word",
    ["api/oauth-client-creation.ts", 'parts.join("") !== scope || parts.length > 1', "false"],
  ],
  ["25", "unit/output/lists", ["output/fields.ts", "if (this.#unseen.size === 0) return;", "return;"]],
  [
    "26",
    "unit/changes/recovery",
    ["changes/recovery.ts", "results.filter(({ isSkipped }) => isSkipped !== true)", "results"],
  ],
  ["27", "e2e/rotation: gone on with otherwise", ["changes/overlap.ts", "if (others.length === 0) return;", "return;"]],
  [
    "27",
    "e2e/rotation: of a client that was rotated before names its successor",
    ["commands/policy/item-resource.ts", "if (current !== id) await agreeToSuccessor(context, id, current);", ""],
  ],
  ["28", "unit/api/json/iso-time", ["api/json/iso-time.ts", "new Date(text).toISOString() : text", "text : text"]],
  ["29", "unit/changes/simultaneous", ["changes/sending.ts", "if (others.length === 0) return;", "return;"]],
  [
    "30",
    "unit/changes/oauth-client/replace",
    ["changes/oauth-client/replace.ts", 'if (state !== "secret_lost" || id', "if (true || id"],
  ],
  [
    "31",
    "unit/api/auth/authorization",
    [
      "api/http/transport.ts",
      '...request.headers, "user-agent": userAgent',
      '"user-agent": userAgent, ...request.headers',
    ],
  ],
  [
    "32",
    "e2e/lists: says so in one line",
    ["output/output.ts", "if (this.rowsWritten === 0) this.#options.tellEmpty", "if (false) this.#options.tellEmpty"],
  ],
  [
    "33",
    "unit/output/lists",
    ["output/formats/table.ts", 'return kind === "id" || kind === "word" ||', "return false && "],
  ],
  [
    "34",
    "e2e/rotation: a long overlap is success",
    [
      "changes/overlap.ts",
      'record({ state: "waiting", last_error: null })',
      'record({ state: "pending", last_error: null })',
    ],
  ],
  [
    "35",
    "terminal/questions: says what will be made",
    [
      "commands/keys/create.ts",
      'await output.pick("What may the key do?", { choices: scopes, flag: "--scope <scope>" })',
      '"*"',
    ],
  ],
  ["36", "unit/commands/known", ["commands/keys/pick-key.ts", 'status !== "revoked"', "true"]],
  [
    "37",
    "unit/edge/run",
    [
      "edge/help-screen.ts",
      "wrapped(helper.commandDescription(command), { columns })",
      "helper.commandDescription(command)",
    ],
  ],
  ["38", "unit/edge/run", ["edge/unknown-words.ts", "if (familiar !== undefined) return familiar;", ""]],
  ["39", "unit/api/call/retry", ["api/call/retry.ts", "&& refusals < mostRefusals", ""]],
  ["40", "unit/completion/candidates", ["completion/candidates.ts", "!typed.includes(name)", "typed.includes(name)"]],
  [
    "41",
    "unit/sandbox/neighbours",
    ["sandbox/call.ts", "account.organizationId === given.caller.account.organizationId", "true"],
  ],
  ["42", "assumptions", ["sandbox/openapi/v1-document.ts", "// @assumed §8 gives limits", "// §8 gives limits"]],
  ["43", "e2e/sbom", ["/scripts/sbom.mts", "describe(modulesIn(bundle), importsOf)", "describe([], importsOf)"]],
  [
    "44",
    "e2e/package: installs offline without any other package",
    ["/scripts/pack.mjs", "  scripts: _scripts,\n", ""],
  ],
  ["45", "findings: 45", ["/CONTRIBUTING.md", "It is about 150 MB, as large as Node", "It is large"]],
  [
    "46",
    "findings: 46",
    ["/SECURITY.md", "Report it in private, before you open an issue or a pull request", "Tell us"],
  ],
  ["47", "e2e/package-bytes", ["/scripts/pack.mjs", "  setModes();\n", ""]],
  [
    "48",
    "e2e/recover-dimensions: one place takes one secret",
    ["commands/journal/recover.ts", "if (going.length < 2) continue;", "continue;"],
  ],
  [
    "49",
    "unit/changes/recovery",
    ["changes/delivery-recovery.ts", "id ? await secrets.profileWith(id) : undefined", "undefined"],
  ],
  [
    "50",
    "unit/changes/recover-dimensions",
    ["changes/oauth-client/rotate.ts", "proof === undefined ? bench.account.proof : proof", "bench.account.proof"],
  ],
  ["51", "unit/changes/access-key/rotations", ["changes/overlap.ts", "if (others.length === 0) return;", "return;"]],
  [
    "52",
    "unit/changes/clock",
    ["changes/workbench.ts", "Date.parse(created_at) + (clock_offset_ms ?? 0)", "Date.parse(created_at)"],
  ],
  ["53", "unit/changes/recover-dimensions", ["changes/workbench.ts", "place !== here", "false"]],
  ["54", "unit/output/csv", ["output/formats/csv.ts", "&& !isExact && formula", "&& formula"]],
  [
    "55",
    "e2e/interruption: suspended past the time limit",
    ["api/http/transport.ts", "    await this.#reception?.readArrived();\n", ""],
  ],
  ["56", "unit/api/http/redaction", ["api/http/redaction.ts", "json ?? percent ?? hex", "percent ?? hex"]],
  [
    "57",
    "unit/profiles/configure",
    ["profiles/configure.ts", "const hasMoved = host !== originOf(after.base_url);", "const hasMoved = false;"],
  ],
  [
    "58",
    "e2e/recover-dimensions: makes no second client in silence",
    ["journal/admission.ts", "if (other === undefined) return;", "return;"],
  ],
  [
    "59",
    "unit/changes/receipts",
    ["changes/overlap.ts", 'newId !== "" && newId !== oldId', "true"],
    ["api/oauth-client-creation.ts", "known.notIds?.includes(client.id) &&", "false &&"],
  ],
  ["60", "unit/changes/receipts", ["api/oauth-client-creation.ts", "...scopeDifferences(asked, shown),", ""]],
  [
    "60",
    "unit/changes/receipts",
    ["changes/revocation.ts", 'shown === id && status === "revoked"', 'status === "revoked"'],
  ],
  [
    "61",
    "unit/changes/revoke",
    ["changes/revocation.ts", "const isSettled = !mayHaveArrived;", "const isSettled = true;"],
  ],
  [
    "62",
    "e2e/journal: forget of a rotation gives up",
    ["commands/journal/forget.ts", "await keeping.destroyKept(one.entry.id, { keepsProof: false });", ""],
  ],
  [
    "63",
    "unit/journal/file/locks",
    ["journal/file/safety.ts", "if (stat.nlink > 1 || (stat.nlink === 0 && isAt(path, fd)))", "if (stat.nlink === 0)"],
  ],
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
  [
    "67",
    "unit/changes/recovery",
    [
      "changes/workbench.ts",
      "    bench.disk.markFailed(why);\n",
      "    bench.disk.markFailed(why);\n    throw error;\n",
    ],
  ],
  [
    "68",
    "e2e/journal: ends as the change did, and promises nothing",
    ["changes/workbench.ts", "const left = isThere\n", "const left = true\n"],
  ],
  ["69", "unit/changes/invalid-ids", ["changes/revocation.ts", 'segment(id, "key id")', "id"]],
  ["70", "unit/commands/keys-audit", ["next-step.ts", "/^[\\w@%+:,./-][\\w@%+=:,./-]*$/.test(word)", "true"]],
  [
    "71",
    "e2e/rotation: at 20 of 20 slots",
    ["changes/sending.ts", 'if (status !== "revoked") holders', "holders"],
    ["changes/sending.ts", "&& detail.revoked !== true", ""],
  ],
  [
    "72",
    "unit/profiles/shell-command",
    ["profiles/command-end.ts", 'if (leadsGroup) return kill(-pid, "SIGKILL");', 'return kill(pid, "SIGKILL");'],
  ],
  [
    "73",
    "e2e/errors: an error as JSON is alone",
    ["output/terminal.ts", 'if (this.#isErrMidLine) this.writeErr("\\n");', ""],
  ],
  [
    "74",
    "unit/changes/clock",
    ["changes/sending.ts", "bench.clock.elapsed() - at.startedAt", "bench.clock.now() - at.startedAt"],
  ],
  ["75", "unit/disk/error-words", ["disk/error-words.ts", 'isOneOf("ENOLCK", "EINVAL"', 'isOneOf("EINVAL"']],
  [
    "76",
    "e2e/findings: is no reason to suggest a --retry-for",
    ["api/call/attempt.ts", "if (days > 1) return", "if (false) return"],
  ],
  [
    "77",
    "unit/commands/keys-audit",
    ["commands/keys/audit-rules.ts", 'status === "active" ? undefined', 'status !== "" ? undefined'],
  ],
  [
    "78",
    "e2e/recover-dimensions: is not removed without a word of it",
    ["commands/profiles/unfinished.ts", "if (unfinished.length === 0) return undefined;", "return undefined;"],
  ],
  [
    "79",
    "unit/journal/file/file-journal",
    ["journal/file/contents.ts", "} else if (n > last.n) {", "} else if (n > 0) {"],
  ],
  [
    "80",
    "e2e/lists: api /v1/entities --fields",
    [
      "commands/api/send.ts",
      "await context.output.resource(text, { columns: [], isRead });",
      "await context.output.resource(text, { columns: [] });",
    ],
  ],
  [
    "81",
    "unit/disk/private-folders",
    [
      "disk/private-file.ts",
      "if (!isMissing(error) || parent === path || isThere(parent)) return refuseUnlessThere(path, error);",
      "",
    ],
  ],
  ["82", "unit/api/json/iso-time", ["api/json/iso-time.ts", "form !== null && Number", "form !== null || Number"]],
];
