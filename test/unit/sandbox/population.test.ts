import { describe, expect, it } from "vitest";
import { countOf, entityId, entityText, indexOf, nthOf, typeAt } from "../../../src/sandbox/population.ts";
import { aSandbox, list } from "./a-sandbox.ts";

const people = { region: "us", size: 1_000_000, seed: 1 } as const;

describe("the sandbox's population", () => {
  it("is the same for the same seed, and differs for another", () => {
    const rows = (seed: number) => Array.from({ length: 50 }, (_, index) => entityText({ ...people, seed }, index));
    expect(rows(1)).toEqual(rows(1));
    expect(rows(1)).not.toEqual(rows(2));
    expect(rows(4_294_967_295)).not.toEqual(rows(4_294_967_294));
  });

  it("has entities with exactly the documented fields, in order, created before they were updated", () => {
    let before = "";
    for (const index of [0, 1, 7, 8, 499_999, 999_999]) {
      const row: Record<string, string> = JSON.parse(entityText(people, index));
      expect(Object.keys(row)).toEqual("id object type status display_name email created_at updated_at".split(" "));
      expect(row.created_at! <= row.updated_at!).toBe(true);
      expect(row.created_at! > before).toBe(true);
      before = row.created_at!;
    }
    expect(before < "2026-07-01").toBe(true);
    expect(JSON.parse(entityText({ ...people, size: 100_000_000 }, 99_999_999)).updated_at < "2026-07-01").toBe(true);
  });

  it("has unique e-mail addresses in plain ASCII", () => {
    const emails = Array.from({ length: 5000 }, (_, index): string => JSON.parse(entityText(people, index)).email);
    expect(new Set(emails).size).toBe(5000);
    expect(emails.filter((email) => !/^[a-z]+\.[a-z]+\.\d+@example\.com$/.test(email))).toEqual([]);
  });

  it("finds an entity by its exact id only", () => {
    for (const index of [0, 41, 999_999]) expect(indexOf(people, entityId("us", index))).toBe(index);
    for (const id of [
      "",
      "ent_us_0000000",
      "ent_us_1000001",
      "ent_eu_0000001",
      "ent_us_1",
      "ent_us_00000001",
      "constructor",
    ])
      expect(indexOf(people, id), id).toBeUndefined();
  });

  it.each([0, 1, 7, 8, 9, 15, 16, 120])("divides %i entities by type without a gap", (size) => {
    const indexes = (type: string) =>
      Array.from({ length: countOf({ ...people, size }, type) }, (_, nth) => nthOf(type, nth));
    for (const type of ["person", "organization"]) for (const index of indexes(type)) expect(typeAt(index)).toBe(type);
    expect([...indexes("person"), ...indexes("organization")].toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: size }, (_, index) => index),
    );
    expect(countOf({ ...people, size }, "robot")).toBe(0);
  });

  it("uses little memory for a page of a million entities", async () => {
    const { us } = await aSandbox({ entities: 1_000_000 });
    const before = process.memoryUsage().heapUsed;
    const page: { data: unknown[]; next_page_token: string } = JSON.parse((await list(us, "?limit=500")).text);
    expect(page.data).toHaveLength(500);
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(20_000_000);
  });

  it("can be empty", async () => {
    const { us } = await aSandbox({ entities: 0 });
    expect(JSON.parse((await list(us)).text)).toEqual({
      object: "list",
      data: [],
      next_page_token: null,
      has_more: false,
    });
  });
});
