import fc from "fast-check";
import { expect, test } from "vitest";
import { Table } from "../../../src/sandbox/table.ts";

interface Row {
  owner: string;
  isFree: boolean;
}

const held = { name: "held", test: ({ isFree }: Row): boolean => !isFree };
const owners = ["a", "b", "c"];

type Step =
  | { readonly kind: "push"; readonly owner: string }
  | {
      readonly kind: "change";
      readonly owner: string;
      readonly nth: number;
      readonly to: string;
      readonly isFree: boolean;
    }
  | { readonly kind: "look" };

const owner = fc.constantFrom(...owners);
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant("push" as const), owner }),
  fc.record({ kind: fc.constant("change" as const), owner, nth: fc.nat(4), to: owner, isFree: fc.boolean() }),
  fc.constant({ kind: "look" as const }),
);
const changes = fc.array(fc.record({ steps: fc.array(step, { maxLength: 6 }), isUndone: fc.boolean() }), {
  maxLength: 12,
});

/** What the table says of each owner, and what its rows say. */
function compare(table: Table<Row>): void {
  for (const name of owners) {
    const own = table.rows.filter((row) => row.owner === name);
    expect(table.having("owner", name)).toEqual(own);
    expect(table.fitting("owner", name, held)).toEqual(own.filter(held.test));
  }
}

test("rows are found by what they hold after any changes, kept or undone", () => {
  fc.assert(
    fc.property(changes, (all) => {
      const table = new Table<Row>([{ owner: "a", isFree: false }]);
      compare(table);
      for (const { steps, isUndone } of all) {
        table.begin();
        const before = structuredClone(table.rows);
        for (const one of steps) {
          if (one.kind === "push") table.push({ owner: one.owner, isFree: false });
          if (one.kind === "look") for (const name of owners) table.fitting("owner", name, held);
          if (one.kind === "change") {
            const row = table.all("owner", one.owner)[one.nth];
            if (row) Object.assign(row, { owner: one.to, isFree: one.isFree });
          }
        }
        if (isUndone) table.undo();
        if (isUndone) expect(table.rows).toEqual(before);
        table.begin();
        compare(table);
      }
    }),
  );
});
