// Builds the program once before all tests, so that no end-to-end test runs an old bundle.
import { rolldown } from "rolldown";
import config from "../../scripts/rolldown.config.mts";

export default async function build(): Promise<void> {
  if (process.env.INTEG_TEST_NO_BUILD) return;
  // Each project of the run calls this function, and only the first call builds.
  process.env.INTEG_TEST_NO_BUILD = "1";
  const bundle = await rolldown(config);
  await bundle.write((config as { output: Parameters<typeof bundle.write>[0] }).output);
  await bundle.close();
}
