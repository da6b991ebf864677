import { describe, expect, it } from "vitest";
import { exitCodes, Failure, type FailureKind } from "../../../src/errors.ts";
import { shell } from "../../../src/next-step.ts";
import { renderBug, renderFailure } from "../../../src/output/failure.ts";

const person = { format: "table", color: false, exitCode: 7 };
const lost = new Failure("outcome_unknown", 'no answer to "create OAuth client" (connection closed after 30 s)', {
  meaning: "The client may or may not exist. The idempotency key is saved, so nothing can be created twice.",
  nextCommand: shell`integ journal recover 6k2f9`,
  where: "profile prod (eu)",
  request: "POST /v1/oauth_clients",
});
const conflict = {
  status: 409,
  code: "invalid_request",
  title: "Conflict",
  detail: "The client limit is reached.",
  param: "scopes",
  request_id: "req_1",
  doc_url: "https://docs.example/developers/v1/errors/invalid_request",
  retryable: false,
};
const refused = new Failure("conflict", "the service refused the request", {
  hint: "Free a slot.",
  nextCommand: shell`integ oauth-clients list`,
  where: "profile prod (eu)",
  request: "POST /v1/oauth_clients",
  problem: conflict,
});

describe("an error for a person", () => {
  it("says what happened, what it means, the next command, and the request", () => {
    expect(renderFailure(lost, person)).toBe(
      [
        'Error: no answer to "create OAuth client" (connection closed after 30 s)',
        "  The client may or may not exist. The idempotency key is saved, so nothing can be created twice.",
        "  Next: integ journal recover 6k2f9",
        "  profile prod (eu) · POST /v1/oauth_clients · request id unknown · exit 7",
        "",
      ].join("\n"),
    );
  });

  it("shows the service's message, the request id and the error's address", () => {
    expect(renderFailure(refused, { ...person, exitCode: 5 })).toBe(
      [
        "Error: the service refused the request",
        "  The service says: Conflict: The client limit is reached. (invalid_request, parameter scopes)",
        "  Fix: Free a slot.",
        "  Next: integ oauth-clients list",
        "  See: https://docs.example/developers/v1/errors/invalid_request",
        "  profile prod (eu) · POST /v1/oauth_clients · request id req_1 · status 409 · exit 5",
        "",
      ].join("\n"),
    );
  });

  it("does not report the request id as missing if only this command does not have it", () => {
    const where = "profile prod (eu)";
    const request = "POST /v1/oauth_clients";
    const shown = (kind: FailureKind, problem?: { request_id: string }) =>
      renderFailure(new Failure(kind, "x", { where, request, problem }), person).split("\n")[1];
    expect(shown("undelivered")).toBe(`  ${where} · ${request} · exit 7`);
    expect(shown("undelivered", { request_id: "req_1" })).toBe(`  ${where} · ${request} · request id req_1 · exit 7`);
    expect(shown("unreachable")).toBe(`  ${where} · ${request} · request id unknown · exit 7`);
  });

  it("has only the known parts", () => {
    expect(renderFailure(new Failure("usage", "--limit is missing"), { ...person, exitCode: 2 })).toBe(
      "Error: --limit is missing\n  exit 2\n",
    );
    const bare = new Failure("auth", "refused", { problem: { code: "x" } });
    expect(renderFailure(bare, person)).toContain("  The service says: (x)\n");
  });

  it("has colors on request, with the same words", () => {
    const colored = renderFailure(lost, { ...person, color: 1 });
    expect(colored).toContain("\u001b[");
    expect(colored.replaceAll(/\u001b\[\d+m/g, "")).toBe(renderFailure(lost, person));
    expect(renderFailure(lost, { ...person, color: true })).toBe(colored);
  });

  it("prevents the service from adding lines, and limits its text", () => {
    const evil = "x\nError: all is well\u001b]0;owned\u0007".repeat(1000);
    const problem = { title: evil, detail: evil, code: evil, param: evil, request_id: evil, doc_url: evil };
    const text = renderFailure(
      new Failure("failed", evil, { meaning: evil, hint: `Use ${evil}.`, where: evil, problem }),
      person,
    );
    const lines = text.split("\n");
    expect(lines.filter((line) => line.startsWith("Error:"))).toHaveLength(1);
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
    expect(text.length).toBeLessThan(30_000);
  });
});

describe("an error for a program", () => {
  const json = (failure: Failure, exitCode: number, format = "json") => {
    const text = renderFailure(failure, { format, color: 1, exitCode });
    expect(text).toMatch(/^[^\n]+\n$/);
    return JSON.parse(text);
  };

  it("is one line with exactly the documented keys that apply", () => {
    for (const format of ["json", "ndjson"]) {
      expect(json(refused, 5, format)).toEqual({
        error: {
          kind: "conflict",
          message: "the service refused the request",
          exit_code: 5,
          ...conflict,
          hint: "Free a slot.",
          next_command: "integ oauth-clients list",
        },
      });
    }
    expect(Object.keys(json(new Failure("usage", "no"), 2).error)).toEqual(["kind", "message", "exit_code"]);
  });

  it("has its meaning even with a next step", () => {
    expect(json(lost, 7).error).toEqual({
      kind: "outcome_unknown",
      message: `${lost.message} ${lost.details.meaning}`,
      exit_code: 7,
      next_command: "integ journal recover 6k2f9",
    });
    const meant = new Failure("failed", "It broke.", { meaning: "Nothing was sent." });
    expect(json(meant, 1).error).toMatchObject({ message: "It broke. Nothing was sent." });
  });

  it("names every kind as the exit code table does", () => {
    const kinds: readonly FailureKind[] = ["failed", "usage", "outcome_unknown", "secret_lost", "terminated"];
    for (const kind of kinds) {
      const shown = json(new Failure(kind, "x"), exitCodes[kind]).error;
      expect(shown).toEqual({ kind, message: "x", exit_code: exitCodes[kind] });
    }
  });

  it("keeps the service's words, with control characters escaped", () => {
    const detail = "a\u009b31m\u202e\u{e0041}\n\u001b[2J";
    const text = renderFailure(new Failure("failed", "x", { problem: { detail } }), { ...person, format: "json" });
    expect(text).toMatch(/^[\x20-\x7e]+\n$/);
    expect(JSON.parse(text).error.detail).toBe(detail);
  });
});

describe("a bug", () => {
  it("is shown with its stack, control characters escaped", () => {
    const text = renderBug(new TypeError("x is\u001b[2J not\na function"));
    expect(text).toMatch(/^Error: This is a bug in integ: x is\\u\{1b\}\[2J not\\u\{a\}a function\n/);
    expect(text).toMatch(/\n {4}TypeError: x is/);
    expect(text).toMatch(/failure\.test\.ts/);
    expect(text).toMatch(/\n {2}exit 1\n$/);
    expect(renderBug("thrown text")).toContain("thrown text");
  });

  it("is one JSON object for a program", () => {
    const text = renderBug(new Error("x"), { format: "ndjson", color: 0, exitCode: 1 });
    expect(JSON.parse(text)).toEqual({ error: { kind: "failed", message: "This is a bug in integ: x", exit_code: 1 } });
  });
});
