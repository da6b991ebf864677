// The API document does not show the parameters of people's search (§4.4), so `--param` can set any.
import { describe, expect, it } from "vitest";
import { deskOfTests, type KeysDesk } from "./keys-desk.ts";

let desk: KeysDesk;
deskOfTests((opened) => (desk = opened));

async function queries(): Promise<string[]> {
  const { requests } = (await desk.service.control("GET")) as {
    requests: { path: string; query?: string; url?: string }[];
  };
  return requests.map((request) => JSON.stringify(request));
}

describe("people search", () => {
  it("finds people and prints their rows unchanged, in every format", async () => {
    const at = desk.withToken();
    const { code, stdout } = await at.integ(["people", "search", "ada", "--json"]);
    expect(code).toBe(0);
    const { object, data, has_more } = JSON.parse(stdout);
    expect([object, has_more]).toEqual(["list", false]);
    expect(data.length).toBeGreaterThan(0);
    for (const { displayName, email } of data) expect(`${displayName} ${email}`.toLowerCase()).toContain("ada");
    const lines = (await at.integ(["person", "search", "ada", "--ndjson"])).stdout.trim().split("\n");
    expect(lines.map((line) => JSON.parse(line))).toEqual(data);
    const table = (await at.integ(["people", "search", "ada"])).stdout;
    expect(table.split("\n")[0]).toMatch(/^ID +DISPLAYNAME +EMAIL +STATUS/);
    expect((await at.integ(["people", "search", "ada", "-o", "csv"])).stdout.split("\r\n")[0]).toBe(
      "id,displayName,email,status",
    );
  });

  it("prints an empty list if no one is found", async () => {
    const { code, stdout } = await desk.withToken().integ(["people", "search", "nobody-at-all", "--json"]);
    expect([code, JSON.parse(stdout).data]).toEqual([0, []]);
  });

  it("--param replaces the default query, encoded", async () => {
    const at = desk.withToken();
    const { code, stderr } = await at.integ(["people", "search", "--param", "email=a&b=c d", "--param", "x=1"]);
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/400/);
    const [request] = await queries();
    expect(request).not.toContain("query=");
    expect((await at.integ(["people", "search", "--param", "query=ada", "--json"])).code).toBe(0);
  });

  it.each([
    ["nothing", []],
    ["white space", ["  "]],
    ["a parameter that is not a pair", ["--param", "email"]],
    ["a parameter without a name", ["--param", "=x"]],
    ["a text that would be ignored silently", ["ada", "--param", "email=x"]],
  ])("%s is exit 2, nothing sent", async (_name, words) => {
    const { code, stdout } = await desk.withToken().integ(["people", "search", ...words]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(await queries()).toEqual([]);
  });
});

describe("people membership", () => {
  it("shows a person's memberships", async () => {
    const at = desk.withToken();
    const [person] = JSON.parse((await at.integ(["people", "search", "ada", "--json"])).stdout).data;
    const { code, stdout } = await at.integ(["people", "membership", person.id, "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ personId: person.id, organizationId: desk.service.us.organization_id });
    expect((await at.integ(["people", "membership", person.id])).stdout).toContain("joinedAt");
  });

  it("of an unknown person is exit 4; an id that would change the path is encoded or not sent", async () => {
    const at = desk.withToken();
    expect((await at.integ(["people", "membership", "nobody"])).code).toBe(4);
    expect((await at.integ(["people", "membership", "../access-keys"])).code).toBe(4);
    expect((await queries()).at(-1)).toContain("/api/v1/people/..%2Faccess-keys/membership");
    expect((await at.integ(["people", "membership", ".."])).code).toBe(2);
    expect((await at.integ(["people", "membership", ""])).code).toBe(2);
  });

  it("without a token, an organization or permission: exit 3 or 2", async () => {
    const words = ["people", "membership", "x"];
    expect((await desk.withToken({ INTEG_ORGANIZATION_ID: "" }).integ(words)).code).toBe(2);
    expect((await desk.withToken({ INTEG_ACCESS_TOKEN: "nobody" }).integ(words)).code).toBe(3);
  });
});
