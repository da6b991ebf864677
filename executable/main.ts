// Owns: the first thing that the single executable runs: what bin/integ.js is for the package. Its Node is the one it
// was built with, so there is no version to check.
import { main } from "../src/main.ts";

void main(process).then((code) => {
  process.exitCode = code;
});
