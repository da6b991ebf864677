// A process that checks its standard output, or delivers to it, and reports on standard error. A test sets up the output.
import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Failure } from "../../../src/errors.ts";
import { outputDestination } from "../../../src/secrets/stdout.ts";

const [, , work, pause = "0"] = process.argv;

async function main(): Promise<void> {
  await sleep(Number(pause));
  const destination = outputDestination({
    fd: 1,
    env: process.env,
    onStderr: (chunk) => void writeSync(2, chunk),
    print: async (receipt) => {
      if (writeSync(1, receipt) < receipt.length) throw new Error("cut");
    },
  });
  await (work === "check" ? destination.check() : destination.prepare("w"));
  if (work === "deliver") {
    writeSync(2, "ready\n");
    await sleep(Number(pause));
    const secret = { secret: "canary%\r\n1", kind: "access_key", id: "k", receipt: "receipt with canary\n" } as const;
    const origin = { entry: "w", profile: "prod", region: "eu" };
    await destination.deliver(secret, { origin, may: async () => {}, record: async () => {} });
  }
}

main().then(
  () => writeSync(2, "fine\n"),
  (error: unknown) => writeSync(2, error instanceof Failure ? `${error.kind}: ${error.message}\n` : String(error)),
);
