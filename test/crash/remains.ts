// Describes the state after a killed command. A later command cannot distinguish states with equal descriptions.
import { lstatSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Account } from "../support/account.ts";
import { journalOf } from "../support/journal-file.ts";
import type { Home } from "../support/program.ts";
import { killedAt, nameOf, type Point, wasKilled } from "../support/strace.ts";
import type { ClientScene } from "./client-scenes.ts";

const randomIds = /oac_us_\w+|\b1[0-9a-z]{9}\b|[0-9a-f]{8}-[0-9a-f-]{27}/g;

export async function remainsOf(at: Home, account: Account): Promise<string> {
  const clients = await account.live();
  const requests = await account.requests();
  const description = JSON.stringify({
    entries: journalOf(at).map(
      ({ operation, state, attempts, resource_id, replaced_by, replaces, parent, destination }) => {
        const place = destination && Object.keys(destination);
        return { operation, state, attempts, resource_id, replaced_by, replaces, parent, place };
      },
    ),
    live: clients.map(({ id, status }) => [id, status]),
    requests: requests.map(({ method, path, status }) => `${method} ${path} ${status}`),
    files: filesOf(at.folder),
  });
  const names = new Map<string, string>();
  return description.replace(randomIds, (name) => {
    names.set(name, names.get(name) ?? `#${names.size}`);
    return names.get(name)!;
  });
}

/** Lock files are omitted, because nearly every state has the locks of an ended process. */
function filesOf(folder: string): string[] {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).toSorted();
  return names.flatMap((name) => {
    const path = join(folder, name);
    if (!lstatSync(path).isFile() || name.includes(".lock")) return [];
    const bytes = readFileSync(path);
    const lines = bytes.toString("latin1").split("\n");
    const isReserve = bytes.every((byte) => byte === 0);
    return [`${name}: ${isReserve ? `${bytes.length} zeros` : `${lines.length} lines, torn: ${lines.at(-1) !== ""}`}`];
  });
}

export async function pointsWithDistinctRemains(scene: ClientScene, points: readonly Point[]): Promise<Point[]> {
  const first = new Map<string, Point>();
  for (const point of points) {
    const { at, account, words } = await scene.stage();
    const ended = await at.integ(words, { under: killedAt(point) });
    if (!wasKilled(ended)) throw new Error(`${nameOf(point)} was not reached: ${ended.stderr}`);
    const remains = await remainsOf(at, account);
    if (!first.has(remains)) first.set(remains, point);
    at.remove();
  }
  return [...first.values()];
}
