// Properties: a plain run tries the same cases every time, so that a change is judged by what it changed; a full run, as
// every night, tries new ones. INTEG_TEST_SEED=<n> plays those of one run again.
import fc from "fast-check";
import { isFull } from "./sample.ts";

const given = process.env.INTEG_TEST_SEED;
if (given !== undefined || !isFull) fc.configureGlobal({ seed: Number(given ?? 20_260_701) });
