import { describe, expect, it } from "vitest";
import { withoutEchoes } from "../../../../src/api/http/redaction.ts";

const key = "key-with+odd/characters=and more";

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

function answer(status: number, text: string) {
  return { kind: "response", status, headers: { "request-id": text }, body: Buffer.from(text) } as const;
}

describe("withoutEchoes", () => {
  it.each([
    ["Basic, key as password", { authorization: `Basic ${base64(`apikey:${key}`)}` }, []],
    ["Basic, key as user", { authorization: `Basic ${base64(`${key}:`)}` }, []],
    ["a body", {}, [key]],
  ])("removes the secret of %s from headers and error bodies, raw and encoded", (_name, headers, secrets) => {
    const echo = `${key} ${encodeURIComponent(key)} ${(headers as Record<string, string>).authorization ?? ""} é`;
    const shown = withoutEchoes({ headers, secrets }, answer(401, echo));
    if (shown.kind !== "response") throw new Error("no response");
    for (const text of [shown.headers["request-id"]!, shown.body.toString()]) {
      expect(text).not.toContain(key);
      expect(text).not.toContain(encodeURIComponent(key));
      expect(text).not.toContain(base64(`apikey:${key}`));
    }
    expect(shown.body.toString()).toContain(" é");
  });

  const escapes: [string, (text: string) => string][] = [
    ["JSON", (text) => JSON.stringify(text).slice(1, -1)],
    ["JSON with \\/", (text) => JSON.stringify(text).slice(1, -1).replaceAll("/", "\\/")],
    [
      "\\u of every character",
      (text) => [...text].map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`).join(""),
    ],
    [
      "\\U in capitals",
      (text) => [...text].map((c) => `\\u${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`).join(""),
    ],
    ["JSON in JSON", (text) => JSON.stringify(JSON.stringify(text)).slice(1, -1)],
    ["percent signs", (text) => [...Buffer.from(text)].map((byte) => `%${byte.toString(16)}`).join("")],
    ["HTML", (text) => [...text].map((c) => `&#${c.charCodeAt(0)};`).join("")],
  ];
  it.each(escapes)("removes a secret in every escape: %s", (_name, escape) => {
    const secret = 'pa/ss+w"o\\rd.ü=';
    for (const headers of [
      { authorization: `Basic ${base64(`apikey:${secret}`)}` },
      { authorization: "Bearer a/b+c/d+efgh==" },
    ]) {
      const echo = headers.authorization.startsWith("Basic") ? secret : "a/b+c/d+efgh==";
      const shown = withoutEchoes({ headers }, answer(401, `{"detail":"got ${escape(echo)} from you"}`));
      if (shown.kind !== "response") throw new Error("no response");
      expect(shown.body.toString()).toBe(
        '{"detail":"got [secret] from you"}'.replace(
          "[secret]",
          _name === "JSON in JSON" ? '\\"[secret]\\"' : "[secret]",
        ),
      );
    }
  });

  it("removes a bearer token from the received part of a broken response", () => {
    const request = { headers: { authorization: "Bearer abc.defghij" } };
    const { kind: _, ...partial } = answer(500, "abc.defghij");
    const exchange = { kind: "broken", sent: true, reason: "closed", detail: "cut", partial } as const;
    expect(withoutEchoes(request, exchange)).toMatchObject({
      partial: { headers: { "request-id": "[secret]" }, body: Buffer.from("[secret]") },
    });
  });

  it("changes no result, and no word too short to be a secret", () => {
    const request = { headers: { authorization: `Basic ${base64("apikey:short")}` } };
    const result = withoutEchoes({ headers: { authorization: "Bearer abc.defghij" } }, answer(200, "abc.defghij"));
    expect(result).toMatchObject({ body: Buffer.from("abc.defghij"), headers: { "request-id": "[secret]" } });
    expect(withoutEchoes(request, answer(400, "too short"))).toMatchObject({ body: Buffer.from("too short") });
    const unsigned = answer(400, "abc.defghij");
    expect(withoutEchoes({ headers: {} }, unsigned)).toBe(unsigned);
  });

  it.each([
    ["backslashes", "\\"],
    ["percent signs", "%25"],
    ["references", "&#0"],
    ["zeros", "&#x0000000"],
    ["half an escape", "\\u00"],
    ["parts of the secret", "abc.defghi"],
  ])("processes 400 kB of %s before a secret without delay", (_name, text) => {
    const request = { headers: { authorization: "Bearer abc.defghij" } };
    const noise = text.repeat(400_000 / text.length);
    const shown = withoutEchoes(request, answer(400, `${noise} abc.defghij ${noise}`));
    expect(shown.kind === "response" && shown.body.equals(Buffer.from(`${noise} [secret] ${noise}`))).toBe(true);
  });

  it("removes a secret from all parts of a response to a change", () => {
    const request = { headers: { authorization: "Bearer abc.defghij" } };
    const received = Buffer.from("HTTP/1.1 200 OK\r\n\r\nabc.defghij");
    const exchange = { kind: "broken", sent: true, reason: "closed", detail: "cut", received } as const;
    expect(withoutEchoes(request, exchange)).toMatchObject({
      received: Buffer.from("HTTP/1.1 200 OK\r\n\r\n[secret]"),
    });
  });
});
