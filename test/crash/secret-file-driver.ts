// One process that delivers a secret to a file as a command does: prepare, remember, deliver.
import { closeSync, fsyncSync, openSync, writeSync } from "node:fs";
import { fileDestination } from "../../src/secrets/file.ts";

const [, , folder = "", force = ""] = process.argv;

async function main(): Promise<void> {
  const destination = fileDestination({ path: `${folder}/s`, as: "raw", force: force === "force" }, "/");
  await destination.check();
  const record = await destination.prepare("w");
  // Stands for the journal: the record is on disk before the request is sent.
  const fd = openSync(`${folder}.record`, "w");
  writeSync(fd, JSON.stringify(record));
  fsyncSync(fd);
  closeSync(fd);
  writeSync(1, "sent\n");
  try {
    const secret = { secret: "canary-8f2e6b", kind: "access_key", id: "k", receipt: "" } as const;
    const origin = { entry: "w", profile: "prod", region: "eu" };
    await destination.deliver(secret, { origin, record: async () => {} });
    writeSync(1, "delivered\n");
  } finally {
    await destination.release();
  }
}

main().catch((error: unknown) => {
  process.exitCode = 1;
  writeSync(2, String(error));
});
