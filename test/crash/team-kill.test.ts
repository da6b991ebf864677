// Kills the program before a message to or from PostgreSQL or the service, or cuts its connection to PostgreSQL there.
import { describe, it } from "vitest";
import { isFull } from "../support/sample.ts";
import * as clients from "./client-scenes.ts";
import type { Scene } from "./harness.ts";
import * as keys from "./key-scenes.ts";
import * as policies from "./policy-stage.ts";
import { afterLease, type Disturbance, TeamDesk } from "./team-play.ts";
import { isMissing } from "../support/tools.mjs";

const killed: Disturbance = {
  name: "killed",
  act(process) {
    process?.kill("SIGKILL");
    return "cut";
  },
};

const cut: Disturbance = { name: "cut", links: ["journal"], isSurvived: true, byMessage: true, act: () => "cut" };

describe.skipIf(isMissing("PostgreSQL"))("a team's journal", () => {
  const desk = new TeamDesk();
  const client = clients.clientScenes();
  const key = keys.keyScenes();
  const policy = policies.policyScenes();

  const scenes: Record<string, Scene> = {
    "a creation": client(clients.create),
    "a rotation": client(clients.rotate),
    "a recovery": client(clients.recover),
    "a claim": client(clients.claim),
    "a key's creation": afterLease(key(keys.create)),
    "a key's rotation": afterLease(key(keys.rotate)),
    "a key's replacement": afterLease(key(keys.replace)),
    "a key's recovery": afterLease(key(keys.recover)),
    "a policy": policy(policies.apply),
    "a policy's recovery": policy(policies.recoverApply),
  };

  /** How many messages of each scene a sample disturbs. A scene with 0 is only in a full run. */
  const samples: Readonly<Record<string, readonly [killed: number, cut: number]>> = {
    "a creation": [1, 1],
    "a rotation": [1, 1],
    "a recovery": [1, 0],
    "a claim": [1, 1],
    "a key's creation": [1, 0],
    "a key's rotation": [1, 1],
    "a key's replacement": [0, 1],
    "a key's recovery": [0, 0],
    "a policy": [1, 0],
    "a policy's recovery": [0, 0],
  };
  const played = (which: 0 | 1): [string, number][] =>
    Object.entries(samples)
      .map(([name, counts]): [string, number] => [name, counts[which]])
      .filter(([, count]) => isFull || count > 0);

  it.each(played(0))("recovers a killed program: %s", { timeout: 7_200_000 }, (name, sample) =>
    desk.playEach(scenes[name]!, killed, sample),
  );

  it.each(played(1))("recovers from a cut connection to PostgreSQL: %s", { timeout: 7_200_000 }, (name, sample) =>
    desk.playEach(scenes[name]!, cut, sample),
  );
});
