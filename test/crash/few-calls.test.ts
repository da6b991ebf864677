// What a change does not do between its first record and its last: each call is one that can fail, or be the last.
import { describe, expect, it } from "vitest";
import { type Point, sayWhetherTraced } from "../support/strace.ts";
import { isOtherBinary } from "../support/program.ts";
import { clientScenes, create, rotate } from "./client-scenes.ts";
import { pointsOf, pointsOfEffect } from "./harness.ts";

const client = clientScenes();
const isTraced = sayWhetherTraced("which files a change opens");
const isElse = isOtherBinary("which parts of the program a change loads while it is under way");

/** The files that were opened, by name, and how. */
function opened(points: readonly Point[]): readonly { readonly file: string; readonly how: string }[] {
  return points
    .filter(({ call, text }) => call === "openat" && !text.includes("= -1"))
    .map(({ text }) => /"([^"]+)", (\S+)/.exec(text)!)
    .map(([, file = "", how = ""]) => ({ file: file.split("/").at(-1)!, how }));
}

describe.runIf(isTraced && !isElse)("a change", () => {
  it.each([
    // A record each, and one more time the lock of the entry whose file was made with it.
    { scene: client(create), records: 4, entries: 1 },
    { scene: client(rotate), records: 8, entries: 2 },
  ])("of $scene.name loads little, and opens its journal once a record", { timeout: 60_000 }, async (about) => {
    const files = opened(pointsOfEffect(await pointsOf(about.scene)));
    const parts = files.filter(({ file }) => file.endsWith(".cjs")).map(({ file }) => file.split("-")[0]);
    // What one resource alone is sent by, and what proves a new client.
    expect(parts.filter((part) => !["oauth", "unknown", "token", "build"].includes(part!))).toEqual([]);
    const changing = files.filter(({ file, how }) => file === "journal.ndjson" && how.includes("O_RDWR"));
    expect(changing).toHaveLength(about.records + about.entries);
  });
});
