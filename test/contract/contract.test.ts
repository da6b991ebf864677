// Plays every case against the sandbox and checks each response against the document that the sandbox publishes.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readCases } from "./case.ts";
import { OpenApiCheck, operationsOf, readDocuments, type Document } from "./openapi-check.ts";
import { play } from "./player.ts";
import { startWorld } from "./world.ts";

let documents: Document[] = [];
let check: OpenApiCheck;

beforeAll(async () => {
  const world = await startWorld();
  documents = await readDocuments(String(world.description.us.base_url));
  check = new OpenApiCheck(documents);
  await world.close();
});

for (const { file, cases } of readCases())
  describe(file, () => {
    for (const one of cases)
      it(`§${one.section}: ${one.name}`, async () => {
        const world = await startWorld();
        const complaints: string[] = [];
        try {
          await play(one, { ...world, seen: (played) => complaints.push(...check.complaintsAbout(played)) });
        } finally {
          await world.close();
        }
        expect(complaints).toEqual([]);
      });
  });

describe("the published documents", () => {
  const responseKinds = () => [...check.responseKinds];

  it("describe every operation, and each occurs with a success and a refusal", () => {
    for (const { name } of documents.flatMap(operationsOf)) {
      const statuses = responseKinds()
        .filter((seen) => seen.startsWith(`${name} `))
        .map((seen) => Number(seen.slice(name.length + 1)));
      expect(
        statuses.some((status) => status < 300),
        `${name}: success`,
      ).toBe(true);
      expect(
        statuses.some((status) => status >= 400),
        `${name}: refusal`,
      ).toBe(true);
    }
  });

  it("declare the lifecycle stage of every operation (§9 rule 2), compatibility for the legacy ones (§4.4)", () => {
    for (const [index, document] of documents.entries())
      for (const { name, operation } of operationsOf(document))
        expect(operation["x-lifecycle-stage"], name).toBe(index === 1 ? "compatibility" : "ga");
  });

  it("embed the contract version only in /v1 (§9 rules 2 and 4)", () => {
    expect(documents.map(({ info }) => info["x-contract-version"])).toEqual(["2026-07-01", undefined, undefined]);
  });
});

afterAll(() => {
  expect(check.responseKinds.size).toBeGreaterThan(0);
});
