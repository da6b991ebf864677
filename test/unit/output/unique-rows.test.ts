import { expect, it } from "vitest";
import { pageOf } from "../../../src/output/row-page.ts";
import { UniqueRows } from "../../../src/output/unique-rows.ts";

it("rows without repetitions are the first of each id; what has no text as its id is no one's repeat", () => {
  const rows = [
    '{"id":"a"}',
    '{"id":"\\u0061"}',
    '{"n":1}',
    '{"id":1}',
    '{"id":1}',
    '{"id":"é"}',
    '{"id":"\\u00e9"}',
    '{"id":"a","id":"b"}',
  ];
  const kept = ['{"id":"a"}', '{"n":1}', '{"id":1}', '{"id":1}', '{"id":"é"}', '{"id":"a","id":"b"}'];
  const unique = new UniqueRows();
  expect(unique.of(pageOf(rows)).map(({ text }) => text)).toEqual(kept);
  expect(unique.of(pageOf(rows)).map(({ text }) => text)).toEqual(['{"n":1}', '{"id":1}', '{"id":1}']);
});
