// Entry of the single executable. Unlike bin/integ.js it does not check Node's version.
import { main } from "../../src/main.ts";

void main(process).then((code) => {
  process.exitCode = code;
});
