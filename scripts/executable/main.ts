// The entry of the single executable, as bin/integ.js is that of the package: its Node needs no check.
import { main } from "../../src/main.ts";

void main(process).then((code) => {
  process.exitCode = code;
});
