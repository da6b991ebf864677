// SIGKILL of the program before each message that it exchanges with PostgreSQL and the service, and the connection to
// PostgreSQL cut before each: then `journal recover`, and nothing is doubled, lost or revoked early.
import { describe, it } from "vitest";
import { isWithoutPostgres } from "../support/postgres.ts";
import * as clients from "./client-scenes.ts";
import type { Scene } from "./harness.ts";
import * as keys from "./key-scenes.ts";
import { type Disturbance, leaseMs, TeamDesk } from "./team-play.ts";

const killed: Disturbance = {
  name: "killed",
  act(process) {
    process.kill("SIGKILL");
    return "cut";
  },
};

const cut: Disturbance = { name: "cut", links: ["journal"], byMessage: true, act: () => "cut" };

describe.skipIf(isWithoutPostgres("faults at each message of a team's journal"))("a team's journal", () => {
  const desk = new TeamDesk();
  const client = clients.clientScenes();
  const key = keys.keyScenes();
  const settling = (work: keys.KeyWork): Scene => ({
    ...key(work),
    settleMs: Math.max(leaseMs, key(work).settleMs ?? 0),
  });

  const scenes: Record<string, Scene> = {
    "a creation": client(clients.create),
    "a rotation": client(clients.rotate),
    "a recovery": client(clients.recover),
    "a claim": client(clients.claim),
    "a key's creation": settling(keys.create),
    "a key's rotation": settling(keys.rotate),
    "a key's replacement": settling(keys.replace),
  };

  it.each<[string, number]>([
    ["a creation", 4],
    ["a rotation", 3],
    ["a recovery", 2],
    ["a claim", 1],
    ["a key's creation", 1],
    ["a key's rotation", 2],
    ["a key's replacement", 1],
  ])("%s, killed", { timeout: 7_200_000 }, (name, sample) => desk.playEach(scenes[name]!, killed, sample));

  it.each<[string, number]>([
    ["a creation", 4],
    ["a rotation", 2],
    ["a recovery", 2],
    ["a claim", 1],
    ["a key's creation", 2],
    ["a key's rotation", 1],
    ["a key's replacement", 1],
  ])("%s, its connections to PostgreSQL cut", { timeout: 7_200_000 }, (name, sample) =>
    desk.playEach(scenes[name]!, cut, sample),
  );
});
