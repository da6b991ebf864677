import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openProfileStore } from "../../src/profiles/store.ts";
import { aProfile } from "../unit/profiles/a-profile.ts";
import { recordFigure } from "../support/figures.mjs";
import { isFull } from "../support/sample.ts";
import { bundleDriver, temporaryFolder } from "../support/bundle-driver.ts";

let driver: { path: string; remove: () => void };
beforeAll(async () => {
  driver = await bundleDriver(join(import.meta.dirname, "profile-store-driver.ts"));
});
afterAll(() => driver.remove());

const rounds = isFull ? 25 : 12;

it("leaves signals to the command: a second listener would count the first Ctrl-C as two", () => {
  const printed = execFileSync(process.execPath, [driver.path, "signals", temporaryFolder(), "p"], {
    encoding: "utf8",
  });
  expect(printed).toBe("p-0\n[]\n");
});

describe("several processes that change profiles.json", () => {
  it("lose none of ten profiles that each of eight processes adds", async () => {
    const folder = temporaryFolder();
    const children = Array.from({ length: 8 }, (_, index) =>
      spawn(process.execPath, [driver.path, "addMany", folder, `p${index}`, "10"], {
        stdio: ["ignore", "ignore", "inherit"],
      }),
    );
    const ends = await Promise.all(children.map((child) => once(child, "exit")));
    expect(ends).toEqual(children.map(() => [0, null]));
    const names = (await openProfileStore({ configDir: folder })).list().map((profile) => profile.name);
    expect(new Set(names).size).toBe(80);
    expect(readdirSync(folder)).toEqual(["profiles.json"]);
  });

  it("leave a complete file with every reported change when they are killed, and block no one", {
    timeout: 180_000,
  }, async () => {
    const folder = temporaryFolder();
    const reported = new Set<string>();
    for (let round = 0; round < rounds; round++) {
      const child = spawn(process.execPath, [driver.path, "addMany", folder, `r${round}`, "1000"], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        for (const name of text.split("\n").filter(Boolean)) reported.add(name);
      });
      await once(child.stdout, "data");
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 15));
      child.kill("SIGKILL");
      await once(child, "close");
      const names = new Set((await openProfileStore({ configDir: folder })).list().map((profile) => profile.name));
      expect([...reported].filter((name) => !names.has(name))).toEqual([]);
    }
    const store = await openProfileStore({ configDir: folder, lockWaitMs: 0 });
    await store.add(aProfile({ name: "after" }));
    expect(readdirSync(folder)).toEqual(["profiles.json"]);
    recordFigure(
      "profile change",
      { kills: rounds, profiles: reported.size, lost: 0 },
      "processes one after the other",
    );
  });
});
