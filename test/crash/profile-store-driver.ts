import { randomUUID } from "node:crypto";
import { openProfileStore } from "../../src/profiles/store.ts";

const [, , work = "", folder = "", label = "", count = "1"] = process.argv;

async function addMany(): Promise<void> {
  const store = await openProfileStore({ configDir: folder, lockWaitMs: 60_000 });
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

async function signals(): Promise<void> {
  await addMany();
  process.stdout.write(`${JSON.stringify(process.eventNames().filter((name) => String(name).startsWith("SIG")))}\n`);
}

const works: Record<string, () => Promise<void>> = { addMany, signals };
works[work]?.().catch((error: unknown) => {
  process.stderr.write(`${String(error)}\n`);
  process.exitCode = 1;
});
