// `integ api` sends typed values without rounding or reformatting them.
import { describe, expect, it } from "vitest";
import { type ApiFlags, requestOf, withParameters } from "../../../src/commands/api/send.ts";

const bodyOf = (flags: ApiFlags): unknown => requestOf("/v1/x", { method: "POST", ...flags }, undefined).body;

describe("fields of a body", () => {
  it.each([
    ["id=12345678901234567890", '{"id":"12345678901234567890"}', '{"id":12345678901234567890}'],
    ["v=1.10", '{"v":"1.10"}', '{"v":1.10}'],
    ["on=true", '{"on":"true"}', '{"on":true}'],
    ["none=null", '{"none":"null"}', '{"none":null}'],
    ["none=", '{"none":""}', '{"none":""}'],
    ["a=[1, 2]", '{"a":"[1, 2]"}', '{"a":[1, 2]}'],
    ['a={"b":1.0}', '{"a":"{\\"b\\":1.0}"}', '{"a":{"b":1.0}}'],
    ["zip=01234", '{"zip":"01234"}', '{"zip":"01234"}'],
    ['q="x"', '{"q":"\\"x\\""}', '{"q":"\\"x\\""}'],
    ["a[]=1", '{"a":["1"]}', '{"a":[1]}'],
    ["__proto__=1", '{"__proto__":"1"}', '{"__proto__":1}'],
  ])("%s: -f gives %s, -F gives %s", (typed, text, json) => {
    expect([bodyOf({ rawField: [typed] }), bodyOf({ field: [typed] })]).toEqual([text, json]);
  });

  it("repeated name[] extends its array; any other name may occur once", () => {
    expect(bodyOf({ rawField: ["scopes[]=a", "scopes[]=b", "id=x"] })).toBe('{"scopes":["a","b"],"id":"x"}');
    for (const rawField of [
      ["a=1", "a=2"],
      ["a=1", "a[]=2"],
    ])
      expect(() => bodyOf({ rawField })).toThrow("given twice");
  });

  it("--input is sent byte for byte", () => {
    const bytes = Buffer.from([0xff, 0x00, 0x0a, 0x0a]);
    expect(requestOf("/v1/x", {}, bytes)).toMatchObject({ method: "POST", body: bytes });
  });
});

describe("the path of a paginated request", () => {
  it.each([
    ["/v1/x", "/v1/x?limit=500", "/v1/x?limit=500&page_token=t%2B1"],
    ["/v1/x?a&b", "/v1/x?a&b&limit=500", "/v1/x?a&b&limit=500&page_token=t%2B1"],
    ["/v1/x?a=1+2&a=%7e", "/v1/x?a=1+2&a=%7e&limit=500", "/v1/x?a=1+2&a=%7e&limit=500&page_token=t%2B1"],
    ["/v1/x?limit=5&page_token=s", "/v1/x?limit=5&page_token=s", "/v1/x?limit=5&page_token=t%2B1"],
    ["/v1/x?page%5Ftoken=s", "/v1/x?page%5Ftoken=s&limit=500", "/v1/x?limit=500&page_token=t%2B1"],
    ["/v1/x?a?b", "/v1/x?a?b&limit=500", "/v1/x?a?b&limit=500&page_token=t%2B1"],
  ])("%s", (path, first, next) => {
    const limit = 500;
    expect([withParameters(path, { limit }), withParameters(path, { limit, pageToken: "t+1" })]).toEqual([first, next]);
  });
});
