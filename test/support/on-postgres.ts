// Gives each home of the project `team` a journal in PostgreSQL. Only every fourth test runs, always the same ones, unless the
// run is full or has INTEG_TEST_ENGINE=postgres.
import { beforeEach, inject } from "vitest";
import { isFull } from "./sample.ts";
import { keepJournalsIn } from "./team-journal.ts";

const server = inject("teamServer");
keepJournalsIn(server ?? undefined);

const every = isFull || process.env.INTEG_TEST_ENGINE === "postgres" ? 1 : 4;
let number = 0;

beforeEach(({ skip }) => {
  number += 1;
  if (server === null) skip("without PostgreSQL");
  else if (number % every !== 0) skip("not of the sample: INTEG_TEST_ENGINE=postgres");
});
