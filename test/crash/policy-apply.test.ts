// Tests `integ apply` with a fault at any of many items, and several simultaneous runs. policy-killed.test.ts tests kills.
import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { recordFigure } from "../support/figures.mjs";
import { stayInThisProcess } from "../support/program.ts";
import { isFull } from "../support/sample.ts";
import { type Service, startService } from "../support/service.ts";
import {
  applyWords as words,
  brokenFiles,
  homeWith,
  isAnyAboveSlots,
  many,
  policyText,
  resultsIn,
  strayFilesIn,
  widerScopes,
  violationsOf,
} from "./policy-scenes.ts";

let service: Service;
let account: Account;

beforeAll(async () => {
  stayInThisProcess();
  service = await startService();
  account = new Account(service);
});
afterAll(() => service?.stop());

const creationFaults = ["drop=after", "secret=withheld", "drop=before", "status=500 effect=kept", "cut=30"];

describe.each(isFull ? creationFaults : creationFaults.slice(0, 2))("thirty items with %s", (kind) => {
  const names = many(30);
  const at = isFull ? Array.from({ length: 26 }, (_, after) => after) : [2];
  const counted = { runs: 0, "items that failed": 0, "others unfinished": 0, "secrets outside": 0, wrong: 0 };
  afterAll(() => {
    // If a filter selects only other tests, there are no figures.
    if (counted.runs > 0) recordFigure("faults among thirty items", counted, `five creations, ${kind}`);
  });

  it.each(at.map((after) => [after] as const))("in five creations after %i converge", async (after) => {
    await account.clear();
    const home = homeWith(service, { names });
    try {
      await service.fault(`POST /v1/oauth_clients after=${after} times=5 ${kind}`);
      const first = await home.integ([...words, "--retry-for", "0"]);
      await service.calm();
      const failed = resultsIn(first).filter((result) => result === "failed").length;
      const done = resultsIn(first).filter((result) => result === "done").length;
      counted.runs += 1;
      counted["items that failed"] += failed;
      counted["others unfinished"] += 30 - failed - done;
      expect(failed).toBeLessThanOrEqual(5);
      expect(done).toBe(30 - failed);
      expect(await isAnyAboveSlots(account)).toBe(false);
      const second = await home.integ(words);
      expect({ code: second.code, stderr: second.stderr }).toEqual({ code: 0, stderr: "" });
      const [wrong, strayed] = [await violationsOf(account, home, names), strayFilesIn(home)];
      counted.wrong += wrong.length;
      counted["secrets outside"] += strayed.length;
      expect([wrong, strayed]).toEqual([[], []]);
      expect(new Set(resultsIn(await home.integ(words)))).toEqual(new Set(["none"]));
    } finally {
      home.remove();
    }
  });
});

describe("thirty items with five due rotations", () => {
  const names = many(isFull ? 30 : 10);
  const rotated = many(5);
  const at = ["POST /v1/oauth_clients", "DELETE /v1/oauth_clients/*", "GET /v1/oauth_clients/*", "POST /*token*"];
  const kinds = isFull ? ["drop=after", "drop=before", "status=503", "cut=20"] : ["drop=after"];

  it.each(at.map((fault, index) => [fault, index] as const))(
    "converge with faults at %s",
    { timeout: 3_600_000 },
    async (fault, index) => {
      await account.clear();
      const home = homeWith(service, { names });
      const counted = { runs: 0, "items that failed": 0, "secrets outside": 0, wrong: 0 };
      try {
        expect((await home.integ(words)).code).toBe(0);
        const offsets = isFull ? [0, 1, 2, 3, 4] : [index % 2];
        for (const [kind, after] of kinds.flatMap((one) => offsets.map((offset) => [one, offset] as const))) {
          const wider = counted.runs % 2 === 0 ? rotated : [];
          writeFileSync(home.path("integ.yaml"), policyText(service, { names, wider }));
          await service.fault(`${fault} after=${after} times=2 ${kind}`);
          const first = await home.integ([...words, "--retry-for", "0"]);
          await service.calm();
          counted.runs += 1;
          counted["items that failed"] += resultsIn(first).filter((result) => result === "failed").length;
          expect(await brokenFiles(account, home, names), `${fault} after=${after} ${kind}, immediately`).toEqual([]);
          expect(await isAnyAboveSlots(account)).toBe(false);
          // Two runs: a failed read ends the first plan, and a failed proof leaves the old client for the next run.
          for (let run = 0; run < 2; run += 1) await home.integ(words);
          const [wrong, strayed] = [await violationsOf(account, home, names), strayFilesIn(home)];
          counted.wrong += wrong.length;
          counted["secrets outside"] += strayed.length;
          expect([wrong, strayed], `${fault} after=${after} ${kind}`).toEqual([[], []]);
        }
      } finally {
        home.remove();
      }
      recordFigure("faults among thirty items", counted, `five rotations, ${fault}`);
    },
  );
});

describe("simultaneous apply and recover", () => {
  const names = many(5);

  it.each([
    ["creations", "POST /v1/oauth_clients drop=after times=5"],
    ["rotations", "DELETE /v1/oauth_clients/* drop=before times=5"],
  ])("finish interrupted %s together, each once", { timeout: 300_000 }, async (what, fault) => {
    await account.clear();
    const home = homeWith(service, { names });
    const isRotation = what === "rotations";
    try {
      if (isRotation) {
        await home.integ(words);
        writeFileSync(home.path("integ.yaml"), policyText(service, { names, scopes: widerScopes }));
      }
      const before = (await account.clients()).length;
      await service.fault(fault);
      const interrupted = await home.integ([...words, "--retry-for", "0"]);
      await service.calm();
      expect(interrupted.code).not.toBe(0);
      const race = [words, ["journal", "recover", "--yes", "-q"], words, ["journal", "recover", "--yes", "-q"]];
      await Promise.all(race.map((one) => home.spawned(one, { timeoutMs: 120_000 })));
      const settled = await home.integ(words);
      expect({ code: settled.code, stderr: settled.stderr }).toEqual({ code: 0, stderr: "" });
      expect(await violationsOf(account, home, names)).toEqual([]);
      // For a secret that is lost with its response, integ creates one more client. Later runs create none.
      expect((await account.clients()).length - before).toBe(isRotation ? names.length : 2 * names.length);
    } finally {
      home.remove();
    }
  });
});
