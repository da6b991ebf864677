// Kills the server of a team's journal before one message of a command. The server restarts, or its synchronous standby
// replaces it.
import { describe, it } from "vitest";
import * as clients from "./client-scenes.ts";
import type { Scene } from "./harness.ts";
import * as keys from "./key-scenes.ts";
import type { Verdict } from "../support/crossing.ts";
import { afterLease, type Disturbance, TeamDesk } from "./team-play.ts";
import { isMissing } from "../support/tools.mjs";

// With these settings, the server would lose the newest commits if integ did not change them for its connection.
const unsafeSettings = {
  killed: ["synchronous_commit = off", "wal_writer_delay = 10s"],
  promoted: ["synchronous_commit = local"],
};

const client = clients.clientScenes();
const key = keys.keyScenes();
const keyCreation = afterLease(key(keys.create));

describe.skipIf(isMissing("PostgreSQL"))("a server that is killed", () => {
  const desk = new TeamDesk({ settings: unsafeSettings.killed });
  let up = Promise.resolve();
  const killed: Disturbance = {
    name: "its server killed",
    links: ["journal"],
    isSurvived: true,
    async act(): Promise<Verdict> {
      await desk.server.kill();
      up = desk.server.up();
      return "cut";
    },
    after: () => up,
  };
  it.each<[Scene, number]>([
    [client(clients.create), 2],
    [client(clients.rotate), 1],
    [client(clients.recover), 1],
    [keyCreation, 1],
  ])("loses nothing: $name", { timeout: 7_200_000 }, (scene, sample) => desk.playEach(scene, killed, sample));
});

describe.skipIf(isMissing("PostgreSQL"))("a standby that is promoted", () => {
  const desk = new TeamDesk({ settings: unsafeSettings.promoted, hasStandby: true });
  const promoted: Disturbance = {
    name: "its standby promoted",
    links: ["journal"],
    isSurvived: true,
    async act(): Promise<Verdict> {
      await desk.failOver();
      return "cut";
    },
  };
  it.each<[Scene, number]>([
    [client(clients.create), 1],
    [keyCreation, 1],
  ])("loses nothing: $name", { timeout: 7_200_000 }, (scene, sample) => desk.playEach(scene, promoted, sample));
});
