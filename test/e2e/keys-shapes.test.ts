// A plain server sends response shapes that the API document leaves open (§4.4).
import { writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Home } from "../support/program.ts";
import { homeOfTest } from "../support/service.ts";
import { integHere } from "../support/program-here.ts";

type Answer = { readonly status?: number; readonly body?: string };

let server: Server;
let answer: (request: IncomingMessage) => Answer = () => ({ status: 500 });
let seen: string[] = [];

beforeAll(async () => {
  server = createServer((request: IncomingMessage, response: ServerResponse) => {
    seen.push(`${request.method} ${request.url}`);
    const { status = 200, body } = answer(request);
    request.resume().on("end", () => {
      response.writeHead(status, body === undefined ? {} : { "content-type": "application/json" }).end(body);
    });
  });
  await new Promise<void>((listening) => void server.listen(0, "127.0.0.1", listening));
});

afterEach(() => {
  seen = [];
});

afterAll(() => {
  server.close();
});

function home(): Home {
  return homeOfTest({
    INTEG_REGION: "us",
    INTEG_BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    INTEG_ORGANIZATION_ID: "5eed0000-0000-4000-8000-0000000000a5",
    INTEG_ACCESS_TOKEN: "token",
  });
}

function respondWith(body: unknown): void {
  answer = () => ({ body: typeof body === "string" ? body : JSON.stringify(body) });
}

const row = { id: "ak_1", name: "one", status: "active", unknown: { deep: [1] } };
const key = '{"id":"ak_1","count":12345678901234567890,"name":"one"}';

describe("a list of many keys", () => {
  const many = Array.from({ length: 12_000 }, (_, index) => ({ ...row, id: `ak_${index}`, name: "x".repeat(100) }));

  it("is listed and audited completely: more than a megabyte, each row once", async () => {
    respondWith({ data: many });
    const listed = await integHere(home(), ["keys", "list", "--ndjson"]);
    const ids = listed.stdout
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { id: string }).id);
    expect(ids).toEqual(many.map(({ id }) => id));
    const audited = await integHere(home(), ["keys", "audit", "--json"]);
    expect((JSON.parse(audited.stdout) as { audit: { keys: number } }).audit.keys).toBe(many.length);
  });
});

describe("keys list finds the rows", () => {
  it("and prints them without white space, but with their large numbers and key order", async () => {
    respondWith(`{ "keys" : [ ${key.replace(",", " , ")} ] }`);
    expect((await integHere(home(), ["keys", "list", "--ndjson"])).stdout).toBe(`${key}\n`);
  });

  it("and shows a person the documented fields that exist, or else all fields", async () => {
    respondWith([row]);
    const documented = (await integHere(home(), ["keys", "list"])).stdout;
    expect(documented.split("\n")[0]).toMatch(/^ID +NAME +STATUS *$/);
    respondWith([{ keyId: "k", label: "l", madeAt: "2026-01-01T00:00:00Z", "a.b": 1, nested: {} }]);
    const strange = (await integHere(home(), ["keys", "list"])).stdout;
    expect(strange.split("\n")[0]).toMatch(/^KEYID +LABEL +MADEAT *$/);
    expect(strange).toContain("2026-01-01T00:00:00");
  });
});

describe("apply, of an item whose key the list lacks", () => {
  const policy = `version: 1
id: pol_of_this_test
access_keys:
  deploy: { type: service_account, scopes: ["*"], expires_in: 90d, secret: { file: f } }
`;
  it.each([
    ["says that more keys exist", { data: [row], has_more: true }, 10, 1],
    ["has no rows", { data: [] }, 10, 1],
    ["has a row without an id", { data: [row, { name: "two" }] }, 10, 1],
    ["is complete", { data: [row] }, 0, 2],
  ])("creates another key only if the list is complete; it %s", async (_what, list, code, created) => {
    const at = home();
    writeFileSync(at.path("integ.yaml"), policy);
    let count = 0;
    answer = ({ method }) =>
      method === "POST"
        ? { status: 201, body: JSON.stringify({ id: `ak_new_${++count}`, secret: "s3cr3t-new" }) }
        : { body: JSON.stringify(list) };
    expect((await integHere(at, ["apply", "--yes"])).code).toBe(0);
    const second = await integHere(at, ["apply", "--yes"]);
    expect([second.code, count], second.stderr).toEqual([code, created]);
    if (code === 10) expect(second.stderr).toContain("the list of keys is incomplete and lacks ak_new_1");
    const other = home();
    const revoked = await integHere(other, ["keys", "revoke", "ak_new_1", "--yes"]);
    writeFileSync(at.path("untrusted"), (await integHere(other, ["journal", "export"])).stdout);
    const imported = await integHere(at, ["journal", "import", "untrusted"]);
    expect([revoked.code, imported.code], revoked.stderr + imported.stderr).toEqual([0, 0]);
    expect([(await integHere(at, ["apply", "--yes"])).code, count]).toEqual([code, created === 1 ? 1 : 3]);
  });
});

