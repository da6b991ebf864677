import { describe, expect, it, test } from "vitest";
import { Failure } from "../../../../src/errors.ts";
import {
  connectionWords,
  endsConnection,
  journalFailure,
  LostConnection,
  serverErrorOf,
} from "../../../../src/journal/postgres/failures.ts";
import { nothingSent } from "../../../../src/journal/store.ts";

function refusal(code: string, more: object = {}): Error {
  return Object.assign(new Error("what the server says"), { code, severity: "ERROR", ...more });
}

function failureOf(error: unknown, meaning?: string): Failure {
  const failure = journalFailure(error, "postgresql://h/d", meaning);
  if (failure instanceof Failure) return failure;
  throw new Error(`no Failure: ${String(failure)}`);
}

const hints = {
  address: "Correct INTEG_JOURNAL, or --journal of the profile.",
  again: "Run the command again when the server is available.",
};

describe("a server's refusal", () => {
  it.each([
    ["28P01", "usage", "refuses the password", { hint: "Set PGPASSWORD, or correct ~/.pgpass." }],
    ["28000", "usage", "refuses the role", { hint: hints.address }],
    ["3D000", "usage", "does not have the database", { hint: hints.address }],
    ["3F000", "usage", "has no journal in this database yet", { nextCommand: "integ journal init" }],
    ["42P01", "usage", "has no journal in this database yet", { nextCommand: "integ journal init" }],
    ["42703", "usage", "has a journal of another version", { nextCommand: "integ journal init" }],
    ["42883", "usage", "has a journal of another version", { nextCommand: "integ journal init" }],
    [
      "42501",
      "usage",
      "does not permit this to the role",
      { hint: "Give the role what this command needs, or use another role for it." },
    ],
    [
      "25006",
      "unreachable",
      "is read-only (a standby, or default_transaction_read_only is on)",
      { hint: "Use the primary: several hosts with target_session_attrs=read-write find it." },
    ],
    ["53100", "unreachable", "has no space left on its disk", { hint: "Free space on the server's disk." }],
    ["53300", "unreachable", "has no connection left", { hint: hints.again }],
    ...["53200", "57P03", "08006", "25P03", "58030", "XX000", "40001", "55P03"].map(
      (code) => [code, "unreachable", "is not available now", { hint: hints.again }] as const,
    ),
  ] as const)("%s: %s, %s", (code, kind, words, step) => {
    const failure = failureOf(refusal(code));
    expect(failure.kind).toBe(kind);
    expect(failure.message).toBe(
      `The server of the journal postgresql://h/d ${words}: what the server says (SQLSTATE ${code}).`,
    );
    expect(failure.details).toEqual({ meaning: nothingSent, ...step });
  });

  it.each(["22P02", "42601", "23505", "01000", "A28P1", "X57P0"])("%s: its own message, and a check", (code) => {
    const failure = failureOf(refusal(code), "The entry stands as before.");
    expect(failure.kind).toBe("failed");
    expect(failure.message).toBe(
      `The server of the journal postgresql://h/d refuses: what the server says (SQLSTATE ${code}).`,
    );
    expect(failure.details).toEqual({ meaning: "The entry stands as before.", nextCommand: "integ doctor" });
  });

  it("a lost connection names the journal, and what to check", () => {
    const failure = failureOf(new LostConnection("the connection was closed"));
    expect(failure.kind).toBe("unreachable");
    expect(failure.message).toBe("The journal postgresql://h/d cannot be reached: the connection was closed.");
    expect(failure.details).toEqual({
      meaning: nothingSent,
      hint: "Check that its server runs, and the address in INTEG_JOURNAL or --journal of the profile.",
    });
    expect(new LostConnection("x").name).toBe("LostConnection");
  });

  it("a Failure and a bug pass unchanged", () => {
    const failure = new Failure("usage", "x");
    expect(journalFailure(failure, "h")).toBe(failure);
    for (const bug of [new TypeError("x"), "text", undefined, Object.assign(new Error("x"), { code: "ENOENT" })])
      expect(journalFailure(bug, "h")).toBe(bug);
  });
});

test("a server's refusal has a code of five characters and a severity", () => {
  expect(serverErrorOf(refusal("23505"))).toEqual({ code: "23505", message: "what the server says" });
  const others = [
    refusal("2350"),
    refusal("235055"),
    refusal("2350x"),
    Object.assign(new Error("x"), { code: "23505" }),
    Object.assign(new Error("x"), { code: 23505, severity: "ERROR" }),
    new Error("x"),
    { code: "23505", severity: "ERROR" },
    undefined,
  ];
  for (const other of others) expect(serverErrorOf(other)).toBeUndefined();
});

test.each([
  ["57P01", true],
  ["57P03", true],
  ["08006", true],
  ["25P03", true],
  ["25P04", true],
  ["25P02", false],
  ["57014", false],
  ["23505", false],
  ["A08A0", false],
])("%s closes the connection: %s", (code, ends) => {
  expect(endsConnection(refusal(code))).toBe(ends);
});

test("an error that is not a refusal means a closed connection", () => {
  expect(endsConnection(new Error("read ECONNRESET"))).toBe(true);
});

describe("a failed connection", () => {
  it.each([
    ["ECONNREFUSED", "no server accepts connections there (connection refused)"],
    ["ENOTFOUND", "its host name is not known"],
    ["EAI_AGAIN", "its host name is not known"],
    ["ENOENT", "its socket was not found"],
    ["ENOTDIR", "its socket was not found"],
    ["EINVAL", "this machine has no network for that address"],
    ["EADDRNOTAVAIL", "this machine has no network for that address"],
    ["EAFNOSUPPORT", "this machine has no network for that address"],
    ...["ERR_SSL_TLSV1_ALERT_UNKNOWN_CA", "ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE"].map((code) => [
      code,
      "the server does not accept the certificate that sslcert=<file> names: what Node says",
    ]),
    ["ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION", "the server ended the connection before it was encrypted: what Node says"],
    ["EACCES", "access to the socket is denied"],
    ["ETIMEDOUT", "its host does not answer"],
    ["EHOSTUNREACH", "its host does not answer"],
    ["ENETUNREACH", "its host does not answer"],
    ["ECONNRESET", "the connection was closed"],
    ["EPIPE", "the connection was closed"],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "its certificate is for another name: what Node says"],
    ...["DEPTH_ZERO_SELF_SIGNED_CERT", "CERT_HAS_EXPIRED", "UNABLE_TO_VERIFY_LEAF_SIGNATURE"].map((code) => [
      code,
      "its certificate is not trusted (sslrootcert=<file> names its authority): what Node says",
    ]),
    ["UNABLE_TO_GET_ISSUER", "its certificate is not trusted (sslrootcert=<file> names its authority): what Node says"],
    ["EPROTO", "what Node says"],
  ])("%s: %s", (code, words) => {
    expect(connectionWords(Object.assign(new Error("what Node says"), { code }))).toBe(words);
  });

  it.each([
    ["Connection terminated unexpectedly", "the connection was closed"],
    ["The server does not support SSL connections", "the server offers no TLS (ssl = off)"],
    ["There was an error establishing an SSL connection", "the server at this address is not PostgreSQL"],
    ["something else", "something else"],
  ])("%s: %s", (message, words) => {
    expect(connectionWords(new Error(message))).toBe(words);
  });

  it("a value that is not an error is shown unchanged", () => {
    expect(connectionWords("a text")).toBe("a text");
    expect(connectionWords({ code: "ECONNREFUSED", toString: () => "an object" })).toBe("an object");
  });
});
