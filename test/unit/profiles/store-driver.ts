// One process that works on profiles or on a lock, for the tests of several processes at once.
import { readFileSync, writeFileSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { withOwnerLock } from "../../../src/profiles/owner-lock.ts";
import { openProfileStore } from "../../../src/profiles/store.ts";

const [, , work = "", folder = "", label = "", count = "1"] = process.argv;

async function addMany(): Promise<void> {
  const store = openProfileStore({ configDir: folder, lockWaitMs: 60_000 });
  for (let index = 0; index < Number(count); index++) {
    await store.add({
      id: randomUUID(),
      name: `${label}-${index}`,
      region: "us",
      base_url: "https://api.example.com",
      credential: null,
      credential_origins: [],
    });
    process.stdout.write(`${label}-${index}\n`);
  }
}

/** Adds one to a counter that is read and written apart: a second holder would lose a count. */
async function countUp(): Promise<void> {
  const counter = `${folder}/counter`;
  for (let index = 0; index < Number(count); index++) {
    await withOwnerLock(
      `${folder}/lock`,
      async () => {
        const before = Number(readFileSync(counter, "utf8"));
        await new Promise((resolve) => setTimeout(resolve, 1));
        writeFileSync(counter, String(before + 1));
      },
      { waitMs: 60_000 },
    );
  }
}

/** Takes the lock and dies with it, or holds it until it is killed. */
async function hold(): Promise<void> {
  await withOwnerLock(`${folder}/lock`, async () => {
    process.stdout.write("held\n");
    if (label === "die") process.kill(process.pid, "SIGKILL");
    await new Promise((resolve) => setTimeout(resolve, 60_000));
  });
}

const works: Record<string, () => Promise<void>> = { addMany, countUp, hold };
works[work]?.().catch((error: unknown) => {
  process.stderr.write(`${String(error)}\n`);
  process.exitCode = 1;
});
