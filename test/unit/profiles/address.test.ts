import { sampled } from "../../support/sample.ts";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkBaseUrl, checkEndpoint, checkRegionOfHost, isLoopback, originOf } from "../../../src/profiles/address.ts";
import { Failure } from "../../../src/errors.ts";
import { failureOf } from "./a-profile.ts";

const partsOfUrls =
  "http:// https:// me:pass@ localhost 127.0.0.1 [::1] api.example.com :8443 /v1 ?a=b #f .. \\ // %2e @".split(" ");

describe("checkBaseUrl", () => {
  it.each([
    ["https://api.example.com", "https://api.example.com"],
    ["https://api.example.com/", "https://api.example.com"],
    ["HTTPS://API.Example.com:443//", "https://api.example.com"],
    ["https://api.example.com:8443/integration/", "https://api.example.com:8443/integration"],
    ["http://127.0.0.1:8080", "http://127.0.0.1:8080"],
    ["http://127.8.9.10", "http://127.8.9.10"],
    ["http://127.1", "http://127.0.0.1"],
    ["http://[::1]:1/", "http://[::1]:1"],
    ["http://[0:0:0:0:0:0:0:1]", "http://[::1]"],
    ["http://localhost:3000", "http://localhost:3000"],
  ])("accepts %s as %s", (given, kept) => {
    expect(checkBaseUrl(given)).toBe(kept);
  });

  const refused = [
    ["http://api.example.com", "http://localhost.example.com", "http://localhost.", "http://127.0.0.1.example.com"],
    ["http://127.0.0.1@example.com", "http://128.0.0.1", "http://0.0.0.0", "http://[::]"],
    ["http://[::ffff:127.0.0.1]", "http://2130706433.example.com"],
    ["https://user@api.example.com", "https://user:pw@api.example.com", "https://@api.example.com"],
    ["https://:@api.example.com", "https://api.example.com?x=1", "https://api.example.com?"],
    ["https://api.example.com/#", "https://api.example.com#a"],
    ["https:api.example.com", "https:/api.example.com", "https:///api.example.com", "https:\\\\api.example.com"],
    ["https://api.example.com\\@evil.example", "https://api.exa\tmple.com", " https://api.example.com"],
    ["https://api.example.com\n", "https://", "https://api.example.com:99999", "ftp://api.example.com"],
    ["sandbox://us", "file:///etc/passwd", "javascript:alert(1)", "api.example.com", ""],
  ];
  it.each(refused.flat())("refuses %j", async (given) => {
    const failure = await failureOf(() => checkBaseUrl(given, "--base-url"));
    expect(failure.kind).toBe("usage");
    expect(failure.message).toMatch(/^Invalid --base-url: it /);
  });

  it("never quotes the address, which may contain a password", async () => {
    const failure = await failureOf(() => checkBaseUrl("https://me:hunter2@api.example.com"));
    expect(JSON.stringify(failure)).not.toContain("hunter2");
  });

  it("returns its own result unchanged, and allows plain http only to this machine", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(fc.constantFrom(...partsOfUrls), { maxLength: 7 }).map((parts) => parts.join("")),
        ),
        (text) => {
          let kept: string;
          try {
            kept = checkBaseUrl(text);
          } catch (error) {
            if (error instanceof Failure) return;
            throw error;
          }
          expect(checkBaseUrl(kept)).toBe(kept);
          const url = new URL(kept);
          expect(url.protocol === "https:" || isLoopback(url.hostname)).toBe(true);
          expect([url.username, url.password, url.search, url.hash]).toEqual(["", "", "", ""]);
        },
      ),
      { numRuns: sampled(2000) },
    );
  });
});

describe("checkRegionOfHost: each region has its own host (§1)", () => {
  it.each([
    ["https://api.us.example.com", "eu"],
    ["https://US.example.com", "eu"],
    ["https://api-eu.example.com/path", "us"],
    ["https://eu-west-1.api.example.com", "us"],
  ])("refuses %s for %s", async (address, region) => {
    const other = region === "us" ? "eu" : "us";
    expect(await failureOf(() => checkRegionOfHost(address, region))).toMatchObject({
      kind: "usage",
      message: expect.stringContaining(`is in the region ${other}, and the profile is for ${region}`),
      details: { hint: expect.stringContaining(`--region ${other}`) as string },
    });
    expect(() => checkRegionOfHost(address, other)).not.toThrow();
  });

  it.each([
    "https://api.example.com",
    "https://api.example.eu",
    "https://us-company.com",
    "https://us.to-eu.api.example.com",
    "https://august.example.com",
    "http://127.0.0.1:8080",
    "http://localhost",
    "http://[::1]:1",
  ])("accepts %s, which names no region", (address) => {
    for (const region of ["us", "eu"]) expect(() => checkRegionOfHost(address, region)).not.toThrow();
  });
});

describe("checkEndpoint", () => {
  it("keeps path and query (RFC 6749 §3.2), and refuses a fragment", async () => {
    expect(checkEndpoint("https://id.example.com/token/?tenant=1")).toBe("https://id.example.com/token/?tenant=1");
    expect((await failureOf(() => checkEndpoint("https://id.example.com/token#x"))).kind).toBe("usage");
    expect((await failureOf(() => checkEndpoint("http://id.example.com/token"))).kind).toBe("usage");
  });
});

describe("originOf: what a credential is bound to (§5.1 rule 4)", () => {
  it.each([
    ["https://api.example.com", "https://api.example.com/v1/entities"],
    ["https://api.example.com/x", "https://api.example.com:443/v1"],
    ["sandbox://us", "sandbox://us/v1/entities"],
  ])("is the same for %s and %s", (bound, address) => {
    expect(originOf(address)).toBe(originOf(bound));
  });

  it.each([
    ["https://api.example.com", "http://api.example.com"],
    ["https://api.example.com", "https://api.example.com:8443"],
    ["https://api.example.com", "https://api.example.com.evil.net"],
    ["https://api.example.com", "https://evilapi.example.com"],
    ["https://api.us.example.com", "https://api.eu.example.com"],
    ["sandbox://us", "sandbox://eu"],
    ["sandbox://us", "https://us"],
  ])("differs for %s and %s", (bound, address) => {
    expect(originOf(address)).not.toBe(originOf(bound));
  });
});
