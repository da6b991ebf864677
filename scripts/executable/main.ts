// What bin/integ.js is for the package. The executable brings its own Node, so there is no version to check.
import { main } from "../../src/main.ts";

void main(process).then((code) => {
  process.exitCode = code;
});