describe("a response with a secret", () => {
  it("to a rotation reaches standard output in every format; with another destination, no part of it does", async () => {
    const secret = "s3cr3t-wrap";
    respondWith({ accessKey: { id: "ak_1", name: "one", secret } });
    const words = ["keys", "rotate", "ak_1", "--yes"];
    for (const format of ["json", "table", "yaml", "csv", "ndjson"]) {
      const { code, stdout } = await integHere(home(), [...words, "-o", format]);
      expect(code).toBe(0);
      expect(stdout, format).toContain(secret);
    }
    const { stdout, stderr } = await home().integ([...words, "--json", "--secret-file", "s"]);
    expect(stdout + stderr).not.toContain(secret);
    expect(JSON.parse(stdout)).toMatchObject({ id: "ak_1", secret: null });
  });

  it("to a rotation without a secret: exit 9, and the next step is another rotation", async () => {
    respondWith({ id: "ak_1", name: "one" });
    const { code, stderr } = await integHere(home(), ["keys", "rotate", "ak_1", "--yes"]);
    expect(code).toBe(9);
    expect(stderr).toContain("rotate the key again");
  });
});

describe("a revocation", () => {
  it("without a body, of a key that the list no longer has, is done", async () => {
    answer = ({ method }) =>
      method === "DELETE" ? { status: 204 } : { body: JSON.stringify([{ ...row, id: "ak_2" }]) };
    expect((await integHere(home(), ["keys", "revoke", "ak_1", "--yes"])).code).toBe(0);
  });

  it("of a key that is still active in the list is not done: exit 7", async () => {
    answer = ({ method }) => (method === "DELETE" ? { status: 204 } : { body: JSON.stringify([row]) });
    expect((await integHere(home(), ["keys", "revoke", "ak_1", "--yes"])).code).toBe(7);
  });

  it("that no list can confirm is accepted from the response, with a note", async () => {
    answer = ({ method }) => (method === "DELETE" ? { status: 204 } : { status: 403, body: "{}" });
    const { code, stderr } = await integHere(home(), ["keys", "revoke", "ak_1", "--yes"]);
    expect(code).toBe(0);
    expect(stderr).toContain("neither its response nor its list");
  });

  it("with 404 at first is exit 4; after an attempt that may have arrived, it succeeded", async () => {
    answer = ({ method }) =>
      method === "DELETE" ? { status: 404, body: "{}" } : { body: JSON.stringify([{ ...row, id: "ak_2" }]) };
    expect((await integHere(home(), ["keys", "revoke", "ak_1", "--yes"])).code).toBe(4);
    let first = true;
    answer = ({ method }) => {
      if (method !== "DELETE") return { body: JSON.stringify([{ ...row, id: "ak_2" }]) };
      const status = first ? 503 : 404;
      first = false;
      return { status, body: "{}" };
    };
    expect((await integHere(home(), ["keys", "revoke", "ak_1", "--yes"])).code).toBe(0);
  });
});

it("a replacement names all properties of the old key that the API does not return in one error, and sends nothing", async () => {
  respondWith([{ id: "ak_1" }]);
  const { code, stderr } = await integHere(home(), ["keys", "rotate", "ak_1", "--by-replacement", "--yes"]);
  for (const flag of ["--name", "--type", "--scope", "--expires-in"]) expect(stderr).toContain(flag);
  expect([code, seen.filter((request) => request.startsWith("POST"))]).toEqual([2, []]);
});

describe("people membership", () => {
  it("shows an array as a list", async () => {
    respondWith([{ role: "admin" }, { role: "member" }]);
    const { stdout } = await integHere(home(), ["people", "membership", "p", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({ object: "list", data: [{ role: "admin" }, { role: "member" }] });
  });
});
